"""Random Fourier features (Rahimi and Recht, 2007)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Key

from elephant_nn.nn.networks import Network, Params, flatten_inputs


def fourier_features(inputs: int, neurons: int, gamma: ArrayLike = 1.0) -> Network:
    r"""Units $\sqrt{2/m} \cos(w \cdot x + b)$ whose products approximate a Gaussian kernel.

    The kernel is $\exp(-g\,|x - y|^2)$, where g is `gamma` divided by the number of inputs and by
    the variance of all inputs in the first batch. The network has no output layer: use it under
    `ridge_head` or `streaming_lda`.
    """

    def made(key: Key[Array, ""], variance: ArrayLike) -> Params:
        weights, shifts = jax.random.split(key)
        scale = jnp.sqrt(2 * jnp.asarray(gamma) / (inputs * variance))
        w = scale * jax.random.normal(weights, (inputs, neurons))
        return {"w": w, "b": jax.random.uniform(shifts, (neurons,), maxval=2 * jnp.pi)}

    def features(params: Params, x: Float[Array, "n ..."]) -> Float[Array, "n neurons"]:
        z = flatten_inputs(x, inputs, "fourier_features") @ params["w"] + params["b"]
        return jnp.sqrt(2 / neurons) * jnp.cos(z)

    def init_from(key: Key[Array, ""], x: Float[Array, "n ..."]) -> Params:
        return made(key, jnp.maximum(jnp.var(x), 1e-12))

    return Network(lambda key: made(key, 1.0), features, lambda params, h: h, init_from=init_from)
