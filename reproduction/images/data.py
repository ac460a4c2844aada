"""Images that lie on the device as bytes, and are normalised when they are wanted."""

from __future__ import annotations

import numpy as np
import torch

from reproduction.images.config import Images
from sketchnet.errors import InputError


class ImagesOnDevice:
    """Both sets of images as bytes, and the training images' mean and deviation of each channel."""

    def __init__(self, train: Images, test: Images, device: torch.device):
        for name, (pixels, labels) in {"train": train, "test": test}.items():
            if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[1:] != train.pixels.shape[1:]:
                raise InputError(
                    f"{name} has {pixels.dtype} pixels of shape {pixels.shape}; they must be uint8, images x channels "
                    "x height x width, the same for both sets"
                )
            if labels.shape != (len(pixels),) or labels.dtype.kind not in "iu" or len(labels) == 0 or labels.min() < 0:
                raise InputError(f"{name} has labels of shape {labels.shape}; there must be one for each image, from 0")
        # Counts of the 256 values give the moments exactly, and without a copy of the images as floats.
        channels, values = train.pixels.shape[1], np.arange(256)
        counts = [np.bincount(train.pixels[:, c].ravel(), minlength=256) for c in range(channels)]
        shares = np.stack(counts) / (train.pixels.size / channels)
        mean = shares @ values
        deviation = np.sqrt(np.maximum(shares @ values**2 - mean**2, 0))
        scale = 1 / np.where(deviation > 0, deviation, 1)
        self.device, self.on_gpu = device, device.type == "cuda"
        self.n_train, self.n_classes, self.channels = len(train.pixels), int(train.labels.max()) + 1, channels
        self.train, self.test = (
            tuple(torch.from_numpy(np.ascontiguousarray(x)).to(device) for x in (s.pixels, s.labels.astype(np.int64)))
            for s in (train, test)
        )
        self._mean, self._scale = (
            torch.tensor(x, dtype=torch.float32, device=device).view(-1, 1, 1) for x in (mean, scale)
        )
        self.dtype = torch.bfloat16 if self.on_gpu else torch.float32  # of what networks take

    def normalised(self, pixels: torch.Tensor) -> torch.Tensor:
        return (pixels.float() - self._mean) * self._scale
