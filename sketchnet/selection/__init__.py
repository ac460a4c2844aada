"""The alternatives to projecting: columns chosen by a score, and directions of most mass (truncated SVD)."""

from importlib import import_module

_WHERE = {
    "chi2": "scores",
    "chi2_scores": "scores",
    "f_classif": "scores",
    "f_scores": "scores",
    "information_gain": "gain",
    "truncated_svd": "svd",
}

__all__ = list(_WHERE)


def __getattr__(name: str):
    if name in _WHERE:
        return getattr(import_module(f"sketchnet.selection.{_WHERE[name]}"), name)
    raise AttributeError(f"module 'sketchnet.selection' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
