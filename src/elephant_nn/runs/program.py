"""A program is one run as pure functions; the runner vectorises, compiles and checkpoints it."""

import hashlib
import importlib
import importlib.util
import inspect
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key

from elephant_nn.learners.recipe import Recipe, declared, make_recipe, parameter_name
from elephant_nn.runs.cells import Hyper

Carry = Any
Data = Any
Floats = Mapping[str, Array]
Outputs = dict[str, Array]


@dataclass(frozen=True)
class Program:
    """One run of a method on a problem.

    Attributes:
        init: `init(key, floats, data) -> carry`, from the run's key, its traced hyper-parameters
            and the data.
        chunk: `chunk(carry, floats, data, index) -> carry, outputs`: a fixed part of the run.
            Progress, checkpoints and the check for divergence happen between chunks.
        chunks: the number of chunks of a run.
        finish: turns the outputs of a run (each with a leading axis of chunks) into the columns of
            its row: numbers are metrics, arrays are curves.
        contract: columns that state the rules of the run.
        data: the arrays that all runs share, as arguments of the compiled functions.
        check: builds the method with concrete hyper-parameters, so that its range checks act;
            traced values pass all of them.
        learned: the part of the last carry to keep beside the row, if the runner is asked to.
    """

    init: Callable[[Key[Array, ""], Floats, Data], Carry]
    chunk: Callable[[Carry, Floats, Data, Int[Array, ""]], tuple[Carry, Outputs]]
    chunks: int
    finish: Callable[[Mapping[str, np.ndarray]], dict[str, Any]]
    contract: Mapping[str, int | bool | str]
    data: Data = None
    check: Callable[[Mapping[str, float]], Any] = lambda floats: None
    learned: Callable[[Carry], Any] | None = None


@dataclass(frozen=True)
class Method:
    """A builder and the settings it is to be built with."""

    build: Callable[..., Any]
    settings: Hyper

    def recipe(self, *args: Any, **context: Any) -> Recipe:
        """The recipe for these arguments; `context` goes to the parameters that name it."""
        known = inspect.signature(self.build).parameters
        given = {name: value for name, value in context.items() if name in known}
        return make_recipe(self.build, args, {**self.settings, **given})[0]


@runtime_checkable
class Problem(Protocol):
    """What is to be learned and how it is evaluated.

    The keyword-only parameters of `program` declare the problem's own settings, as a builder's do.
    Those annotated `float` are traced: `program` itself gets NaN for them, and the functions of the
    program it returns find the values in `floats`.
    """

    @property
    def program(self) -> Callable[..., Program]: ...

    def lanes(self, hyper: Hyper) -> int:
        """How many runs like this go side by side."""
        ...


@dataclass(frozen=True)
class Bound:
    """Settings divided by who declares them, and by whether they are traced."""

    static: tuple[tuple[str, Any], ...]
    traced: tuple[str, ...]
    method: Method
    floats: Mapping[str, float]

    @property
    def own(self) -> dict[str, Any]:
        """The settings of the problem's `program`."""
        return {**dict(self.static), **dict.fromkeys(self.traced, math.nan)}


def bind(problem: Problem, build: Callable[..., Any], hyper: Hyper) -> Bound:
    """Give each setting to the problem or the builder that declares it, or to both."""
    declarers = (problem.program, build)
    mine: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for symbol, value in hyper.items():
        takers = [
            into
            for declarer, into in zip(declarers, mine, strict=True)
            if parameter_name(symbol, declared(declarer)) in declared(declarer)
        ]
        for into in takers:
            into[symbol] = value
        if not takers:
            raise TypeError(
                f"neither {build.__name__} nor the problem has a setting {symbol!r}; they declare "
                f"{', '.join(declared(build)) or 'none'}, and "
                f"{', '.join(declared(problem.program))} (keyword-only parameters annotated float, "
                "int or str)"
            )
    (recipe, floats), (_, floats_too) = (
        make_recipe(declarer, (), own) for declarer, own in zip(declarers, mine, strict=True)
    )
    both = declared(problem.program).keys() & declared(build).keys()
    for name in both:
        kinds = {declared(declarer)[name].kind.__name__ for declarer in declarers}
        if len(kinds) > 1:
            raise TypeError(f"{build.__name__} and the problem declare {name} as {kinds}; agree")
    return Bound(recipe.static, recipe.traced, Method(build, mine[1]), {**floats, **floats_too})


def resolve(name: str) -> Any:
    """The object behind "module:attribute", or "path/to/file.py:attribute"."""
    home, _, attribute = name.rpartition(":")
    module = _module_of_file(Path(home)) if home.endswith(".py") else importlib.import_module(home)
    try:
        return getattr(module, attribute)
    except AttributeError:
        raise AttributeError(
            f"{home} has no {attribute!r}, which a row names as {name!r}"
        ) from None


def source_hash(function: Callable[..., Any]) -> str:
    """A hash of the file that a builder is in; empty for the package's own."""
    file = inspect.getsourcefile(function)
    if file is None or function.__module__.partition(".")[0] == "elephant_nn":
        return ""
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16]


def _module_of_file(path: Path) -> Any:
    """The module of a file, imported again when its content changes."""
    text = path.read_bytes() + str(path.resolve()).encode()
    name = f"elephant_rows_{hashlib.sha256(text).hexdigest()[:16]}"
    if name not in sys.modules:
        if str(path.parent) not in sys.path:
            sys.path.append(str(path.parent))  # it may import modules beside it
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


def cell_key(experiment: str, seed: int) -> Key[Array, ""]:
    """The random key of a run, from the table's name and the seed.

    Methods and settings with the same seed share it, so they see the same data in the same order
    and comparisons between them are paired; adding cells never changes others.
    """
    name = hashlib.sha256(f"{experiment}/{seed}".encode()).digest()
    return jax.random.wrap_key_data(
        jnp.asarray(np.frombuffer(name[:8], np.uint32)), impl="threefry2x32"
    )
