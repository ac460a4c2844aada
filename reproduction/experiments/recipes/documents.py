"""Documents found by the codes of an autoencoder: the area under the curve of precision and recall."""

from __future__ import annotations

import time

import numpy as np

from reproduction.experiments.recipes.bags import bag
from sketchnet.data import as_csr
from sketchnet.metrics import RetrievalResult, retrieval
from sketchnet.pretraining import Unsupervised, build_autoencoder
from sketchnet.training import Examples, choose_device, hold_back, train

_SHAPES = {  # RCV1's network for Reuters, which stands in for it
    "tng": {"hidden": (500, 250, 125), "n_codes": 32},
    "reuters": {"hidden": (500, 500), "n_codes": 128},
    "topics": {"hidden": (40,), "n_codes": 8},
}
_POINTS = 50  # of the curve


def document_codes(
    *,
    seed: int,
    device: str,
    data: str,
    words: int = 2000,
    scheme: str | None = None,
    components: int = 2000,
    init: str | None = None,
    rows: int | None = None,
    pretrain: int | bool = True,
    epochs: int | str = "auto",
) -> dict:
    """Codes of the test documents, learnt from the training documents (or `rows` of either, evenly taken).

    Without a scheme from counts of words, else from TF-IDF behind that projection to `components` columns. `init`: the
    random projection that the RBMs start as.
    """
    found, begun = bag(data, words, tfidf=scheme is not None), time.perf_counter()
    learnt, (test, labels) = _some(found.train, rows), (_some(part, rows) for part in (found.test, found.labels))
    front = {} if scheme is None else {"scheme": scheme, "n_components": components}
    settings = {**_SHAPES[data], **front, "pretrain": pretrain, "epochs": epochs, "pretrain_init": init}
    given = Examples(as_csr(learnt, learnt.shape[1]), np.zeros(learnt.shape[0]))
    examples, valid = hold_back(given, 0.1, seed)
    model = build_autoencoder(examples.data, settings, seed)
    model.network.to(choose_device(device, model, learnt.shape[0]))
    train(model, examples, valid, course=Unsupervised())
    trained = time.perf_counter() - begun
    curve = retrieval(model.outputs(as_csr(test, test.shape[1])), labels, device=str(model.network.device))
    recall = np.linspace(curve.recall[0], curve.recall[-1], _POINTS)
    return {
        "area": round(curve.area, 4),
        "mean_average_precision": round(curve.mean_average_precision, 4),
        "precision_at_10": _precision(curve, 0.1),
        "precision_at_50": _precision(curve, 0.5),
        "recall": recall.round(4).tolist(),
        "precision": _precision(curve, recall),
        "valid_loss": min(record["valid_loss"] for record in model.history if "valid_loss" in record),
        "epochs": sum("valid_loss" in record for record in model.history),
        "seconds": round(trained, 2),
    }


def _some(part, rows: int | None):
    """Documents stand class by class, so not the first ones."""
    n = part.shape[0]
    return part if rows is None or rows >= n else part[np.arange(rows) * n // rows]


def _precision(curve: RetrievalResult, recall):
    return np.interp(recall, curve.recall, curve.precision).round(4).tolist()
