"""Cells that the labels on document retrieval share: the reference, projections in front, starts of RBMs."""

from __future__ import annotations

from reproduction.experiments.chapter4 import SCHEMES
from reproduction.experiments.experiment import Cell

PROJECTIONS = {name: SCHEMES[name] for name in ("Gaussian", "Achlioptas'", "Li's", "SRHT", "Count Sketch")}
REFERENCE = "Reference"
STARTS = {"Gaussian (reference)": None} | {name: scheme for name, scheme in PROJECTIONS.items() if name != "Gaussian"}

_TNG, _REUTERS = "tng", "reuters"
REFERENCE_WORDS = {"smoke": 200, "small": 2000, "full": 2000}
SIZES = {  # of the dictionary behind a projection
    (_TNG, "smoke"): (300, 400),
    (_TNG, "small"): (6000, 10_000),
    (_TNG, "full"): (4000, 6000, 8000, 10_000),
    (_REUTERS, "smoke"): (300, 400),
    (_REUTERS, "small"): (4000,),
    (_REUTERS, "full"): (4000, 6000, 8000, 10_000),
}
IN_PLACE = (
    "RCV1 is not freely to be had; Reuters-21578 stands in for it, with the same network, and with relevance as the "
    "fraction of labels that two documents have in common. Areas of the two sets cannot be compared."
)


def codes(data: str, scale: str, words: int, scheme: str | None = None, init: str | None = None) -> Cell:
    """An autoencoder for the documents of `data`, "tng" or "reuters"; the smallest scale has generated ones."""
    settings: dict = {"data": data, "words": words}
    if scale == "smoke":
        settings |= {"data": "topics", "pretrain": 5, "epochs": 5}
    elif scale == "small":
        # RBMs of rectified units that took fewer than about 300 steps leave layers that learn nothing.
        settings |= {"rows": 1500, "pretrain": 25, "epochs": 10}
    if scheme is not None:
        settings |= {"scheme": scheme, "components": 100 if scale == "smoke" else 2000}
    return Cell("document_codes", settings | ({} if init is None else {"init": init}))


def reference(data: str, scale: str) -> Cell:
    return codes(data, scale, REFERENCE_WORDS[scale])


def started(data: str, scale: str, init: str | None) -> Cell:
    return codes(data, scale, REFERENCE_WORDS[scale], init=init)
