"""DQN: steps a second with learning, against Gymnasium and jitted functions called from Python."""

import time
from typing import Any

import numpy as np

from elephant_nn.bench import Measurement
from elephant_nn.runs.executors import cores, local_pool

LANES, CHUNKS, LOOP_STEPS = 5, 3, 3000
TARGETS = {"mountain-car": 12, "catcher": 10, "pixelcopter": 10}
SETTINGS: dict[str, Any] = {"neurons": 1000, "buffer": 32, "E": 1, "d": 4}
FLOATS = {"lr": 3e-4, "a": 0.16, "sigma_bias": 0.32}


def measure() -> list[Measurement]:
    found = []
    for task, target in TARGETS.items():
        ours, usual = _everywhere(_our_rate, task), _everywhere(_usual_rate, task)
        ours = max(ours, _everywhere(_our_rate, task))
        found.append(
            Measurement(
                f"DQN on {task}, EMLP of 1,000 units, {LANES * cores()} seeds, {cores()} cores",
                f"{ours:,.0f} steps a second",
                f"Gymnasium, jitted act and update, a process a core, {usual:,.0f}",
                ours / usual,
                f">= {target}",
            )
        )
    return found


def _everywhere(rate: Any, task: str) -> float:
    """The summed steps a second of one process a core, all at once."""
    with local_pool(cores()) as pool:
        return float(sum(pool.map(rate, [task] * cores())))


def _our_rate(task: str) -> float:
    """As the runner does it: lanes side by side in one single-threaded program."""
    import jax
    import jax.numpy as jnp

    from elephant_nn.experiments import rl
    from elephant_nn.runs.program import cell_key
    from elephant_nn.runs.shard import compile_program

    factory = getattr(rl, f"{task.replace('-', '_')}_program")
    machine = compile_program(factory, "emlp", tuple(sorted(SETTINGS.items())), LANES)
    floats = {name: jnp.full(LANES, value) for name, value in FLOATS.items()}
    keys = jnp.stack([cell_key(f"rl-{task}", seed) for seed in range(LANES)])
    carry = machine.start(keys, floats)
    for index in (0, 1):  # the second chunk learns
        carry, _, _ = machine.advance(carry, floats, index)
    jax.block_until_ready(carry)
    started = time.perf_counter()
    for index in range(2, 2 + CHUNKS):
        carry, _, _ = machine.advance(carry, floats, index)
    jax.block_until_ready(carry)
    return LANES * CHUNKS * rl.CHUNK / (time.perf_counter() - started)


def _usual_rate(task: str) -> float:
    """As research code usually does it: one environment, jitted functions, a loop in Python."""
    import gymnasium
    import jax
    import jax.numpy as jnp
    import optax

    from elephant_nn.bench.games import PlainCatcher, PlainCopter
    from elephant_nn.networks import emlp

    makers: dict[str, Any] = {
        "mountain-car": lambda: gymnasium.make("MountainCar-v0", max_episode_steps=1000),
        "catcher": PlainCatcher,
        "pixelcopter": PlainCopter,
    }
    game = makers[task]()
    seen, _ = game.reset(seed=0)
    size, actions = len(seen), 2 if task == "pixelcopter" else 3
    a_, spread = FLOATS["a"], FLOATS["sigma_bias"]
    network = emlp((size, 1000, actions), a=a_, sigma_bias=spread, output_bias=True)
    optimiser = optax.rmsprop(FLOATS["lr"], decay=0.999)
    act = jax.jit(lambda params, x: jnp.argmax(network.apply(params, x[None])[0]))

    @jax.jit
    def update(
        params: Any, memory: Any, target: Any, s: Any, a: Any, r: Any, m: Any, n: Any
    ) -> Any:
        goal = r + 0.99 * m * network.apply(target, n).max(1)
        chosen = lambda p: jnp.take_along_axis(network.apply(p, s), a[:, None], 1)[:, 0]
        slopes = jax.grad(lambda p: jnp.mean((chosen(p) - goal) ** 2))(params)
        change, memory = optimiser.update(slopes, memory, params)
        return optax.apply_updates(params, change), memory

    params = network.init(jax.random.key(0))
    memory, target = optimiser.init(params), params
    rng, capacity = np.random.default_rng(0), SETTINGS["buffer"]
    s, n = np.zeros((capacity, size), np.float32), np.zeros((capacity, size), np.float32)
    a = np.zeros(capacity, np.int32)
    r, m = np.zeros(capacity, np.float32), np.zeros(capacity, np.float32)
    started = 0.0
    for step in range(LOOP_STEPS + 200):
        if step == 200:  # everything has been compiled
            started = time.perf_counter()
        random = rng.random() < 0.01
        action = int(rng.integers(actions)) if random else int(act(params, seen))
        after, reward, over, late, _ = game.step(action)
        place = step % capacity
        s[place], a[place], r[place], m[place], n[place] = seen, action, reward, not over, after
        rows = rng.integers(min(step + 1, capacity), size=32)
        params, memory = update(params, memory, target, s[rows], a[rows], r[rows], m[rows], n[rows])
        if step % 100 == 0:
            target = params
        seen = game.reset()[0] if over or late else after
    jax.block_until_ready(params)
    return LOOP_STEPS / (time.perf_counter() - started)
