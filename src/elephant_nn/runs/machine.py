"""Which code and machine a row comes from."""

import os
import platform
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path


@lru_cache
def machine() -> dict[str, str | int]:
    """The columns that every row records: versions, processor, threads."""
    packages = ("elephant-nn", "jax", "numpy")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    threads = int(os.environ.get("PJRT_NPROC") or cores())
    return {
        "versions": f"{versions}, python {platform.python_version()}",
        "processor": _processor(),
        "threads": threads,
    }


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    pairs = (line.split(":", 1) for line in reversed(lines) if ":" in line)
    facts = {name.strip(): value.strip() for name, value in pairs}
    vectors = next((v for v in ("avx512f", "avx2") if v in facts.get("flags", "").split()), "")
    return f"{facts.get('model name', platform.machine())} {vectors}".strip()
