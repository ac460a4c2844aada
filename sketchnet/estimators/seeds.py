"""scikit-learn's `random_state` as a 64-bit seed."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.utils import check_random_state

from sketchnet.errors import InputError


def seed_of(random_state) -> int:
    """An integer is the seed itself; a generator, or None for the global one, draws it."""
    if isinstance(random_state, Integral):
        if not 0 <= random_state < 2**64:
            raise InputError(f"random_state={random_state} is not possible; a seed is from 0 to 2**64 - 1")
        return int(random_state)
    words = check_random_state(random_state).randint(0, 2**32, size=2, dtype=np.uint64)
    return int(words[0]) | int(words[1]) << 32
