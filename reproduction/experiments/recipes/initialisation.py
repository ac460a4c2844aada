"""Residual networks on images, whose convolutions begin by a scheme of random projection."""

from __future__ import annotations

import time
import zlib
from functools import lru_cache
from math import sqrt

import numpy as np
import torch

from reproduction.images.config import ImageConfig, Images
from reproduction.images.training import train_together
from sketchnet.data import Split, load_dataset
from sketchnet.errors import InputError

LAST = 5  # epochs whose mean error counts, of 30; the dissertation has 100 of 500
_GENERATED = 12  # pixels, of each side


def image_network(
    *,
    seed: int,
    device: str,
    scheme: str,
    options: dict | None = None,
    data: str = "cifar10",
    rows: int | None = None,
    depth: int = 20,
    width: int = 16,
    survival: float = 0.5,
    epochs: int = 30,
) -> dict:
    """The mean test error of the last epochs, and that of each epoch. `rows`: of either set the first so many."""
    begun = time.perf_counter()
    train, test = images_of(data, rows)
    sizes = {"depth": depth, "width": width, "survival": survival, "epochs": epochs}
    config = image_config(scheme, options or {}, seed, len(train.labels), **sizes)
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    return image_result(train_together([config], train, test, device)[0], time.perf_counter() - begun)


def image_config(scheme: str, options: dict, seed: int, n_train: int, **sizes) -> ImageConfig:
    """Orthogonal weights get He's deviation too, and the dissertation's SRHT the density for so many images.

    The rank-sum test asks for independent runs, so no two schemes share an order of images or gates: the numbers of a
    run depend on its seed and its scheme.
    """
    own = {"srht_sparse": {"n_examples": n_train}, "orthogonal": {"gain": sqrt(2)}}.get(scheme, {})
    numbers = zlib.crc32(f"{scheme} {sorted(options.items())} {seed}".encode())
    return ImageConfig(**sizes, scheme=scheme, options={**own, **options}, seed=numbers)


def image_result(errors: list[float], seconds: float) -> dict:
    """From shares by epoch to percent. Rounded, because sums of the same errors in another order are ties too."""
    percent = [round(100 * error, 9) for error in errors]
    last = percent[-LAST:]
    return {"error": round(sum(last) / len(last), 9), "errors": percent, "seconds": round(seconds, 2)}


@lru_cache(maxsize=1)
def images_of(data: str, rows: int | None = None) -> tuple[Images, Images]:
    """Training and test images: "cifar10", or "generated" ones for a try."""
    if data not in ("cifar10", "generated"):
        raise InputError(f"data={data!r} is not possible; it is cifar10 or generated")
    both = _cifar10() if data == "cifar10" else (_generated(rows or 256, 0), _generated(rows or 256, 1))
    return tuple(Images(*(x[:rows] for x in images)) for images in both)


def _cifar10() -> tuple[Images, Images]:
    data = load_dataset("cifar10", raw=True)
    return _images(data.train), _images(data.test)


def _images(part: Split) -> Images:
    return Images(part.X.reshape(-1, 3, 32, 32), part.y)


def _generated(n: int, seed: int) -> Images:
    """One of three colours on noise."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    pixels = rng.integers(0, 160, (n, 3, _GENERATED, _GENERATED), dtype=np.uint8)
    pixels[np.arange(n), labels] += 60
    return Images(pixels, labels)
