"""Numbers of any size become targets and come back."""

import numpy as np
import pytest

from sketchnet.errors import InputError
from sketchnet.training.task import Task

NUMBERS = np.random.default_rng(0).standard_normal(500)


def there_and_back(labels):
    task = Task.of_labels(labels, regression=True)
    targets = task.encode(labels)
    assert targets.dtype == np.float32
    return targets, task.decide(targets[:, None])


@pytest.mark.parametrize("power", [-1070, -700, -30, 0, 30, 500, 511, 700, 1021])
@pytest.mark.parametrize("shift", [0, -5])
def test_numbers_of_any_size(power, shift):
    """Scaled by a power of two, which is exact, they are the same targets."""
    plain, _ = there_and_back(NUMBERS / 2 + shift)
    targets, back = there_and_back(np.ldexp(NUMBERS / 2 + shift, power))
    few_bits = power == -1070
    np.testing.assert_allclose(targets, plain, rtol=0, atol=0.15 if few_bits else 0)
    np.testing.assert_allclose(np.ldexp(back, -power), NUMBERS / 2 + shift, rtol=0, atol=0.15 if few_bits else 1e-6)


def test_numbers_as_far_apart_as_can_be():
    most = np.finfo(np.float64).max
    labels = np.where(NUMBERS > 0, most, -most)
    task = Task.of_labels(labels, regression=True)
    targets, back = there_and_back(labels)
    np.testing.assert_allclose(np.abs(targets), 1, atol=0.2)
    np.testing.assert_allclose(back, labels, rtol=1e-6)
    assert task.decide(np.array([[30.0], [-30.0]])).tolist() == [most, -most]


@pytest.mark.parametrize("number", [0.0, 0.1, -5e-324, 1e-300, -7.0, 1.7e308])
def test_numbers_that_are_all_the_same(number):
    targets, back = there_and_back(np.full(400, number))
    assert not targets.any()
    assert (back == number).all()
    task = Task.of_labels(np.full(400, number), regression=True)
    np.testing.assert_allclose(task.decide(np.array([[1e-6]])), number, rtol=2e-6, atol=1e-6 * (number == 0))


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (
            1e300,
            r"label 1e\+300 of row 2 is more than 1e\+15 deviations \(1\) from the mean of those that were learnt, 0",
        ),
        (np.nan, "label nan of row 2 is not a finite number"),
        (-np.inf, "label -inf of row 2 is not a finite number"),
    ],
)
def test_labels_that_no_float32_tells(label, message):
    task = Task.of_labels([1.0, -1.0], regression=True)
    with pytest.raises(InputError, match=message):
        task.encode([0.0, 1.0, label])


def test_dates_are_no_numbers():
    for labels in (np.array(["2020", "2021"], "M8[D]"), np.array([1, 2], "m8[s]")):
        with pytest.raises(InputError, match="labels have dtype .*; a regression learns numbers"):
            Task.of_labels(labels, regression=True)
        with pytest.raises(InputError, match="labels have dtype .*; a regression learns numbers"):
            Task.of_labels([1.0, 2.0], regression=True).encode(labels)
