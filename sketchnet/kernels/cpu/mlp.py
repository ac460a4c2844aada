"""What a small dense network computes besides matrix products, each step in one pass over its arrays."""

from __future__ import annotations

import numpy as np

from sketchnet.kernels.cpu.compile import kernel

_u32 = np.uint32


@kernel
def measure_columns(x, mean, variance):
    """Mean and variance of each column."""
    n, width = x.shape
    mean[:] = 0
    variance[:] = 0
    for i in range(n):
        for j in range(width):
            mean[j] += x[i, j]
    for j in range(width):
        mean[j] /= np.float32(n)
    for i in range(n):
        for j in range(width):
            d = x[i, j] - mean[j]
            variance[j] += d * d
    for j in range(width):
        variance[j] /= np.float32(n)


@kernel
def normalise(x, mean, inverse, gain, shift, scaled, out):
    """scaled = (x - mean) * inverse, out = gain * scaled + shift"""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            z = (x[i, j] - mean[j]) * inverse[j]
            scaled[i, j] = z
            out[i, j] = gain[j] * z + shift[j]


@kernel
def normalise_back(slopes, scaled, inverse, gain, gain_slope, shift_slope, of_batch, out):
    """The slopes by what was normalised; `of_batch`: by mean and variance of the batch, which depend on it too."""
    n, width = slopes.shape
    gain_slope[:] = 0
    shift_slope[:] = 0
    for i in range(n):
        for j in range(width):
            gain_slope[j] += slopes[i, j] * scaled[i, j]
            shift_slope[j] += slopes[i, j]
    share = np.float32(1 / n) if of_batch else np.float32(0)
    for i in range(n):
        for j in range(width):
            rest = slopes[i, j] - share * (shift_slope[j] + scaled[i, j] * gain_slope[j])
            out[i, j] = gain[j] * inverse[j] * rest


@kernel
def drop(x, least, limit, key):
    """Raise, in place, what is below `least` to it, and set to 0 what is dropped; the rest grows by what is missing.

    Dropped is what a hash of the entry's number and `key` makes a number below `limit`, of 2**32.
    """
    grow = np.float32(1 / (1 - limit / 2.0**32))
    n, width = x.shape
    for i in range(n):
        start = _u32(key + _u32(i * width))
        for j in range(width):
            h = _u32(_u32(start + _u32(j)) * _u32(0x9E3779B1))  # then Murmur's finaliser
            h = _u32((h ^ (h >> _u32(16))) * _u32(0x85EBCA6B))
            h = _u32((h ^ (h >> _u32(13))) * _u32(0xC2B2AE35))
            h = h ^ (h >> _u32(16))
            x[i, j] = max(x[i, j], least) * grow if h >= limit else np.float32(0)


@kernel
def rectify_back(slopes, out, grow):
    """Slopes by what was rectified, in place: those of what came out positive."""
    for i in range(slopes.shape[0]):
        for j in range(slopes.shape[1]):
            slopes[i, j] = slopes[i, j] * grow if out[i, j] > 0 else np.float32(0)


@kernel
def step_adamw(weights, slopes, moments, rate, decay, step):
    """One step of AdamW; `moments` are the first and second moments, a row each."""
    first, second = moments[0], moments[1]
    length = np.float32(rate / (1 - 0.9**step))
    root = np.float32(1 / np.sqrt(1 - 0.999**step))
    keep = np.float32(1 - rate * decay)
    for i in range(len(weights)):
        first[i] = np.float32(0.9) * first[i] + np.float32(0.1) * slopes[i]
        second[i] = np.float32(0.999) * second[i] + np.float32(0.001) * slopes[i] * slopes[i]
        weights[i] = keep * weights[i] - length * first[i] / (root * np.sqrt(second[i]) + np.float32(1e-8))
