"""Weights that RBMs start from: mean and deviation, and the projection that they are."""

import numpy as np
import pytest
import torch

from sketchnet.nn.rbm_init import RBM_SCHEMES, init_rbm_
from sketchnet.projection import make_scheme


@pytest.mark.parametrize("scheme", [None, *(name for name in RBM_SCHEMES if name != "count_sketch")])
def test_mean_and_deviation(scheme):
    weight = init_rbm_(torch.empty(60, 200), scheme, 3)
    assert float(weight.std()) == pytest.approx(0.01, rel=1e-4 if scheme else 0.03)
    assert abs(float(weight.mean())) < (1e-7 if scheme else 5e-4)
    assert torch.equal(weight, init_rbm_(torch.empty(200, 60).t(), scheme, 3))
    assert not torch.equal(weight, init_rbm_(torch.empty(60, 200), scheme, 4))
    if scheme:  # up to that, the transpose of what the scheme draws
        drawn = make_scheme(scheme, 60).sample(200, 3).apply(np.eye(200)).T
        assert np.corrcoef(drawn.ravel(), weight.numpy().ravel())[0, 1] == pytest.approx(1, abs=1e-5)


def test_count_sketch_has_a_weight_for_each_visible_unit():
    weight = init_rbm_(torch.empty(60, 200), "count_sketch", 3)
    assert (weight.count_nonzero(dim=0) == 1).all()
    assert torch.equal(weight.abs().amax(dim=0), torch.full((200,), 0.3))
    assert 60 < int((weight > 0).sum()) < 140
