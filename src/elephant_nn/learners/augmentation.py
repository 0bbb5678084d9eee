"""More samples from those of a batch."""

from dataclasses import replace

import jax.numpy as jnp

from elephant_nn.learners.learner import Batch, Learner, State


def with_mirrored(learner: Learner, shape: tuple[int, int, int]) -> Learner:
    """The learner also learns the mirror image of every image of `shape` (height, width, channels).

    A batch then has twice as many samples. Predictions are of the images as they are.
    """

    def update(state: State, batch: Batch) -> State:
        x, y = batch
        images = x.reshape(len(x), *shape)
        both = jnp.concatenate([images, images[:, :, ::-1]]).reshape(2 * len(x), *x.shape[1:])
        return learner.update(state, (both, jnp.concatenate([y, y])))

    return replace(learner, update=update)
