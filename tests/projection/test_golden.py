"""Golden vectors: a block of each scheme's P for one seed. If this fails, users' projections have changed.

Then LAYOUT_VERSION must rise, and models that record the old one must be refused or handled. To write them anew:
python -m tests.projection.test_golden
"""

import json
from pathlib import Path

import numpy as np

from sketchnet.projection import make_scheme
from sketchnet.random import LAYOUT_VERSION

GOLDEN = Path(__file__).with_name("golden.json")
ROWS = np.array([0, 1, 2, 4095, 4096, 2**31 - 1, 2**31, 2**32 + 7, 2**39 + 12_345, 2**40 - 1])
SCHEMES = {
    "gaussian": {},
    "achlioptas": {},
    "achlioptas-1": {"s": 1},
    "li": {"s": 4},
    "srht": {},
    "srht_sparse": {"density": 2.0**-34},
    "srht_sparse-sign": {"density": 2.0**-34, "entries": "sign"},
    "count_sketch": {},
}


def block(name: str) -> np.ndarray:
    """Unscaled entries, so that they are small integers for the discrete schemes."""
    operator = make_scheme(name.split("-")[0], 12, **SCHEMES[name]).sample(2**40, seed=0xC0FFEE123456789)
    return operator.block(ROWS, dtype=np.float64) / operator.scale


def test_golden_vectors():
    golden = json.loads(GOLDEN.read_text())
    assert golden["layout"] == LAYOUT_VERSION
    for name in SCHEMES:
        stored = np.array(golden[name])
        if name in ("gaussian", "srht_sparse"):
            assert np.allclose(block(name), stored, rtol=0, atol=2e-5), name
        else:
            assert np.array_equal(np.rint(block(name)), stored), name
            assert np.allclose(block(name), stored, rtol=1e-12), name


if __name__ == "__main__":
    rows = {name: np.round(block(name), 6).tolist() for name in SCHEMES}
    body = ",\n".join(f'"{k}": [\n' + ",\n".join(json.dumps(r) for r in v) + "]" for k, v in rows.items())
    GOLDEN.write_text(f'{{"layout": {LAYOUT_VERSION},\n{body}}}\n')
