"""Settings of pretraining and of autoencoders, for those who set some or none."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from sketchnet.data.csr import sparse_rows
from sketchnet.errors import InputError
from sketchnet.nn.rbm_init import init_rbm_
from sketchnet.pretraining import RBMTrainingConfig
from sketchnet.pretraining.autoencoder import build_autoencoder
from sketchnet.pretraining.course import rbm_config
from sketchnet.training import Task, TrainingConfig
from sketchnet.training.defaults import choose_device, make_configs
from tests.pretraining.courses import classifier, documents, unsupervised


def test_settings_of_pretraining():
    assert TrainingConfig().pretrain == TrainingConfig(pretrain=False).pretrain == 0
    assert TrainingConfig(pretrain=7, pretrain_rate=1).to_dict()["pretrain_rate"] == 1.0
    assert rbm_config(TrainingConfig(pretrain=7, seed=2)) == RBMTrainingConfig(epochs=7, seed=2)
    assert rbm_config(TrainingConfig(pretrain=7, pretrain_rate=0.3)).rate == 0.3
    for name, value in (("pretrain", -1), ("pretrain", True), ("pretrain", 0.5), ("pretrain_rate", -1.0)):
        with pytest.raises(InputError, match=f"{name}={value} is not possible"):
            TrainingConfig(**{name: value})


def test_rbms_of_networks_start_as_asked():
    with pytest.raises(InputError, match="pretrain_init='he' is not possible; allowed are gaussian, achlioptas, li"):
        TrainingConfig(pretrain_init="he")
    still = {"pretrain_init": "count_sketch", "pretrain_rate": 0.0, "rate": 0.0}
    model = unsupervised(**still)()
    for number, layer in enumerate(model.network.encoder):
        weight = layer.weight.detach()
        assert torch.equal(weight, init_rbm_(torch.empty_like(weight), "count_sketch", 3 + number))
    hidden = classifier(**still)().network.layers[1]
    assert hidden.weight.count_nonzero() == 16
    assert hidden.weight.detach().abs().unique().tolist() == [0.0, pytest.approx(0.3)]


@pytest.mark.parametrize(
    ("rows", "given", "epochs"), [(1000, True, 100), (10_000, True, 40), (10**9, True, 2), (1000, 3, 3), (1000, 0, 0)]
)
def test_epochs_of_rbms_for_those_who_set_none(rows, given, epochs):
    task = Task("binary", (0, 1))
    network, training = make_configs(task, rows, 1000, {"pretrain": given}, 0)
    assert training.pretrain == epochs
    assert network.hidden_norm
    assert network.feature_dropout == 0
    data = replace(sparse_rows(documents(10)), indptr=np.zeros(2, np.int64))
    model = build_autoencoder(_Many(data, rows), {"pretrain": given}, 0)
    assert model.training.pretrain == epochs


class _Many:
    """Rows of which there are said to be more."""

    def __init__(self, data, n_rows):
        self.n_rows, self.n_columns, self.rows = n_rows, data.n_columns, lambda span: data
        self.n_entries = data.n_entries * n_rows // data.n_rows


def test_settings_of_autoencoders_for_those_who_set_none():
    counts, fractions = sparse_rows(documents(200)), sparse_rows(documents(200) / 2)
    config = build_autoencoder(counts, {"hidden": (5,), "units": "auto"}, 7).network.config
    assert (config.visible, config.units, config.seed, config.n_columns) == ("counts", "binary", 7, 40)
    config = build_autoencoder(fractions, {"hidden": (5,)}, 0).network.config
    assert (config.visible, config.units) == ("real", "relu")
    assert build_autoencoder(sparse_rows(-documents(200)), {"hidden": (5,)}, 0).network.config.visible == "real"
    config = build_autoencoder(counts, {"hidden": (5,), "scheme": "count_sketch"}, 0).network.config
    assert (config.visible, config.n_visible) == ("real", 2000)
    training = build_autoencoder(counts, {"epochs": "auto", "batch_size": 10}, 0).training
    assert (training.epochs, training.patience, training.batch_size, training.pretrain) == (50, 16, 10, 500)
    assert build_autoencoder(_Many(counts, 10**6), {}, 0).training.epochs == 5
    for settings, message in (
        ({"batch_size": "x"}, "batch_size='x' is not possible"),
        ({"epochs": 2.5}, "epochs=2.5 is not possible"),
        ({"dropout": 0.5}, "an autoencoder has no setting dropout"),
    ):
        with pytest.raises(InputError, match=message):
            build_autoencoder(counts, settings, 0)


def test_autoencoders_take_a_gpu_for_fewer_rows(monkeypatch):
    model = build_autoencoder(sparse_rows(documents(10)), {"hidden": (5,)}, 0)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device("auto", model, 1999).type == "cpu"
    assert choose_device("auto", model, 2000).type == "cuda"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto", model, 10**6).type == "cpu"
