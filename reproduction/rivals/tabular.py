"""Networks for tables: RealMLP and TabM, through pytabkit."""

from __future__ import annotations

import time
import warnings
from math import isinf
from typing import ClassVar

import numpy as np

from reproduction.rivals.fields import Fields
from reproduction.rivals.rival import Rival
from sketchnet.checks import import_extra
from sketchnet.errors import InputError
from sketchnet.kernels import n_threads

_EMBEDDED = 100  # numbers up to which each has an embedding of its own: of 784 pixels it would be most of the network


class TabularNetwork(Rival):
    packages = ("pytabkit",)
    extra = "rivals"
    view = "fields"

    def _checked(self, X):
        if not isinstance(X, Fields):
            raise InputError(f"{self.name} takes tables alone")
        return X

    def _learn(self, X, y, settings, valid, deadline) -> None:
        pytabkit = import_extra("pytabkit", self.extra, self.name)
        self._model = self._make(pytabkit, settings, X, whole=valid is None)
        rows = {} if valid is None else {"X_val": valid[0].frame(), "y_val": valid[1]}
        if not isinf(deadline):
            rows["time_to_fit_in_seconds"] = max(1, int(deadline - time.perf_counter()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the packages beneath, about their own versions and workers
            self._model.fit(X.frame(), y, **rows)

    def _outputs(self, X):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(self._model.predict_proba(X.frame()))


class RealMlp(TabularNetwork):
    """Label smoothing is off and the epoch chosen by log loss, as its documentation advises where that is judged."""

    name = "RealMLP"
    defaults: ClassVar = {
        "epochs": 256, "best": None, "width": 256, "rate": 0.04, "dropout": 0.15, "decay": 0.02, "batch": 256,
    }  # fmt: skip
    space: ClassVar = {
        "epochs": (64, 256), "width": (128, 256, 512), "rate": (0.01, 0.02, 0.04, 0.08), "dropout": (0.0, 0.15, 0.3),
        "decay": (0.0, 0.005, 0.02), "batch": (256, 1024),
    }  # fmt: skip

    def _make(self, pytabkit, settings, X, whole: bool):
        numbers = {"num_emb_type": "none"} if X.numbers.shape[1] > _EMBEDDED else {}
        stop = {"val_fraction": 0.0, "stop_epoch": settings["best"] or settings["epochs"]} if whole else {}
        return pytabkit.RealMLP_TD_Classifier(
            device="cpu", random_state=self.seed, n_threads=n_threads(), n_epochs=settings["epochs"],
            hidden_sizes=[settings["width"]] * 3, lr=settings["rate"], p_drop=settings["dropout"],
            wd=settings["decay"], batch_size=settings["batch"], use_ls=False, val_metric_name="cross_entropy",
            **numbers, **stop,
        )  # fmt: skip

    def _learn(self, X, y, settings, valid, deadline) -> None:
        super()._learn(X, y, settings, valid, deadline)
        if valid is not None:
            settings["best"] = int(self._model.fit_params_["stop_epoch"]["cross_entropy"])


class TabM(TabularNetwork):
    """Smaller than on a GPU, that it may end. It cannot learn without held-back rows, which choose its epoch."""

    name = "TabM"
    needs_held_back_rows = True
    defaults: ClassVar = {
        "members": 8, "width": 128, "blocks": 2, "rate": 2e-3, "dropout": 0.1, "decay": 0.0, "batch": 256,
    }  # fmt: skip
    space: ClassVar = {
        "members": (4, 8, 16), "width": (64, 128, 256), "blocks": (2, 3), "rate": (5e-4, 1e-3, 2e-3, 4e-3),
        "dropout": (0.0, 0.1, 0.3), "decay": (0.0, 1e-4, 1e-2), "batch": (256, 1024),
    }  # fmt: skip

    def _make(self, pytabkit, settings, X, whole: bool):
        return pytabkit.TabM_D_Classifier(
            device="cpu", random_state=self.seed, n_threads=n_threads(), tabm_k=settings["members"],
            d_block=settings["width"], n_blocks=settings["blocks"], lr=settings["rate"], dropout=settings["dropout"],
            weight_decay=settings["decay"], batch_size=settings["batch"], patience=5, n_epochs=50,
            val_metric_name="cross_entropy",
        )  # fmt: skip
