"""The alternatives to projecting: columns chosen by a score, and directions of most mass (truncated SVD)."""

from sketchnet.lazy import load_on_use

_WHERE = {
    "chi2": "scores",
    "chi2_scores": "scores",
    "f_classif": "scores",
    "f_scores": "scores",
    "information_gain": "gain",
    "truncated_svd": "svd",
}

__all__ = [*_WHERE]
__getattr__, __dir__ = load_on_use(__name__, _WHERE)
