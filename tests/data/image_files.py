"""Small files in the publishers' formats, written here byte by byte, and what is made of them."""

import struct

import numpy as np

from sketchnet.data.datasets import load_dataset

RNG = np.random.default_rng(0)


def load(name, folder, **options):
    return load_dataset(name, folder=folder, download=False, **options)


def split_sizes(data):
    return len(data.train), len(data.valid), len(data.test)


def idx(array):
    header = bytes([0, 0, 8, array.ndim]) + b"".join(struct.pack(">I", size) for size in array.shape)
    return header + array.astype(np.uint8).tobytes()
