"""Editing one output of a trained network: Figure 3 of the paper, with numbers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from elephant_nn.experiments.sine import build_network
from elephant_nn.experiments.spec import Entry, Experiment, Metric

if TYPE_CHECKING:
    import numpy as np

    from elephant_nn.runs.program import Program

POINT, TARGET, NEIGHBOURHOOD = 1.5, -1.5, 0.25
EPOCHS, BATCH, CHUNKS = 250, 20, 5


def program(method: str, static: Mapping[str, Any]) -> Program:
    """Learn the sine from shuffled batches, then move f(1.5) from -1 to -1.5 on that sample alone.

    Every chunk is 50 epochs; the edit is tried after each, and the last one counts.
    """
    import jax
    import jax.numpy as jnp
    import optax

    from elephant_nn.editing import edit
    from elephant_nn.learners.gradient import gradient
    from elephant_nn.runs.program import Floats, Program, named_key
    from elephant_nn.streams.regression import sine_stream

    stream = sine_stream()
    samples, network = len(stream.x), partial(build_network, method, static)
    point, target = jnp.array([POINT]), jnp.array([TARGET])

    def init(key: jax.Array, floats: Floats) -> Any:
        learner = gradient(network(floats), optax.adam(floats["lr"]))
        shuffle = jax.random.key_data(named_key(key, "data"))
        return learner.init(named_key(key, "init")), shuffle

    def chunk(carry: Any, floats: Floats, index: jax.Array) -> tuple[Any, dict[str, jax.Array]]:
        state, shuffle = carry
        learner = gradient(network(floats), optax.adam(floats["lr"]))

        def epoch(state: Any, number: jax.Array) -> tuple[Any, None]:
            key = jax.random.fold_in(jax.random.wrap_key_data(shuffle), number)
            batches = jax.random.permutation(key, samples).reshape(-1, BATCH)
            learn = lambda s, rows: (learner.update(s, (stream.x[rows], stream.y[rows])), None)
            return jax.lax.scan(learn, state, batches)[0], None

        length = EPOCHS // CHUNKS
        state, _ = jax.lax.scan(epoch, state, index * length + jnp.arange(length))
        rate = optax.sgd(floats["edit_lr"])
        f, before = network(floats), state.params
        after = edit(f, before, point, target, steps=static["edit_steps"], optimiser=rate)
        return (state, shuffle), {
            "old": f.apply(before, stream.test_x)[:, 0],
            "new": f.apply(after, stream.test_x)[:, 0],
            "at_point": jnp.stack([f.apply(p, point[None])[0, 0] for p in (before, after)]),
        }

    def finish(outputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
        import numpy as np

        old, new, at_point = (outputs[name][-1] for name in ("old", "new", "at_point"))
        x = np.asarray(stream.test_x[:, 0])
        outside = np.abs(x - POINT) > NEIGHBOURHOOD
        change = np.abs(new - old)
        return {
            "error_before": abs(at_point[0] - TARGET),
            "error_after": abs(at_point[1] - TARGET),
            "mean_change": change[outside].mean(),
            "max_change": change[outside].max(),
            "old": old,
            "new": new,
        }

    return Program(
        init,
        chunk,
        CHUNKS,
        finish,
        contract={"passes": EPOCHS, "task_boundary": False},
    )


_SHARED: dict[str, Any] = {"lr": 3e-3, "edit_lr": 1e-3, "neurons": 1000}

EDIT = Experiment(
    name="edit",
    title="Editing one output: f(1.5) from -1 to -1.5",
    source="Figure 3",
    metrics=(
        Metric("error_before", "error at 1.5 before", "lower"),
        Metric("error_after", "after", "lower"),
        Metric("mean_change", "mean change outside", "lower"),
        Metric("max_change", "max change outside", "lower"),
    ),
    entries=(
        Entry("mlp-relu", "MLP (relu)", {**_SHARED, "activation": "relu", "edit_steps": 10}),
        Entry(
            "emlp",
            "EMLP",
            {**_SHARED, "a": 0.08, "sigma_bias": 1.28, "d": 8, "edit_steps": 50},
        ),
    ),
    program=program,
    lanes=lambda cell: 5,
    notes=f"Outside means farther than {NEIGHBOURHOOD} from the edited input. The paper shows this "
    "as a figure of one run and gives no numbers.",
)
