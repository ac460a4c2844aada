"""scikit-learn's `random_state` as a 64-bit seed."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.utils import check_random_state

from sketchnet.checks import check_integer


def seed_of(random_state) -> int:
    """An integer is the seed itself; a generator, or None for the global one, draws it."""
    if isinstance(random_state, Integral):
        return check_integer("random_state", random_state, 0, 2**64 - 1)
    words = check_random_state(random_state).randint(0, 2**32, size=2, dtype=np.uint64)
    return int(words[0]) | int(words[1]) << 32
