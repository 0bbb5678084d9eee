"""A builder's signature declares a method: `float` parameters are traced, `int` and `str` static.

    def my_method(shape, classes, *, neurons: int, lr: float, updates: int = 1) -> Learner: ...

One compiled program then serves every value of `lr`, and each value of `neurons` has its own.
"""

import inspect
import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elephant_nn.learners.learner import Learner

KINDS = (float, int, str)
SYMBOLS = {"E": "updates", "lambda": "weight", "gamma": "decay"}
"""Symbols of the paper that settings may use for a parameter."""

Settings = Mapping[str, float | int | str]


@dataclass(frozen=True)
class Parameter:
    """A setting that a builder declares."""

    name: str
    kind: type
    required: bool


@lru_cache
def declared(build: Callable[..., Any]) -> dict[str, Parameter]:
    """The keyword-only parameters of a builder that are annotated `float`, `int` or `str`."""
    found = inspect.signature(build, eval_str=True).parameters.values()
    return {
        p.name: Parameter(p.name, p.annotation, p.default is inspect.Parameter.empty)
        for p in found
        if p.kind is p.KEYWORD_ONLY and p.annotation in KINDS
    }


def parameter_name(symbol: str, known: Mapping[str, Parameter]) -> str:
    """The parameter that a setting's name stands for."""
    return symbol if symbol in known else SYMBOLS.get(symbol, symbol)


def coerce(name: str, value: Any, kind: type) -> float | int | str:
    """The value as its declared kind: `lr=1` is 1.0."""
    if kind is str:
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a string, got {value!r}")
        return value
    if isinstance(value, str) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if kind is int:
        if not float(value).is_integer():
            raise ValueError(f"{name} must be a whole number, got {value!r}")
        return int(value)
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value!r}")
    return float(value)


@dataclass(frozen=True)
class Recipe:
    """A builder with its static settings: hashable, so compiled programs can be cached by it."""

    build: Callable[..., Any]
    args: tuple[Hashable, ...] = ()
    static: tuple[tuple[str, Hashable], ...] = ()
    traced: tuple[str, ...] = ()

    def __call__(self, floats: Mapping[str, Any]) -> Any:
        """Build with these values of the traced parameters; others in `floats` are ignored."""
        return self.build(
            *self.args, **dict(self.static), **{name: floats[name] for name in self.traced}
        )


def make_recipe(
    build: Callable[..., Any], args: tuple[Any, ...], settings: Settings
) -> tuple[Recipe, dict[str, float]]:
    """The recipe of a builder with these settings, and the values of its traced parameters."""
    known, others = declared(build), inspect.signature(build).parameters
    values, given = {}, {}
    for symbol, value in settings.items():
        name = parameter_name(symbol, known)
        if name not in known and name in others:
            given[name] = value
            continue
        if name not in known:
            raise TypeError(
                f"{build.__name__} has no setting {symbol!r}; it declares "
                f"{', '.join(known) or 'none'} (keyword-only parameters annotated float, int "
                "or str)"
            )
        values[name] = coerce(symbol, value, known[name].kind)
    missing = [p.name for p in known.values() if p.required and p.name not in values]
    if missing:
        raise TypeError(f"{build.__name__} needs a value for {', '.join(missing)}")
    floats = {name: float(v) for name, v in values.items() if known[name].kind is float}
    static = tuple((n, v) for n, v in sorted({**values, **given}.items()) if n not in floats)
    return Recipe(build, args, static, tuple(sorted(floats))), floats


def inject_hyperparams(build: Callable[..., "Learner"]) -> Callable[..., "Learner"]:
    """Turn a builder's `float` parameters into traced hyper-parameters, as optax's namesake does.

    Call the result like the builder. `learn` then compiles once for all their values:

        def method(*, lr: float) -> Learner:
            return gradient(network, optax.adam(lr))

        for lr in (1e-2, 1e-3, 1e-4):
            learn(inject_hyperparams(method)(lr=lr), stream, key)

    The builder runs once with the concrete values, so that its range checks act.
    """

    def make(*args: Any, **settings: Any) -> "Learner":
        recipe, floats = make_recipe(build, args, settings)
        learner = replace(recipe(floats))
        # Not arguments of Learner: `replace` on the result drops them, as it changes the learner.
        object.__setattr__(learner, "recipe", recipe)
        object.__setattr__(learner, "hyperparameters", tuple(floats.items()))
        return learner

    return make
