import jax
import pytest
from hypothesis import settings

# Compilation makes the first example slow, so no deadline; the same examples on every machine.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")


@pytest.fixture(scope="session", autouse=True)
def _on_cpu():
    jax.config.update("jax_platforms", "cpu")
