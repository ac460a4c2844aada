"""Images that a tiny network tells apart: one of three colours on noise, at any place and either way round."""

import numpy as np

from reproduction.images.training import Images


def separable(n=240, size=8, seed=0) -> Images:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    pixels = rng.integers(0, 100, (n, 3, size, size), dtype=np.uint8)
    pixels[np.arange(n), labels] += 100
    return Images(pixels, labels)
