"""The nearest documents against a full sort; ties, codes of extreme size, bad input."""

import numpy as np
import pytest

from sketchnet.errors import InputError
from sketchnet.evaluation import retrieval as module
from sketchnet.evaluation.retrieval import nearest


@pytest.mark.parametrize("n", [1, 3, 599, 600])
def test_nearest_is_the_front_of_a_full_sort(n, monkeypatch):
    rng = np.random.default_rng(0)
    codes = rng.standard_normal((600, 5))
    codes[[7, 300, 599]] = codes[20]
    codes[[8, 9]] = 0
    queries = np.vstack([codes[[20, 8, 1]], rng.standard_normal((300, 5))])
    unit = [x / np.where(norm > 0, norm, 1) for x in (codes, queries) for norm in [np.linalg.norm(x, axis=1)[:, None]]]
    similarity = unit[1] @ unit[0].T
    order = np.argsort(-similarity.round(7), axis=1, kind="stable")[:, :n]
    numbers, found = nearest(codes, queries, n)
    np.testing.assert_allclose(found, np.take_along_axis(similarity, numbers, axis=1), atol=1e-6)
    np.testing.assert_allclose(found, np.take_along_axis(similarity, order, axis=1), atol=1e-6)
    assert numbers[0, :4].tolist() == [7, 20, 300, 599][:n]  # equal codes
    assert np.array_equal(numbers[1], np.arange(n))  # a code of zeros is as near to one as to another
    assert (np.diff(np.sort(numbers, axis=1)) > 0).all()
    monkeypatch.setattr(module, "_rows_at_once", lambda *args: 7)
    again = nearest(codes, queries, n)
    assert np.array_equal(again[0], numbers)
    assert np.array_equal(again[1], found)


def test_nearest_of_extreme_codes():
    codes = np.array([[1e200, 0], [0, 1e-200], [-5e-324, 0], [1, 1]])
    numbers, similarities = nearest(codes, [[3, 0]], 4)
    assert numbers.tolist() == [[0, 3, 1, 2]]
    np.testing.assert_allclose(similarities, [[1, np.sqrt(0.5), 0, -1]], rtol=1e-6)


def test_nearest_checks_what_it_is_given():
    codes = np.eye(3)
    assert [x.shape for x in nearest(codes, np.zeros((0, 3)), 2)] == [(0, 2), (0, 2)]
    for queries, n, message in (
        (np.zeros((2, 4)), 1, "queries have 4 numbers each, but codes have 3"),
        (codes, 4, "from 1 to 3"),
        (codes, 0, "from 1 to 3"),
        (np.zeros((0, 3)), 1.5, "n=1.5"),
        ([[1, np.inf, 1]], 1, "row 0 of queries"),
    ):
        with pytest.raises(InputError, match=message):
            nearest(codes, queries, n)
    with pytest.raises(InputError, match="row 2 of codes"):
        nearest(codes * [[1], [1], [np.nan]], codes, 1)
    with pytest.raises(InputError, match="too little"):
        nearest(codes, codes, 1, memory=100)
