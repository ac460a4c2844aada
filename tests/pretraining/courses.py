"""Small courses of training that begin with RBMs.

Runs have 400 rows: 4 steps an epoch for an RBM, 8 for the network; 2 epochs for each RBM, 3 for the network.
"""

import numpy as np

from sketchnet.data.csr import sparse_rows
from sketchnet.nn import Autoencoder, AutoencoderConfig
from sketchnet.pretraining.autoencoder import Unsupervised
from sketchnet.pretraining.course import Pretrained
from sketchnet.training import Model, Task, TrainingConfig, checkpoint
from sketchnet.training.examples import Examples
from sketchnet.training.loop import train
from tests.training.toy import assert_same_network, examples, make_model, without_seconds

PRETRAIN = {"pretrain": 2, "seed": 3}
FIXED = {"learn": False, "normalise": "standard", "n_components": 16, "hidden": (12, 8), "dropout": 0.2}
LEARNT = {"n_components": 16, "hidden": (12, 8), "feature_dropout": 0.2, "eta": 0.7}


def classifier(network=FIXED, seed=3, kind="binary", **training):
    def run(**options):
        given, task = examples(kind, 400)
        valid = examples(kind, 100, seed=1, task=task)[0]
        model = make_model(task, {**PRETRAIN, **training, "seed": seed}, **network)
        train(model, given, valid, course=Pretrained(), **options)
        return model

    return run


def documents(n, seed=0, d=40):
    return np.random.default_rng(seed).poisson(0.15, (n, d)).astype(np.float32)


def unsupervised(seed=3, network=(), **training):
    def run(**options):
        config = AutoencoderConfig(40, **{"hidden": (12, 8), "n_codes": 3, "seed": seed, **dict(network)})
        how = {"batch_size": 50, "epochs": 3, **PRETRAIN, "seed": seed, **training}
        model = Model(Autoencoder(config), Task("autoencoder"), TrainingConfig(**how))
        given, valid = (Examples(sparse_rows(documents(n, n)), np.zeros(n)) for n in (400, 100))
        train(model, given, valid, course=Unsupervised(), **options)
        return model

    return run


REAL = {"visible": "real", "scheme": "count_sketch", "n_components": 10, "units": "relu", "binary_codes": True}
COURSES = {
    "fixed": classifier(),
    "learnt": classifier(LEARNT),
    "counts": unsupervised(),
    "real": unsupervised(network=REAL),
}
RBMS = {"fixed": 2, "learnt": 2, "counts": 3, "real": 3}


def assert_same_run(folder, model, whole):
    assert_same_network(model, whole)
    assert without_seconds(model.history) == without_seconds(whole.history)
    assert without_seconds(checkpoint.read_history(folder)) == without_seconds(whole.history)
    names = sorted(path.name for path in folder.iterdir())
    assert names == [checkpoint.CONFIG, checkpoint.HISTORY, checkpoint.WEIGHTS]
