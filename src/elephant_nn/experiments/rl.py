"""Reinforcement learning with a tiny replay buffer: Figure 4 of the paper, four tasks.

DQN on MountainCar, Acrobot, Catcher and Pixelcopter; an elephant network that remembers 32
transitions against ReLU networks that remember 32 and 10,000.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from elephant_nn.experiments.spec import Entry, Experiment, Metric
from elephant_nn.runs.cells import Hyper, Value

if TYPE_CHECKING:
    import numpy as np

    from elephant_nn.nn.networks import Network
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


def buffers_program(method: str, static: Mapping[str, Any]) -> Program:
    return program(static["task"], method, static)


def network_of(
    method: str, static: Mapping[str, Any], floats: Mapping[str, Any], inputs: int, outputs: int
) -> Network:
    """The network of a row. None has more weights than the MLP but the elephant's later form."""
    from functools import partial

    from elephant_nn.nn.networks import emlp, mlp
    from elephant_nn.nn.products import thin_product
    from elephant_nn.nn.sparse import fuzzy_tiling, maxout, normalised_emlp, winner_take_all

    sizes = (inputs, static["neurons"], outputs)
    common: dict[str, Any] = {"output_bias": True, "product": thin_product}
    if method in ("emlp", "later-emlp"):
        make = emlp if method == "emlp" else normalised_emlp
        shape = {"a": floats["a"], "sigma_bias": floats["sigma_bias"], "d": static["d"]}
        return make(sizes, **shape, **common)
    if method == "fta":
        tiled = (inputs, static["neurons"] // static["tiles"], outputs)
        return mlp(
            tiled, partial(fuzzy_tiling, bound=floats["bound"], tiles=static["tiles"]), **common
        )
    if method in ("lwta", "maxout"):
        compete = winner_take_all if method == "lwta" else maxout
        return mlp(sizes, partial(compete, group=static["group"]), **common)
    return mlp(sizes, **common)


def program(task: str, method: str, static: Mapping[str, Any]) -> Program:
    """One agent's life; the number is the mean return of the last tenth of its episodes.

    `steps` among the settings, rounded up to whole chunks, makes it longer or shorter;
    `truncating`, 0 or 1, is the rounding of Catcher and Pixelcopter.
    """
    import jax
    import optax

    from elephant_nn.rl import make_environment
    from elephant_nn.rl.dqn import Agent, Dqn, dqn
    from elephant_nn.runs.program import Program, named_key

    options = {"truncating": bool(static["truncating"])} if "truncating" in static else {}
    environment = make_environment(task, **options)
    settings = Dqn(static["buffer"], updates=static["E"], copy_every=COPY_EVERY[task])
    chunks = -(-static.get("steps", STEPS[task]) // CHUNK)

    def agent(floats: Floats) -> Agent:
        network = network_of(method, static, floats, environment.size, environment.actions)
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
    contract = {"buffer_bytes": static["buffer"] * row_bytes}
    return Program(init, chunk, chunks, finish, contract, lambda carry: carry[0].mind.params)


def life(returns: np.ndarray) -> dict[str, Any]:
    """The columns of a row from the return at every step where an episode ended, NaN elsewhere."""
    import numpy as np

    ends = np.flatnonzero(~np.isnan(returns))
    earned = returns[ends].astype(float)
    if not len(ends):
        return {"return": np.nan, "episodes": 0, "return_curve": np.full(POINTS, np.nan)}
    last = earned[int(0.9 * len(earned)) :]
    sums = np.concatenate([[0.0], np.cumsum(earned)])
    ended = np.searchsorted(ends, np.linspace(0, len(returns), POINTS + 1)[1:])
    first = np.maximum(ended - 50, 0)  # a trailing mean over fifty episodes
    with np.errstate(invalid="ignore"):
        curve = (sums[ended] - sums[first]) / (ended - first)
    return {"return": last.mean(), "episodes": len(ends), "return_curve": curve}


RATES = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6)
SHAPES = {"a": (0.08, 0.16, 0.32, 0.64), "sigma_bias": (0.08, 0.16, 0.32, 0.64, 1.28)}
BUFFER_RATES = RATES[:6]
"""The two smallest rates are the best of no row in the tasks' own sweeps."""
BUFFERS = (32, 100, 300, 1_000, 3_000, 10_000)
"""The sizes of the authors' code; the paper shows the first for EMLP, first and last for MLP."""

COARSE = {
    "catcher": {"lr": (1e-4, 3e-5, 1e-5), "a": (0.08, 0.16, 0.32), "sigma_bias": (0.16, 0.64)},
    "pixelcopter": {"lr": (1e-4, 3e-5, 1e-5), "a": (0.16, 0.32, 0.64), "sigma_bias": (0.32, 1.28)},
}
"""Where a run takes a minute. Pixelcopter shows raw pixels, so its bells are wider."""


def _mlp(buffer: int, lr: float, updates: int) -> Entry:
    return Entry(
        "mlp",
        f"MLP, buffer {buffer:,}",
        {"neurons": 1000, "buffer": buffer, "lr": lr, "E": updates},
        {"lr": RATES, "E": (1, 2)},
        coarse={"lr": RATES[2:], "E": (1,)},
    )


def _emlp(
    buffer: int,
    lr: float,
    updates: int,
    a: float,
    sigma_bias: float,
    coarse: Mapping[str, tuple[float, ...]] | None = None,
) -> Entry:
    settings = {"neurons": 1000, "buffer": buffer, "lr": lr, "E": updates}
    return Entry(
        "emlp",
        f"EMLP, buffer {buffer:,}",
        {**settings, "a": a, "sigma_bias": sigma_bias, "d": 4},
        {"lr": RATES, "E": (1, 2), **SHAPES},
        coarse={**coarse, "E": (1,)} if coarse else {},
    )


def _rival(
    method: str,
    title: str,
    lr: float,
    own: Hyper,
    axes: Mapping[str, tuple[Value, ...]],
    **few: tuple[Value, ...],
) -> Entry:
    """An activation of the authors' later work, with the tiny buffer. Not in the paper.

    `few`: values of its own axes in the coarse grid.
    """
    settings = {"neurons": 1000, "buffer": 32, "lr": lr, "E": 1}
    return Entry(
        method,
        f"{title}, buffer 32",
        {**settings, **own},
        {"lr": RATES, **axes},
        coarse={"lr": (1e-3, 3e-4, 1e-4, 3e-5), **few},
    )


def _rivals(
    fta: tuple[float, float],
    lwta: tuple[float, int],
    maxout: tuple[float, int],
    later: tuple[float, float, float],
) -> tuple[Entry, ...]:
    """Tuned values: (lr, bound), (lr, group), (lr, group) and (lr, a, sigma_bias)."""
    groups = {"group": (2, 5, 10)}
    widths = {"a": (0.1, 0.2, 0.4), "sigma_bias": (0.2, 0.4, 0.8)}
    bounds = {"bound": (0.5, 1.0, 2.0, 4.0, 20.0)}
    shape = {"a": later[1], "sigma_bias": later[2], "d": 4}
    few = {"a": (0.2,), "sigma_bias": (0.4,)}
    return (
        _rival("fta", "FTA", fta[0], {"bound": fta[1], "tiles": 20}, bounds, bound=(2.0, 20.0)),
        _rival("lwta", "LWTA", lwta[0], {"group": lwta[1]}, groups, group=(5,)),
        _rival("maxout", "maxout", maxout[0], {"group": maxout[1]}, groups, group=(5,)),
        _rival("later-emlp", "later EMLP", later[0], shape, widths, **few),
    )


NOTES = (
    "The mean return of the last tenth of a run's training episodes, exploration included; 95% "
    "percentile bootstrap interval of the mean over runs. FTA, LWTA, maxout and the later EMLP are "
    "not in the paper: their settings are guesses where the sweep's table lacks them."
)
PIXEL_NOTES = f"{NOTES} Positions are rounded to pixels as pygame does since 2.3."


def _experiment(
    task: str, title: str, program: Any, entries: tuple[Entry, ...], notes: str = NOTES
) -> Experiment:
    return Experiment(
        name=f"rl-{task}",
        title=title,
        source="Figure 4",
        metrics=(Metric("return", "return", "higher", 1),),
        entries=entries,
        program=program,
        lanes=lambda cell: 5,
        seeds=10,
        notes=notes,
        columns=("buffer_bytes",),
        intervals=True,
    )


RL_MOUNTAIN_CAR = _experiment(
    "mountain-car",
    "MountainCar, DQN",
    mountain_car_program,
    (
        _emlp(32, 1e-3, 1, 0.08, 1.28),
        _mlp(32, 3e-4, 2),
        _mlp(10_000, 3e-4, 2),
        *_rivals((1e-3, 0.5), (3e-3, 2), (3e-6, 2), (1e-4, 0.1, 0.4)),
    ),
)
RL_ACROBOT = _experiment(
    "acrobot",
    "Acrobot, DQN",
    acrobot_program,
    (
        _emlp(32, 1e-4, 1, 0.16, 1.28),
        _mlp(32, 1e-3, 1),
        _mlp(10_000, 3e-4, 2),
        *_rivals((3e-4, 20.0), (1e-3, 5), (1e-3, 5), (1e-3, 0.2, 0.4)),
    ),
)
RL_CATCHER = _experiment(
    "catcher",
    "Catcher, DQN",
    catcher_program,
    (
        _emlp(32, 1e-5, 1, 0.08, 0.16, COARSE["catcher"]),
        _mlp(32, 3e-5, 1),
        _mlp(10_000, 1e-4, 1),
        *_rivals((1e-4, 2.0), (1e-4, 5), (1e-4, 5), (1e-4, 0.2, 0.4)),
    ),
    PIXEL_NOTES,
)
RL_PIXELCOPTER = _experiment(
    "pixelcopter",
    "Pixelcopter, DQN",
    pixelcopter_program,
    (
        _emlp(32, 3e-5, 1, 0.64, 1.28, COARSE["pixelcopter"]),
        _mlp(32, 3e-5, 1),
        _mlp(10_000, 1e-4, 1),
        *_rivals((1e-4, 2.0), (1e-4, 5), (1e-4, 5), (1e-4, 0.2, 0.4)),
    ),
    PIXEL_NOTES,
)


RATE_AND_UPDATES: Mapping[tuple[str, str], Mapping[int, tuple[float, int]]] = {
    ("mountain-car", "emlp"): {
        100: (3e-4, 1), 300: (3e-4, 2), 1_000: (1e-4, 2), 3_000: (3e-4, 1), 10_000: (1e-3, 1),
    },
    ("mountain-car", "mlp"): {100: (1e-3, 1), 300: (3e-3, 2), 1_000: (3e-3, 2), 3_000: (1e-3, 2)},
    ("acrobot", "emlp"): {
        100: (3e-5, 2), 300: (1e-4, 1), 1_000: (3e-5, 2), 3_000: (3e-5, 2), 10_000: (3e-5, 2),
    },
    ("acrobot", "mlp"): {100: (3e-4, 2), 300: (1e-3, 2), 1_000: (3e-4, 2), 3_000: (1e-3, 2)},
}  # fmt: skip
"""By task and method, lr and E of each size that the task's table lacks, as the sweep chose."""


def _sizes(experiment: Experiment, method: str) -> list[Entry]:
    """A task's method with every size of buffer.

    Sizes that the task's table has keep the settings found there; for others rate and E are
    searched anew.
    """
    task = experiment.name.removeprefix("rl-")
    in_the_table = {e.settings["buffer"]: e for e in experiment.entries if e.method == method}
    found = RATE_AND_UPDATES[task, method]
    entries = []
    for buffer in BUFFERS:
        settings = {**in_the_table.get(buffer, in_the_table[32]).settings, "task": task}
        title = f"{method.upper()}, {task}, buffer {buffer:,}"
        if buffer in in_the_table:
            entries.append(Entry(method, title, settings))
            continue
        lr, updates = found[buffer]
        settings |= {"buffer": buffer, "lr": lr, "E": updates}
        entries.append(Entry(method, title, settings, {"lr": BUFFER_RATES, "E": (1, 2)}))
    return entries


RL_BUFFERS = Experiment(
    name="rl-buffers",
    title="Return against the size of the buffer, DQN",
    source="beyond the paper",
    metrics=(Metric("return", "return", "higher", 1),),
    entries=tuple(
        entry
        for experiment in (RL_MOUNTAIN_CAR, RL_ACROBOT)
        for method in ("emlp", "mlp")
        for entry in _sizes(experiment, method)
    ),
    program=buffers_program,
    lanes=lambda cell: 5,
    seeds=10,
    notes="Sizes that are in the tables of the tasks have the settings chosen there, but runs of "
    "their own. For others rate and E are chosen here, on other seeds; width and bias of the EMLP "
    "are those of the buffer of 32.",
    columns=("task", "buffer", "buffer_bytes"),
    intervals=True,
)
