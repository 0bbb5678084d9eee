"""An encoder of a user's own: the mean colour of each quarter of an image."""

import numpy as np


def quarters(images):
    n, height, width, channels = images.shape
    parts = images.reshape(n, 2, height // 2, 2, width // 2, channels)
    return parts.mean((2, 4)).reshape(n, -1) / 255


def wrong_shape(images):
    return np.zeros(len(images))


def gives_nan(images):
    return np.full((len(images), 3), np.nan)
