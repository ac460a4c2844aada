"""What predictions are worth, and codes by which documents are to be found."""

from sketchnet.evaluation.metrics import measure
from sketchnet.evaluation.retrieval import RetrievalResult, nearest, retrieval

__all__ = ["RetrievalResult", "measure", "nearest", "retrieval"]
