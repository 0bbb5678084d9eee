"""The wheel in an empty environment, outside the checkout: alone, then with its extras."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CORE = """
import sys
import jax, numpy as np, optax
import elephant_nn
from elephant_nn import check_learner, emlp, gradient, learn, load, sample_stream

for name in elephant_nn.__all__:
    getattr(elephant_nn, name)
rng = np.random.default_rng(0)
x = rng.normal(size=(40, 3)).astype(np.float32)
y = np.arange(40) % 2
np.savez("mine.npz", x_train=x, y_train=y, x_test=x, y_test=y)
assert load("mine.npz").classes == 2
learner = gradient(emlp((3, 20, 1), a=0.5, sigma_bias=0.5), optax.adam(1e-3))
check_learner(learner, x, x[:, :1])
state, errors = learn(learner, sample_stream(x, x[:, 0]), jax.random.key(0))
assert np.isfinite(errors).all()
missing = {"polars", "sklearn", "matplotlib", "tyro", "PIL"} & set(sys.modules)
assert not missing, missing
try:
    load("digits")
except Exception as error:
    assert "elephant-nn[experiments]" in str(error), error
"""


def run(*command, cwd, **options):
    environment = {n: v for n, v in os.environ.items() if n not in ("PYTHONPATH", "XLA_FLAGS")}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, **options
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.slow
def test_the_wheel_works_alone_and_with_its_extras(tmp_path):
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "wheel", "--quiet", "--no-deps", "-w", str(tmp_path), str(ROOT), cwd=tmp_path)
    (wheel,) = tmp_path.glob("elephant_nn-*.whl")
    run(sys.executable, "-m", "venv", str(tmp_path / "venv"), cwd=tmp_path)
    python, elephant = (str(tmp_path / "venv" / "bin" / n) for n in ("python", "elephant"))
    constraints = ("-c", str(ROOT / "constraints.txt"))
    install = (python, "-m", "pip", "install", "--quiet", *constraints)
    run(*install, str(wheel), cwd=tmp_path)
    installed = run(python, "-m", "pip", "list", "--format=freeze", cwd=tmp_path).lower()
    assert "polars" not in installed
    assert "scikit-learn" not in installed
    run(python, "-c", CORE, cwd=tmp_path)
    without = subprocess.run([elephant, "list"], cwd=tmp_path, capture_output=True, text=True)
    assert without.returncode == 2
    assert 'pip install "elephant-nn[experiments]"' in without.stderr
    run(*install, f"{wheel}[experiments]", cwd=tmp_path)
    assert "split-mnist" in run(elephant, "list", cwd=tmp_path)
    assert "elephant" in run(elephant, "reproduce", "activations", "--workers", "1", cwd=tmp_path)
    assert (tmp_path / "results" / "activations" / "figures" / "elephant-functions.png").exists()
    bench = subprocess.run([elephant, "bench"], cwd=tmp_path, capture_output=True, text=True)
    assert bench.returncode == 2
    assert "source checkout" in bench.stderr
