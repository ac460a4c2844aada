"""Numbers in svmlight text are rounded as Python and scikit-learn round them, to the last bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from sketchnet.data import read_svmlight
from sketchnet.errors import InputError
from tests.data.plain_svmlight import NUMBER


def test_float32_overflow(file):
    # Halfway between the largest float32 and what would follow, in a few digits and in all: it rounds to infinity.
    for text in (b"3.4028235677973366e38", b"340282356779733661637539395458142568448", b"1e39"):
        path = file(b"1 1:" + text)
        assert np.isfinite(read_svmlight(path, dtype=np.float64).values).all()
        with pytest.raises(InputError, match="x.svm:1:5: number"):
            read_svmlight(path)
    assert read_svmlight(file(b"1 1:3.4028235677973362e38")).values[0] == np.finfo(np.float32).max


DOUBLES = st.floats(allow_nan=False, allow_infinity=False)
SPELLINGS = st.from_regex(NUMBER.pattern.decode(), fullmatch=True)


@settings(max_examples=300, deadline=None)
@given(st.lists(DOUBLES.map(repr) | SPELLINGS, min_size=1, max_size=20))
def test_numbers_are_rounded_as_python_does(tmp_path_factory, texts):
    path = tmp_path_factory.getbasetemp() / "numbers.svm"
    texts = [text for text in texts if abs(float(text)) < 1e38]
    path.write_text("1 " + " ".join(f"1:{text}" for text in texts))
    assert read_svmlight(path, dtype=np.float64).values.tobytes() == np.array([float(t) for t in texts]).tobytes()


def test_many_numbers_are_rounded_as_python_does(file):
    rng = np.random.default_rng(0)
    texts = []
    for digits in range(1, 22):
        for _ in range(2000):
            whole = "".join(map(str, rng.integers(0, 10, digits)))
            point = rng.integers(0, digits + 1)
            exponent = rng.choice(["", f"e{rng.integers(-330, 270)}", f"E+{rng.integers(0, 30)}"])
            texts.append(f"{'-' if rng.random() < 0.3 else ''}{whole[:point]}.{whole[point:]}{exponent}")
    # Numbers halfway between two doubles, and just beside: the hardest to round.
    for bits in rng.integers(2**52, 2**53, 3000).tolist():
        for shift in (-5, -1, 0, 3, 10):
            half = 2 * bits + 1
            exact = str(half * 2**shift) if shift >= 0 else str(half * 5**-shift) + f"e{shift}"
            texts += [exact, exact.replace("e", "1e", 1) if "e" in exact else exact + ".0000000001"]
    expected = np.array([float(text) for text in texts])
    path = file(b"1 " + " ".join(f"1:{text}" for text in texts).encode())
    assert read_svmlight(path, dtype=np.float64).values.tobytes() == expected.tobytes()
    small = np.abs(expected) < 1e38
    path = file(b"1 " + " ".join(f"1:{text}" for text, fits in zip(texts, small) if fits).encode())
    assert read_svmlight(path).values.tobytes() == expected[small].astype(np.float32).tobytes()


@pytest.mark.parametrize("form", ["%.6g", "%r", "%.20f", "%.3e", "%d", "%.17g", "%.9g"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_agrees_with_scikit_learn(file, form, dtype):
    rng = np.random.default_rng(1)
    lines = []
    for r in range(300):
        ids = np.unique(rng.integers(0 if r % 2 else 1, 10 ** rng.integers(1, 9), 40))
        values = rng.standard_normal(len(ids)) * 10.0 ** rng.integers(-8, 9)
        features = " ".join(f"{i}:{form % v}" for i, v in zip(ids.tolist(), values.tolist()))
        lines.append(f"{form % rng.standard_normal()} {features}{' # note' if r % 3 == 0 else ''}\n")
    path = file("".join(lines).encode())
    X, y = load_svmlight_file(str(path), dtype=dtype)
    ours = read_svmlight(path, dtype=dtype)
    assert ours.values.tobytes() == X.data.tobytes()
    assert np.array_equal(ours.indices, X.indices)
    assert np.array_equal(ours.indptr, X.indptr)
    assert ours.labels.astype(dtype).tobytes() == y.astype(dtype).tobytes()
    assert ours.n_columns == X.shape[1]
