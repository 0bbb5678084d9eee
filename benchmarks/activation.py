"""The elephant's forward and backward pass against bare memory traffic, and against ReLU."""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks.table import Measurement
from elephant_nn.learners.gradient import gradient
from elephant_nn.nn.activations import elephant, relu
from elephant_nn.nn.networks import emlp, mlp

ELEMENTS, ROUNDS = 1_000_000, 200


def measure() -> list[Measurement]:
    return [*(_against_memory(d) for d in range(2, 9)), _against_relu()]


def _against_memory(d: int) -> Measurement:
    """Value and input gradient of a million numbers; memory: read two arrays, write two."""

    def passes(x: jax.Array, cotangent: jax.Array) -> tuple[jax.Array, jax.Array]:
        y, back = jax.vjp(lambda v: elephant(v, 0.1, d), x)
        return y, back(cotangent)[0]

    x = jnp.linspace(-1, 1, ELEMENTS)
    ours, bare = interleaved(jax.jit(passes), jax.jit(lambda x, c: (x + c, x - c)), (x, x))
    return Measurement(
        f"elephant forward and backward, d = {d}, a million float32",
        f"{ours * 1e3:.2f} ms",
        f"one pass over the same memory, {bare * 1e3:.2f} ms",
        ours / bare,
        "<= 2.5",
    )


def _against_relu() -> Measurement:
    """One RMSProp step of a 784-1000-10 network on a batch of 125, elephant against ReLU."""
    sizes, key = (784, 1000, 10), jax.random.key(0)
    batch = (jax.random.uniform(key, (125, 784)), jax.random.randint(key, (125,), 0, 10))
    loss = lambda out, y: optax.softmax_cross_entropy_with_integer_labels(out, y).mean()
    steps, states = [], []
    for network in (emlp(sizes, a=0.08, sigma_bias=0.08), mlp(sizes, relu)):
        learner = gradient(network, optax.rmsprop(3e-6, decay=0.999), loss)
        steps.append(jax.jit(learner.update))
        states.append(learner.init(key, batch[0]))
    ours, other = interleaved(
        lambda: steps[0](states[0], batch), lambda: steps[1](states[1], batch), ()
    )
    return Measurement(
        "training step of an EMLP, 784-1000-10, batch 125",
        f"{ours * 1e3:.2f} ms",
        f"the same with ReLU, {other * 1e3:.2f} ms",
        ours / other,
        "<= 2",
    )


def interleaved(
    first: Callable[..., Any], second: Callable[..., Any], arguments: tuple[Any, ...]
) -> tuple[float, float]:
    """Median seconds of two functions, called in turn so that noise hits both alike."""
    times: tuple[list[float], list[float]] = ([], [])
    for round_ in range(ROUNDS + 3):
        for function, taken in zip((first, second), times, strict=True):
            started = time.perf_counter()
            jax.block_until_ready(function(*arguments))
            if round_ >= 3:
                taken.append(time.perf_counter() - started)
    return float(np.median(times[0])), float(np.median(times[1]))
