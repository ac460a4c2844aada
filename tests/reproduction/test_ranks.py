"""The rank-sum test against scipy and against enumeration, and the sentence that comes of it."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy import stats

from reproduction.ranks import compare, verdict
from sketchnet.errors import InputError


def enumerated(ours, reference):
    """u, and the shares of all ways to call n of the values ours whose u is as small, as large."""
    values, n = [*ours, *reference], len(ours)

    def u(chosen):
        others = [i for i in range(len(values)) if i not in chosen]
        pairs = [(values[i], values[j]) for i in chosen for j in others]
        return sum((a > b) + 0.5 * (a == b) for a, b in pairs)

    found, all_of_them = u(range(n)), [u(chosen) for chosen in combinations(range(len(values)), n)]
    return found, np.mean([x <= found for x in all_of_them]), np.mean([x >= found for x in all_of_them])


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 4), (3, 2), (4, 4), (2, 6)])
@pytest.mark.parametrize("levels", [2, 4, 1000])
def test_against_enumeration(n, m, levels):
    """Few levels make many ties."""
    rng = np.random.default_rng(n + 10 * m)
    for _ in range(5):
        ours, reference = rng.integers(levels, size=n) / 7, rng.integers(levels, size=m) / 7
        c = compare(ours, reference)
        assert (c.u, c.p, c.p_larger) == pytest.approx(enumerated(ours, reference))
        assert c.effect == pytest.approx(1 - c.u / (n * m))


@pytest.mark.parametrize(("n", "m", "method"), [(10, 10, "exact"), (7, 12, "exact"), (80, 60, "asymptotic")])
def test_against_scipy(n, m, method):
    rng = np.random.default_rng(0)
    ours, reference = rng.standard_normal(n), rng.standard_normal(m) + 0.3
    c = compare(ours, reference)
    for side, p in (("less", c.p), ("greater", c.p_larger)):
        theirs = stats.mannwhitneyu(ours, reference, alternative=side, method=method)
        assert (c.u, p) == pytest.approx((theirs.statistic, theirs.pvalue))
    assert (c.median_ours, c.median_reference) == (np.median(ours), np.median(reference))


def test_where_the_exact_law_ends_it_is_near_the_normal_one():
    rng = np.random.default_rng(0)
    ours, reference = rng.integers(40, size=50), rng.integers(40, size=50) + 1
    theirs = stats.mannwhitneyu(ours, reference, alternative="less", method="asymptotic").pvalue
    assert compare(ours, reference).p == pytest.approx(theirs, rel=0.03)


def test_the_smallest_p_is_reached():
    c = compare([1, 2, 3], [4, 5, 6, 7])
    assert c.p == pytest.approx(c.least_p) == pytest.approx(1 / comb(7, 3))
    assert (c.u, c.effect, c.p_larger) == (0, 1, 1)


def test_p_is_uniform_under_one_law():
    """By enumeration: of all orders of 10 values, as many as may have p <= 0.05 do, and no more."""
    found = [
        compare([v for v in range(10) if v in chosen], [v for v in range(10) if v not in chosen]).p
        for chosen in combinations(range(10), 5)
    ]
    assert 0.04 < np.mean(np.array(found) <= 0.05) <= 0.05


def test_verdicts():
    low, high = np.arange(10), np.arange(10) + 8.5
    assert verdict(compare(low, high)).startswith("Errors are smaller than the reference's: median 4.5 against 13,")
    assert verdict(compare(high, low)).startswith("Errors are larger")
    assert verdict(compare(low, low + 0.5)).startswith("No difference is shown")
    assert "with 3 and 2 seeds the smallest p is 0.1, which is not below 0.05" in verdict(compare([1, 2, 3], [4, 5]))
    assert verdict(compare([1, 2, 3], [4, 5]), level=0.2).startswith("Errors are smaller")
    assert verdict(compare([1, 2, 3, 4], [4] * 4), level=0.02).startswith("No difference")


@pytest.mark.parametrize("wrong", [[], [[1.0, 2.0]], [1.0, float("nan")]])
def test_bad_input(wrong):
    with pytest.raises(InputError, match="ours has shape"):
        compare(wrong, [1.0])
    with pytest.raises(InputError, match="reference has shape"):
        compare([1.0], wrong)


def test_bad_level():
    with pytest.raises(InputError, match="level"):
        verdict(compare([1], [2]), level=2)
