"""What every learner is, and what it may ask of the stream."""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, ArrayLike, Key

State = Any
Batch = tuple[Array, Array]


@dataclass(frozen=True)
class Contract:
    """What a stream gives, or a learner needs, beyond batches that come once and in order.

    The default is the strict setting of the paper: one pass, no boundaries between tasks, no
    pre-training, no buffer of old samples, no statistics kept by class.
    """

    passes: int = 1
    task_boundary: bool = False
    pretraining: bool = False
    buffer: bool = False
    class_statistics: bool = False

    def refusals(self, needs: "Contract") -> list[str]:
        """What `needs` asks for and this contract does not give, in words."""
        return [
            f"{field.name}={getattr(needs, field.name)}"
            for field in fields(self)
            if getattr(needs, field.name) > getattr(self, field.name)
        ]


@dataclass(frozen=True)
class Learner:
    """Pure functions over one state: a network, its optimiser, its remedy against forgetting.

    `update(state, (x, y))` learns from one batch of any size; `predict(state, x)` changes nothing.
    `needs` states what the learner cannot do without; a stream that does not grant it refuses.
    """

    init: Callable[[Key[Array, ""]], State]
    update: Callable[[State, Batch], State]
    predict: Callable[[State, Array], Array]
    needs: Contract = Contract()


def outside(value: ArrayLike, lowest: float, highest: float = math.inf) -> bool:
    """Whether a number is known, while a program is traced, not to lie between two others."""
    if isinstance(value, jax.core.Tracer):
        return False
    number = np.asarray(value, float)
    return not bool(np.all((lowest <= number) & (number <= highest)))


def check_kind(name: str, learner: Any) -> None:
    if not isinstance(learner, Learner):
        raise TypeError(
            f"{name}: needs a Learner, got {type(learner).__name__}; gradient(network, "
            "optimiser, loss) makes one of a network, Learner(init, update, predict) of functions"
        )
