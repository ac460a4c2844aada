"""What takes part in the score board, fixed before anything is measured: sets, rivals and the budget of search."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from reproduction.rivals import Rival

TIMES_DEFAULT = 10  # a search has so many times the seconds of the default's fit on the same set
LEAST_SECONDS = 900.0  # that a rival's first trial, and its last fit, may take where the search has less: a whole fit
MOST_TRIALS = 20  # the first is the rival's usual settings, the others are drawn from its space
HELD_BACK = "a random tenth of the training rows, the same for all rivals"
SEEDS = (0, 1, 2)  # the first one's search chooses the settings of all

DEFAULT = "default"
NAME_OF_DEFAULT = "sketchnet, default"
EVERYWHERE = ("text", "table", "dense", "sparse")
SETS = {  # name: kind
    "urls": "text",
    "tng": "text",
    "reuters": "text",
    "mnist": "dense",
    "frappe": "table",
    "ml100k": "table",
    "a9a": "table",
    "adult": "table",
    "synthetic-3e-6": "sparse",
    "synthetic-1e-5": "sparse",
    "synthetic-3e-5": "sparse",
}


@dataclass(frozen=True)
class Entrant:
    """A rival's class, and the kinds of sets that it is measured on."""

    place: str  # module:class, below reproduction.rivals
    kinds: tuple[str, ...] = EVERYWHERE

    @property
    def rival(self) -> type[Rival]:
        module, _, name = self.place.partition(":")
        return getattr(import_module(f"reproduction.rivals.{module}"), name)

    @property
    def missing(self) -> str | None:
        """The package that it needs and that is not installed."""
        return next((each for each in self.rival.packages if find_spec(each.partition(".")[0]) is None), None)

    @property
    def code(self) -> str:
        """What tells its settings from others: a run with the same is not made again."""
        rival = self.rival
        return _digest(repr((rival.name, rival.defaults, rival.space)).encode())


RIVALS = {
    "liblinear": Entrant("linear:LinearSvm"),
    "logistic": Entrant("linear:LogisticRegression"),
    "nbsvm": Entrant("naive_bayes_svm:NaiveBayesSvm"),
    "vw": Entrant("vowpal:VowpalWabbit"),
    "lightgbm": Entrant("trees:CategoricalLightGBM"),
    "catboost": Entrant("trees:CatBoost"),
    "realmlp": Entrant("tabular:RealMlp", ("table", "dense")),
    "tabm": Entrant("tabular:TabM", ("table", "dense")),
    "fm": Entrant("factorisation:FactorisationMachine"),
    "fasttext": Entrant("fasttext:FastText", ("text",)),
    "embedding": Entrant("embedding:EmbeddingNetwork"),
}


def rivals_of(kind: str, keys: list[str]) -> list[str]:
    """Those of the keys that sets of a kind are measured with."""
    return [key for key in keys if kind in RIVALS[key].kinds]


def code_of_default() -> str:
    """What tells the library's source from others."""
    import sketchnet

    folder = Path(sketchnet.__file__).parent
    return _digest(b"".join(path.read_bytes() for path in sorted(folder.rglob("*.py"))))


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()[:12]
