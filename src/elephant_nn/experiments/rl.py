"""Reinforcement learning with a tiny replay buffer: Figure 4 of the paper, four tasks.

DQN on MountainCar, Acrobot, Catcher and Pixelcopter; an elephant network that remembers 32
transitions against ReLU networks that remember 32 and 10,000.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from elephant_nn.experiments.spec import Entry, Experiment, Metric

if TYPE_CHECKING:
    import numpy as np

    from elephant_nn.runs.program import Floats, Program

CHUNK = 1000
POINTS = 100
"""Of a return curve."""

STEPS = {"mountain-car": 50_000, "acrobot": 30_000, "catcher": 500_000, "pixelcopter": 1_000_000}
COPY_EVERY = {"mountain-car": 100, "acrobot": 100, "catcher": 200, "pixelcopter": 200}


def mountain_car_program(method: str, static: Mapping[str, Any]) -> Program:
    return program("mountain-car", method, static)


def acrobot_program(method: str, static: Mapping[str, Any]) -> Program:
    return program("acrobot", method, static)


def catcher_program(method: str, static: Mapping[str, Any]) -> Program:
    return program("catcher", method, static)


def pixelcopter_program(method: str, static: Mapping[str, Any]) -> Program:
    return program("pixelcopter", method, static)


def program(task: str, method: str, static: Mapping[str, Any]) -> Program:
    """One agent's life; the number is the mean return of the last tenth of its episodes.

    `steps` among the settings, rounded up to whole chunks, makes it longer or shorter.
    """
    import jax
    import optax

    from elephant_nn.networks import emlp, mlp
    from elephant_nn.rl import make_environment
    from elephant_nn.rl.dqn import Agent, Dqn, dqn
    from elephant_nn.runs.program import Program, named_key
    from elephant_nn.thin import thin_product

    environment = make_environment(task)
    settings = Dqn(static["buffer"], updates=static["E"], copy_every=COPY_EVERY[task])
    chunks = -(-static.get("steps", STEPS[task]) // CHUNK)
    sizes = (environment.size, static["neurons"], environment.actions)

    def agent(floats: Floats) -> Agent:
        if method == "emlp":
            a, sigma_bias = floats["a"], floats["sigma_bias"]
            shape = {"a": a, "sigma_bias": sigma_bias, "d": static["d"]}
            network = emlp(sizes, **shape, output_bias=True, product=thin_product)
        else:
            network = mlp(sizes, output_bias=True, product=thin_product)
        optimiser = optax.rmsprop(floats["lr"], decay=0.999)
        return dqn(environment, network, optimiser, settings)

    def init(key: jax.Array, floats: Floats) -> Any:
        state = agent(floats).init(named_key(key, "init"))
        return state, jax.random.key_data(named_key(key, "explore"))

    def chunk(carry: Any, floats: Floats, index: jax.Array) -> tuple[Any, dict[str, jax.Array]]:
        state, words = carry
        key = jax.random.fold_in(jax.random.wrap_key_data(words), index)
        state, returns = agent(floats).train(state, key, index * CHUNK, CHUNK)
        return (state, words), {"returns": returns}

    def finish(outputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
        return life(outputs["returns"].reshape(-1))

    row_bytes = 4 * (2 * environment.size + 3)
    return Program(init, chunk, chunks, finish, {"buffer_bytes": static["buffer"] * row_bytes})


def life(returns: np.ndarray) -> dict[str, Any]:
    """The columns of a row from the return at every step where an episode ended, NaN elsewhere."""
    import numpy as np

    ends = np.flatnonzero(~np.isnan(returns))
    earned = returns[ends].astype(float)
    if not len(ends):
        return {"return": np.nan, "episodes": 0, "return_curve": np.full(POINTS, np.nan)}
    last = earned[min(int(0.9 * len(earned)), len(earned) - 1) :]
    sums = np.concatenate([[0.0], np.cumsum(earned)])
    ended = np.searchsorted(ends, np.linspace(0, len(returns), POINTS + 1)[1:])
    first = np.maximum(ended - 50, 0)  # a trailing mean over fifty episodes
    with np.errstate(invalid="ignore"):
        curve = (sums[ended] - sums[first]) / (ended - first)
    return {"return": last.mean(), "episodes": len(ends), "return_curve": curve}


RATES = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6)
SHAPES = {"a": (0.08, 0.16, 0.32, 0.64), "sigma_bias": (0.08, 0.16, 0.32, 0.64, 1.28)}


def _mlp(buffer: int, lr: float, updates: int) -> Entry:
    return Entry(
        "mlp",
        f"MLP, buffer {buffer:,}",
        {"neurons": 1000, "buffer": buffer, "lr": lr, "E": updates},
        {"lr": RATES, "E": (1, 2)},
        coarse={"lr": (3e-3, 1e-3, 3e-4, 1e-4), "E": (1,)},
    )


def _emlp(buffer: int, lr: float, updates: int, a: float, sigma_bias: float) -> Entry:
    return Entry(
        "emlp",
        f"EMLP, buffer {buffer:,}",
        {
            "neurons": 1000,
            "buffer": buffer,
            "lr": lr,
            "E": updates,
            "a": a,
            "sigma_bias": sigma_bias,
            "d": 4,
        },
        {"lr": RATES, "E": (1, 2), **SHAPES},
        coarse={
            "lr": (1e-3, 3e-4, 1e-4),
            "E": (1,),
            "a": (0.16, 0.32),
            "sigma_bias": (0.32, 0.64, 1.28),
        },
    )


def _experiment(task: str, title: str, program: Any, entries: tuple[Entry, ...]) -> Experiment:
    return Experiment(
        name=f"rl-{task}",
        title=title,
        source="Figure 4",
        metrics=(Metric("return", "return", "higher", 1),),
        entries=entries,
        program=program,
        lanes=lambda cell: 5,
        seeds=10,
        notes="A run's number is the mean return of the last tenth of its training episodes. "
        "The settings are guesses: nothing has been swept yet.",
        columns=("buffer", "buffer_bytes"),
    )


RL_MOUNTAIN_CAR = _experiment(
    "mountain-car",
    "MountainCar, DQN",
    mountain_car_program,
    (_emlp(32, 3e-4, 1, 0.16, 0.32), _mlp(32, 1e-3, 1), _mlp(10_000, 3e-3, 1)),
)
RL_ACROBOT = _experiment(
    "acrobot",
    "Acrobot, DQN",
    acrobot_program,
    (_emlp(32, 3e-4, 1, 0.16, 0.32), _mlp(32, 1e-3, 1), _mlp(10_000, 1e-3, 1)),
)
RL_CATCHER = _experiment(
    "catcher",
    "Catcher, DQN",
    catcher_program,
    (_emlp(32, 1e-4, 1, 0.16, 0.32), _mlp(32, 1e-4, 1), _mlp(10_000, 1e-4, 1)),
)
RL_PIXELCOPTER = _experiment(
    "pixelcopter",
    "Pixelcopter, DQN",
    pixelcopter_program,
    (_emlp(32, 1e-4, 1, 0.32, 0.64), _mlp(32, 1e-4, 1), _mlp(10_000, 1e-4, 1)),
)
