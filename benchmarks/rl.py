"""DQN: training steps per second, compared with loops over Gymnasium environments in Python."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.table import Measurement
from elephant_nn.runs.machine import cores
from elephant_nn.runs.worker import Worker

LANES, CHUNKS, LOOP_STEPS, REPEATS = 5, 3, 3000, 2
TARGETS = {"mountain-car": 12, "catcher": 10, "pixelcopter": 10}
SETTINGS: dict[str, Any] = {"neurons": 1000, "buffer": 32, "E": 1, "d": 4}
FLOATS = {"lr": 3e-4, "a": 0.16, "sigma_bias": 0.32}


def measure() -> list[Measurement]:
    found: list[Measurement] = []
    for task, target in TARGETS.items():
        rates: dict[Any, list[float]] = {
            how: [] for how in (_our_rate, _typical_rate, _lean_rate, _arithmetic_rate)
        }
        for _ in range(REPEATS):  # alternating, so that other load affects all of them
            for how, found_rates in rates.items():
                found_rates.append(_total_rate(how, task))
        ours, typical, lean, arithmetic = map(max, rates.values())
        what = f"DQN on {task}, EMLP of 1,000 units, {LANES * cores()} seeds, {cores()} cores"
        rate = f"{ours:,.0f} steps per second"
        loops = (
            ("keys split and losses read in Python", typical, f">= {target}"),
            ("NumPy's random numbers, no losses read", lean, ""),
        )
        for how, theirs, goal in loops:
            loop = f"Gymnasium, jitted act and update, one process per core, {how}: {theirs:,.0f}"
            found.append(Measurement(what, rate, loop, ours / theirs, goal))
        bound = (
            "the arithmetic alone, 1.5 million operations and three element-wise passes per step: "
            f"{arithmetic:,.0f}"
        )
        found.append(Measurement(what, rate, bound, arithmetic / ours, ""))
    return found


def _total_rate(rate: Any, task: str) -> float:
    """Steps per second, summed over one process per core that run at the same time."""
    workers = [Worker(threads=1) for _ in range(cores())]
    for worker in workers:
        worker.send(rate, task)
    total = sum(worker.receive() for worker in workers)
    for worker in workers:
        worker.stop()
    return float(total)


def _our_rate(task: str) -> float:
    """As the runner does it: lanes side by side in one single-threaded program."""
    import jax
    import jax.numpy as jnp

    from elephant_nn.runs.cells import Cell
    from elephant_nn.runs.program import cell_key, resolve
    from elephant_nn.runs.shard import Shard, Work, compiled

    home, name = "elephant_nn.experiments", f"rl-{task}"
    problem = f"{home}.problems:{task.replace('-', '_')}"
    cells = tuple(Cell.of(name, "emlp", {**SETTINGS, **FLOATS}, seed) for seed in range(LANES))
    steps, floats = compiled(Shard(Work(problem, f"{home}.methods:q_emlp"), cells, LANES))
    keys = jnp.stack([cell_key(name, seed) for seed in range(LANES)])
    carry = steps.start(keys, floats, None)
    for index in (0, 1):  # learning starts in the second chunk
        carry, _, _ = steps.advance(carry, floats, None, index)
    jax.block_until_ready(carry)
    started = time.perf_counter()
    for index in range(2, 2 + CHUNKS):
        carry, _, _ = steps.advance(carry, floats, None, index)
    jax.block_until_ready(carry)
    taken = time.perf_counter() - started
    return LANES * CHUNKS * resolve(problem).steps_per_chunk / taken


def _arithmetic_rate(task: str) -> float:
    """The arithmetic of a training step alone, in the fastest shapes.

    One product of a 32 x 1000 and a 1000 x 24 matrix, and three passes over 32 x 1000 numbers: the
    activation twice and its derivative.
    """
    import jax
    import jax.numpy as jnp

    steps = 1000
    weights = jnp.full((1000, 24), 1e-3)
    barrier = jax.lax.optimization_barrier

    def step(h: Any, _: Any) -> tuple[Any, Any]:
        for _ in range(2):
            h = barrier(1 / (1 + h * h))
        h = barrier(h * h * (h - 1))
        return h, h @ weights

    def all_steps(h: Any) -> Any:
        h, out = jax.lax.scan(step, h, None, steps)
        return h, out.sum()

    run = jax.jit(all_steps, compiler_options={"xla_cpu_prefer_vector_width": 512})
    h = jnp.ones((LANES * 32, 1000))
    jax.block_until_ready(run(h))
    started = time.perf_counter()
    jax.block_until_ready(run(h))
    return LANES * steps / (time.perf_counter() - started)


def _typical_rate(task: str) -> float:
    """A typical research loop: keys are split in Python and every loss is read for the log."""
    import jax
    import jax.numpy as jnp

    loop = _Loop(task)

    @jax.jit
    def act(params: Any, x: Any, key: Any) -> Any:
        explore, choose = jax.random.split(key)
        greedy = jnp.argmax(loop.network.apply(params, x[None])[0])
        random = jax.random.randint(choose, (), 0, loop.actions)
        return jnp.where(jax.random.uniform(explore) < 0.01, random, greedy)

    key, losses = jax.random.key(0), []

    def choose(observation: np.ndarray) -> int:
        nonlocal key
        key, action_key = jax.random.split(key)
        return int(act(loop.params, observation, action_key))

    return loop.rate(choose, lambda loss: losses.append(float(loss)))


def _lean_rate(task: str) -> float:
    """The same loop with random numbers from NumPy, and no loss read."""
    import jax
    import jax.numpy as jnp

    loop = _Loop(task)
    act = jax.jit(lambda params, x: jnp.argmax(loop.network.apply(params, x[None])[0]))

    def choose(observation: np.ndarray) -> int:
        if loop.rng.random() < 0.01:
            return int(loop.rng.integers(loop.actions))
        return int(act(loop.params, observation))

    return loop.rate(choose, lambda loss: None)


class _Loop:
    """DQN as a Python loop: a Gymnasium environment, a NumPy replay buffer, a jitted update."""

    def __init__(self, task: str):
        import gymnasium
        import jax
        import jax.numpy as jnp
        import optax

        from benchmarks.games import PlainCatcher, PlainPixelcopter
        from elephant_nn.nn.networks import emlp

        factories: dict[str, Any] = {
            "mountain-car": lambda: gymnasium.make("MountainCar-v0", max_episode_steps=1000),
            "catcher": PlainCatcher,
            "pixelcopter": PlainPixelcopter,
        }
        self.env = factories[task]()
        self.rng = np.random.default_rng(0)
        self.observation, _ = self.env.reset(seed=0)
        self.actions = 2 if task == "pixelcopter" else 3
        sizes = (len(self.observation), 1000, self.actions)
        shape: dict[str, Any] = {"a": FLOATS["a"], "sigma_bias": FLOATS["sigma_bias"]}
        self.network = network = emlp(sizes, **shape, output_bias=True)
        optimiser = optax.rmsprop(FLOATS["lr"], decay=0.999)
        self.params = network.init(jax.random.key(0))
        self.opt_state = optimiser.init(self.params)

        @jax.jit
        def update(
            params: Any, opt_state: Any, target: Any, s: Any, a: Any, r: Any, m: Any, n: Any
        ) -> Any:
            targets = r + 0.99 * m * network.apply(target, n).max(1)
            chosen = lambda p: jnp.take_along_axis(network.apply(p, s), a[:, None], 1)[:, 0]
            loss = lambda p: jnp.mean((chosen(p) - targets) ** 2)
            value, gradient = jax.value_and_grad(loss)(params)
            change, opt_state = optimiser.update(gradient, opt_state, params)
            return optax.apply_updates(params, change), opt_state, value

        self.update = update

    def rate(self, choose: Callable[[np.ndarray], int], log: Callable[[Any], None]) -> float:
        """Steps per second, without compilation."""
        import jax

        capacity, size = SETTINGS["buffer"], len(self.observation)
        s, n = np.zeros((capacity, size), np.float32), np.zeros((capacity, size), np.float32)
        a = np.zeros(capacity, np.int32)
        r, m = np.zeros(capacity, np.float32), np.zeros(capacity, np.float32)
        target, started = self.params, 0.0
        for step in range(LOOP_STEPS + 200):
            if step == 200:
                started = time.perf_counter()
            action = choose(self.observation)
            after, reward, terminated, truncated, _ = self.env.step(action)
            i = step % capacity
            s[i], a[i], r[i], m[i], n[i] = self.observation, action, reward, not terminated, after
            rows = self.rng.integers(min(step + 1, capacity), size=32)
            self.params, self.opt_state, loss = self.update(
                self.params, self.opt_state, target, s[rows], a[rows], r[rows], m[rows], n[rows]
            )
            log(loss)
            if step % 100 == 0:
                target = self.params
            self.observation = self.env.reset()[0] if terminated or truncated else after
        jax.block_until_ready(self.params)
        return LOOP_STEPS / (time.perf_counter() - started)
