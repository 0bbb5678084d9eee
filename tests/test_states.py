from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from safetensors.numpy import save

from elephant_nn import (
    emlp,
    function_stream,
    gradient,
    learn,
    load_state,
    sample_stream,
    save_state,
)
from elephant_nn.files import StorageError
from elephant_nn.states import read_state

KEY = jax.random.key(0)
LEARNER = gradient(emlp((1, 10, 1), a=0.2, sigma_bias=0.5), optax.adam(1e-2))
STATE = LEARNER.init(KEY, jnp.ones((1, 1)))


class Sampling(NamedTuple):
    weights: jax.Array
    key: jax.Array


def leaves(state):
    plain = lambda leaf: (
        jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf
    )
    return [(leaf.dtype, leaf.shape, np.asarray(plain(leaf)).tobytes()) for leaf in
            jax.tree.leaves(state)]  # fmt: skip


def test_learning_continues_from_a_file(tmp_path):
    stream = function_stream(jnp.cos, 0, 1, samples=10, test_samples=5)
    halves = [sample_stream(stream.x[part], stream.y[part]) for part in (slice(5), slice(5, 10))]
    state, _ = learn(LEARNER, halves[0], KEY)
    loaded = load_state(save_state(tmp_path / "state.safetensors", state), like=STATE)
    assert jax.tree.structure(loaded) == jax.tree.structure(state)
    assert leaves(loaded) == leaves(state) != leaves(STATE)
    continued = [learn(LEARNER, halves[1], KEY, state=each)[0] for each in (state, loaded)]
    assert leaves(continued[0]) == leaves(continued[1])


@pytest.mark.parametrize(
    "state",
    [
        STATE,
        Sampling(jnp.arange(3.0), jax.random.key(5)),
        Sampling(jnp.ones((2, 0)), jax.random.split(jax.random.key(5), 3)),
        Sampling(jnp.array(True), jax.random.key(5, impl="rbg")),
        {"half": jnp.ones(3, jnp.bfloat16), "turned": jnp.arange(6).reshape(2, 3).T},
        jnp.float32(3),
        (),
    ],
    ids=["gradient", "key", "keys", "rbg", "types", "scalar", "empty"],
)
def test_states_are_restored_exactly(tmp_path, state):
    path = save_state(tmp_path / "state", state)
    for like in (state, jax.eval_shape(lambda: state)):
        loaded = load_state(path, like)
        assert jax.tree.structure(loaded) == jax.tree.structure(state)
        assert leaves(loaded) == leaves(state)


def test_restored_keys_give_the_same_numbers(tmp_path):
    state = Sampling(jnp.zeros(2), jax.random.key(7))
    loaded = load_state(save_state(tmp_path / "state", state), state)
    assert jax.random.normal(loaded.key) == jax.random.normal(state.key)


def test_metadata(tmp_path):
    path = save_state(tmp_path / "state", STATE, {"run": "first"})
    assert read_state(path, STATE)[1] == {"run": "first"}
    changed = path.read_bytes().replace(b'"first"', b'"other"')
    path.write_bytes(changed)
    with pytest.raises(StorageError, match="does not match its checksum"):
        load_state(path, STATE)


def damaged(tmp_path: Path, change) -> Path:
    path = save_state(tmp_path / "state", STATE)
    content = bytearray(path.read_bytes())
    path.write_bytes(change(content))
    return path


def flipped(content):
    content[-5] ^= 1
    return content


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (flipped, "is damaged: its content does not match its checksum"),
        (lambda content: content[:-10], "is damaged, or not a saved state"),
        (lambda content: content[:50], "is damaged, or not a saved state"),
        (lambda content: content + b"more", "is damaged, or not a saved state"),
        (lambda content: b"", "is damaged, or not a saved state"),
        (lambda content: b"an essay about elephants", "is damaged, or not a saved state"),
        (lambda content: save({"w": np.ones(3)}), "was not written by save_state"),
    ],
    ids=["flipped", "truncated", "header", "longer", "empty", "foreign", "no checksum"],
)
def test_damaged_and_foreign_files_are_refused(tmp_path, change, message):
    path = damaged(tmp_path, change)
    with pytest.raises(StorageError, match=message) as caught:
        load_state(path, STATE)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_flipped_byte_is_found(tmp_path):
    state = {"w": jnp.arange(3.0)}
    path = save_state(tmp_path / "state", state)
    content = path.read_bytes()
    for i in range(0, len(content), 3):
        path.write_bytes(content[:i] + bytes([content[i] ^ 0x10]) + content[i + 1 :])
        with pytest.raises(StorageError):
            load_state(path, state)


def test_missing_files_and_folders_are_refused(tmp_path):
    with pytest.raises(StorageError, match="there is no file"):
        load_state(tmp_path / "state", STATE)
    with pytest.raises(StorageError, match="not a saved state"):
        load_state(tmp_path, STATE)
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot write"):
        save_state(tmp_path / "file" / "state", STATE)


@pytest.mark.parametrize(
    ("saved", "like"),
    [
        ({"w": jnp.ones(3)}, {"v": jnp.ones(3)}),
        ({"w": jnp.ones(3)}, {"w": jnp.ones(4)}),
        ({"w": jnp.ones(3)}, {"w": jnp.ones(3, int)}),
        ({"w": jnp.ones(3)}, {"w": jnp.ones(3), "v": jnp.ones(3)}),
        ({"w": jnp.ones(2)}, {"w": jax.random.key(0)}),
        ({"w": jax.random.split(KEY, 2)}, {"w": jax.random.key(0)}),
        ({"w": jax.random.key(0, impl="rbg")}, {"w": jax.random.key(0)}),
    ],
    ids=["name", "shape", "type", "missing", "key", "keys", "rbg"],
)
def test_states_of_other_learners_are_refused(tmp_path, saved, like):
    path = save_state(tmp_path / "state", saved)
    with pytest.raises(StorageError, match="holds the state of another learner"):
        load_state(path, like)
