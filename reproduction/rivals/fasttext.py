"""fastText, on texts as they are."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
import weakref
from pathlib import Path
from typing import ClassVar

import numpy as np

from reproduction.rivals.rival import Rival
from sketchnet.checks import import_extra
from sketchnet.errors import InputError
from sketchnet.kernels import n_threads

_BETWEEN = re.compile(r"[\W_]+")


class FastText(Rival):
    """Lower-case runs of letters and digits are words. With more than one thread no two runs are the same."""

    name = "fastText"
    packages = ("fasttext",)
    extra = "rivals"
    view = "texts"
    takes_several_labels = True
    defaults: ClassVar = {"epochs": 25, "rate": 0.5, "width": 50, "words": 2, "letters": 0}
    space: ClassVar = {
        "epochs": (5, 10, 25, 50), "rate": (0.1, 0.3, 0.5, 1.0), "width": (20, 50, 100), "words": (1, 2, 3),
        "letters": (0, 4, 6),
    }  # fmt: skip

    def __init__(self, **settings):
        super().__init__(**settings)
        self._folder = Path(tempfile.mkdtemp(prefix="sketchnet-fasttext-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def _checked(self, X):
        if np.ndim(X) != 1:
            raise InputError("fastText takes texts alone")
        return X

    def _learn(self, X, y, settings, valid, deadline) -> None:
        fasttext = import_extra("fasttext", self.extra, self.name)
        begun, begun_cpu = time.perf_counter(), time.process_time()
        path = self._folder / "train.txt"
        with open(path, "w", encoding="utf8") as file:
            for row, text in enumerate(X):
                labels = np.flatnonzero(y[row]) if self.several_labels_ else [y[row]]
                file.write(" ".join(f"__label__{label}" for label in labels) + f" {as_words(text)}\n")
        self.conversion += time.perf_counter() - begun
        self.conversion_cpu += time.process_time() - begun_cpu
        self._model = fasttext.train_supervised(
            str(path), epoch=settings["epochs"], lr=settings["rate"], dim=settings["width"],
            wordNgrams=settings["words"], minn=min(1, settings["letters"]), maxn=settings["letters"],
            loss="ova" if self.several_labels_ else "softmax", thread=n_threads(), seed=self.seed, verbose=0,
        )  # fmt: skip

    def _outputs(self, X):
        found = np.zeros((len(X), len(self.classes_)))
        # Not its own `predict`, which asks NumPy for an array without a copy in a way that NumPy 2 refuses.
        for row, text in enumerate(X):
            for probability, label in self._model.f.predict(f"{as_words(text)}\n", -1, 0.0, "strict"):
                found[row, int(label.removeprefix("__label__"))] = min(1.0, probability)
        return found


def as_words(text: str) -> str:
    return _BETWEEN.sub(" ", text.lower()).strip()
