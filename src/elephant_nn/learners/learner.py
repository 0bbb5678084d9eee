"""What every learner is, and what it may ask of the stream."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, ArrayLike, Key

from elephant_nn.learners.recipe import Recipe
from elephant_nn.nn.networks import Network

State = Any
Batch = tuple[Array, Array]


@dataclass(frozen=True)
class Contract:
    """What a stream grants, or a learner needs, beyond batches that come once and in order.

    The default is the strict setting of the paper: one pass, no task boundaries, no statistics
    kept per class.
    """

    passes: int = 1
    task_boundary: bool = False
    class_statistics: bool = False

    def refusals(self, needs: "Contract") -> list[str]:
        """What `needs` asks for and this contract does not grant."""
        return [
            f"{field.name}={getattr(needs, field.name)}"
            for field in fields(self)
            if getattr(needs, field.name) > getattr(self, field.name)
        ]


def _as_it_is(state: State) -> State:
    return state


@dataclass(frozen=True)
class Learner:
    """Pure functions over one state: a network, its optimiser, its remedy against forgetting.

    Attributes:
        init: `init(key, x)`, where `x` are the inputs of the first batch, never its labels. Most
            learners ignore `x`; some scale or calibrate by it.
        update: `update(state, (x, y))` learns from one batch of any size.
        predict: `predict(state, x)` changes nothing.
        needs: what the learner cannot do without; a stream that does not grant it is refused.
        network: the network whose parameters are `state.params`, if there is one.
        prepare: `prepare(state)` computes once what many predictions need; `predict` takes its
            result in place of a state.
        recipe: how to build the learner again from traced hyper-parameters; see
            `inject_hyperparams`.
        hyperparameters: their values.
    """

    init: Callable[[Key[Array, ""], Array], State]
    update: Callable[[State, Batch], State]
    predict: Callable[[State, Array], Array]
    needs: Contract = Contract()
    network: Network | None = None
    prepare: Callable[[State], State] = _as_it_is
    recipe: Recipe | None = field(default=None, init=False)
    hyperparameters: tuple[tuple[str, float], ...] = field(default=(), init=False)


def outside(value: ArrayLike, lowest: float, highest: float = math.inf) -> bool:
    """Whether a value is known not to lie between two numbers; a traced value is not known."""
    if isinstance(value, jax.core.Tracer):
        return False
    number = np.asarray(value, float)
    return not bool(np.all((lowest <= number) & (number <= highest)))


def check_kind(name: str, learner: Any) -> None:
    if not isinstance(learner, Learner):
        raise TypeError(
            f"{name}: expected a Learner, got {type(learner).__name__}; gradient(network, "
            "optimiser, loss) makes one from a network, Learner(init, update, predict) from "
            "functions"
        )
