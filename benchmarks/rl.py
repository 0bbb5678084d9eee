"""DQN: steps a second with learning, against Gymnasium and jitted functions called from Python."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import Measurement
from elephant_nn.runs.executors import cores, local_pool

LANES, CHUNKS, LOOP_STEPS, REPEATS = 5, 3, 3000, 2
TARGETS = {"mountain-car": 12, "catcher": 10, "pixelcopter": 10}
SETTINGS: dict[str, Any] = {"neurons": 1000, "buffer": 32, "E": 1, "d": 4}
FLOATS = {"lr": 3e-4, "a": 0.16, "sigma_bias": 0.32}


def measure() -> list[Measurement]:
    found: list[Measurement] = []
    for task, target in TARGETS.items():
        rates: dict[Any, list[float]] = {
            how: [] for how in (_our_rate, _usual_rate, _lean_rate, _bare_rate)
        }
        for _ in range(REPEATS):  # in turn, so that a busy moment meets them all
            for how, found_rates in rates.items():
                found_rates.append(_everywhere(how, task))
        ours, usual, lean, bare = map(max, rates.values())
        what = f"DQN on {task}, EMLP of 1,000 units, {LANES * cores()} seeds, {cores()} cores"
        rate = f"{ours:,.0f} steps a second"
        rivals = (
            ("keys split and losses read in Python", usual, f">= {target}"),
            ("NumPy's random numbers, nothing read", lean, ""),
        )
        for how, theirs, goal in rivals:
            rival = f"Gymnasium, jitted act and update, a process a core, {how}: {theirs:,.0f}"
            found.append(Measurement(what, rate, rival, ours / theirs, goal))
        about = f"1.5 million operations and three element-wise passes a step, {bare:,.0f} a second"
        found.append(Measurement(what, rate, about, bare / ours, ""))
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


def _bare_rate(task: str) -> float:
    """The arithmetic of a step alone, in the shapes that suit it best.

    A product of 32 x 1000 by 1000 x 24 numbers, and three passes over 32 x 1000: two bells, and a
    slope by multiplications.
    """
    import jax
    import jax.numpy as jnp

    steps = 1000
    weights = jnp.full((1000, 24), 1e-3)
    apart = jax.lax.optimization_barrier

    def step(h: Any, _: Any) -> tuple[Any, Any]:
        for _ in range(2):
            h = apart(1 / (1 + h * h))
        h = apart(h * h * (h - 1))
        return h, h @ weights

    def whole(h: Any) -> Any:
        h, out = jax.lax.scan(step, h, None, steps)
        return h, out.sum()

    run = jax.jit(whole, compiler_options={"xla_cpu_prefer_vector_width": 512})
    h = jnp.ones((LANES * 32, 1000))
    jax.block_until_ready(run(h))
    started = time.perf_counter()
    jax.block_until_ready(run(h))
    return LANES * steps / (time.perf_counter() - started)


def _usual_rate(task: str) -> float:
    """As research code usually does it: keys split in Python, each loss read for the log."""
    import jax
    import jax.numpy as jnp

    loop = _Loop(task)

    @jax.jit
    def act(params: Any, x: Any, key: Any) -> Any:
        explore, choose = jax.random.split(key)
        best = jnp.argmax(loop.network.apply(params, x[None])[0])
        other = jax.random.randint(choose, (), 0, loop.actions)
        return jnp.where(jax.random.uniform(explore) < 0.01, other, best)

    key, losses = jax.random.key(0), []

    def choose(seen: np.ndarray) -> int:
        nonlocal key
        key, now = jax.random.split(key)
        return int(act(loop.params, seen, now))

    return loop.rate(choose, lambda loss: losses.append(float(loss)))


def _lean_rate(task: str) -> float:
    """The same loop with all randomness from NumPy, and no loss ever read."""
    import jax
    import jax.numpy as jnp

    loop = _Loop(task)
    act = jax.jit(lambda params, x: jnp.argmax(loop.network.apply(params, x[None])[0]))

    def choose(seen: np.ndarray) -> int:
        if loop.rng.random() < 0.01:
            return int(loop.rng.integers(loop.actions))
        return int(act(loop.params, seen))

    return loop.rate(choose, lambda loss: None)


class _Loop:
    """One Gymnasium environment, a replay of NumPy arrays, a jitted update, a loop in Python."""

    def __init__(self, task: str):
        import gymnasium
        import jax
        import jax.numpy as jnp
        import optax

        from benchmarks.games import PlainCatcher, PlainCopter
        from elephant_nn.nn.networks import emlp

        makers: dict[str, Any] = {
            "mountain-car": lambda: gymnasium.make("MountainCar-v0", max_episode_steps=1000),
            "catcher": PlainCatcher,
            "pixelcopter": PlainCopter,
        }
        self.game = makers[task]()
        self.rng = np.random.default_rng(0)
        self.seen, _ = self.game.reset(seed=0)
        self.actions = 2 if task == "pixelcopter" else 3
        sizes = (len(self.seen), 1000, self.actions)
        shape: dict[str, Any] = {"a": FLOATS["a"], "sigma_bias": FLOATS["sigma_bias"]}
        self.network = network = emlp(sizes, **shape, output_bias=True)
        optimiser = optax.rmsprop(FLOATS["lr"], decay=0.999)
        self.params = network.init(jax.random.key(0))
        self.memory = optimiser.init(self.params)

        @jax.jit
        def update(
            params: Any, memory: Any, target: Any, s: Any, a: Any, r: Any, m: Any, n: Any
        ) -> Any:
            goal = r + 0.99 * m * network.apply(target, n).max(1)
            chosen = lambda p: jnp.take_along_axis(network.apply(p, s), a[:, None], 1)[:, 0]
            loss, slopes = jax.value_and_grad(lambda p: jnp.mean((chosen(p) - goal) ** 2))(params)
            change, memory = optimiser.update(slopes, memory, params)
            return optax.apply_updates(params, change), memory, loss

        self.update = update

    def rate(self, choose: Callable[[np.ndarray], int], log: Callable[[Any], None]) -> float:
        """Steps a second, after everything has been compiled."""
        import jax

        capacity, size = SETTINGS["buffer"], len(self.seen)
        s, n = np.zeros((capacity, size), np.float32), np.zeros((capacity, size), np.float32)
        a = np.zeros(capacity, np.int32)
        r, m = np.zeros(capacity, np.float32), np.zeros(capacity, np.float32)
        target, started = self.params, 0.0
        for step in range(LOOP_STEPS + 200):
            if step == 200:
                started = time.perf_counter()
            action = choose(self.seen)
            after, reward, over, late, _ = self.game.step(action)
            i = step % capacity
            s[i], a[i], r[i], m[i], n[i] = self.seen, action, reward, not over, after
            rows = self.rng.integers(min(step + 1, capacity), size=32)
            self.params, self.memory, loss = self.update(
                self.params, self.memory, target, s[rows], a[rows], r[rows], m[rows], n[rows]
            )
            log(loss)
            if step % 100 == 0:
                target = self.params
            self.seen = self.game.reset()[0] if over or late else after
        jax.block_until_ready(self.params)
        return LOOP_STEPS / (time.perf_counter() - started)
