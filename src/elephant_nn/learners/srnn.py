"""SR-NN (Liu et al. 2019): gradient steps with a loss that makes hidden activations sparse."""

import jax.numpy as jnp
import optax
from jaxtyping import Array, ArrayLike, Float

from elephant_nn.learners.gradient import Loss, gradient, squared_error
from elephant_nn.learners.learner import Learner
from elephant_nn.nn.networks import Network


def set_kl(features: Float[Array, "n units"], beta: ArrayLike) -> Float[Array, ""]:
    r"""Set-KL loss: 0 for units whose mean activation is at most beta, growing above it.

    With $b_j$ the batch mean of unit j, the sum over units with $b_j > \beta$ of
    $\beta/b_j - \ln(\beta/b_j) - 1$: the distance of an exponential distribution with mean $b_j$
    from the set of those with mean at most $\beta$.
    """
    mean = jnp.mean(features, axis=0) + 1e-8
    ratio = beta / jnp.maximum(mean, beta)
    return jnp.sum(ratio - jnp.log(ratio) - 1)


def sr_nn(
    network: Network, optimiser: optax.GradientTransformation, loss: Loss = squared_error,
    *, weight: ArrayLike, beta: ArrayLike, updates: int = 1,
) -> Learner:  # fmt: skip
    """Sparse representations by loss: `gradient` plus `weight` (the paper's lambda) x `set_kl`."""
    penalty = lambda features: jnp.asarray(weight) * set_kl(features, beta)
    return gradient(network, optimiser, loss, updates=updates, penalty=penalty)
