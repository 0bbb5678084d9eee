import atexit
import os
import shutil
import tempfile

import jax
import pytest
from hypothesis import settings
from support import QUICK_TO_COMPILE

# Commands and workers that the tests start compile the same programs again and again. Set here, the
# folder is the same for all processes of one test run, and for that run only.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    folder = tempfile.mkdtemp(prefix="elephant-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = folder
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    os.environ["PYTHONWARNINGS"] = "ignore:Error reading persistent compilation cache entry"
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)

# Nearly all of the time goes into compiling small programs: here LLVM takes no pains over them.
# Commands and workers that the tests start do not inherit it; their programs are a user's.
with pytest.MonkeyPatch.context() as here:
    here.setenv("XLA_FLAGS", QUICK_TO_COMPILE)
    jax.config.update("jax_platforms", "cpu")
    jax.devices()

# Compilation makes the first example slow, so no deadline; the same examples on every machine.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")
