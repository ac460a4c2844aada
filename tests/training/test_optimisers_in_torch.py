"""sketchnet's optimisers in training loops as people write them for torch."""

import numpy as np
import pytest
import torch

from sketchnet.errors import InputError
from sketchnet.nn import LearnableProjection
from sketchnet.nn.table import distinct_gradient
from sketchnet.training import TrainingConfig
from sketchnet.training.optimisers import make_optimiser


@pytest.mark.parametrize("optimiser", ["sgd", "adamw"])
@pytest.mark.parametrize("together", ["two backwards", "one sum"])
def test_gradients_that_add_up_make_one_step(optimiser, together):
    """torch leaves rows of a sum of sparse gradients in it twice, or not, as they happen to lie."""
    a, b = np.array([[0, 0, 1], [1, 0, 0]], np.float32), np.array([[1, 0, 0], [0, 0, 1]], np.float32)
    found = []
    for parts in ([a, b], [np.vstack([a, b])]):
        layer = LearnableProjection(3, 1)
        drawn = layer.weight.detach().clone()
        chosen = make_optimiser(layer, TrainingConfig(optimiser=optimiser, rate=0.1, momentum=(0.9, 0.9)))
        for _ in range(3):
            chosen.zero_grad(set_to_none=True)
            if together == "one sum":
                sum(layer(part).sum() for part in parts).backward()
            else:
                for part in parts:
                    layer(part).sum().backward()
            chosen.step()
        chosen.settle()
        found.append(layer.weight.detach().numpy().copy())
    np.testing.assert_allclose(*found, rtol=1e-6)
    assert (found[0] != drawn.numpy())[[0, 2]].all()


def test_a_plain_gradient_is_taken_as_it_is():
    """To sort it would take longer than the step."""
    layer = LearnableProjection(50, 8)
    layer(np.eye(50, dtype=np.float32)[[7, 3, 30]]).sum().backward()
    assert distinct_gradient(layer.weight) is layer.weight.grad
    layer(np.eye(50, dtype=np.float32)[[3, 9]]).sum().backward()
    assert distinct_gradient(layer.weight)._indices().tolist() == [[3, 7, 9, 30]]


def late_layer():
    """A layer of which rows are late, and its optimiser."""
    layer, rows = LearnableProjection(3, 1), np.eye(3, dtype=np.float32)
    optimiser = make_optimiser(layer, TrainingConfig(optimiser="sgd", rate=0.1, momentum=(0.9, 0.9)))
    for row in (0, 0, 1, 1):
        optimiser.zero_grad()
        layer(rows[[row]]).sum().backward()
        optimiser.step()
    return layer, optimiser, rows


def test_weights_that_are_loaded_stay_as_they_are():
    layer, _, rows = late_layer()
    best = {"weight": torch.tensor([1.0, 2.0, 3.0]), "bias": torch.zeros(1)}
    layer.load_state_dict(best)
    assert torch.equal(layer(rows).detach()[:, 0], best["weight"])


def test_a_second_optimiser_begins_where_the_first_one_is():
    layer, _, rows = late_layer()
    twin, _, _ = late_layer()
    expected = twin(rows).detach()
    make_optimiser(layer, TrainingConfig(optimiser="sgd"))
    assert torch.equal(layer(rows).detach(), expected)


def test_tables_of_float64_are_refused():
    with pytest.raises(InputError, match=r"weights of columns are of torch.float64; .* optimisers take float32"):
        make_optimiser(LearnableProjection(3, 1).double(), TrainingConfig())
