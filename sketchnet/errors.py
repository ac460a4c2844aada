"""Errors that sketchnet raises on purpose. Each says what was given, where, and what is allowed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """A setting that a message names, in Python's notation or in `words`; the command line puts its flag there."""

    name: str
    value: object
    words: str | None = None

    def __str__(self) -> str:
        return self.words or f"{self.name}={self.value!r}"


class SketchnetError(Exception):
    """Base of every error that sketchnet raises on purpose."""


class InputError(SketchnetError, ValueError):
    """The data or an argument is not usable; nothing was changed. `settings` are those that its message names."""

    def __init__(self, message: object = "", *settings: Setting):
        super().__init__(message)
        self.settings = settings


class BeyondColumns(InputError):
    """A row has a column id that the given width does not allow; `needed` columns would."""

    def __init__(self, message: str, needed: int):
        super().__init__(message)
        self.needed = needed


class BadRows(InputError):
    """Rows are not usable. It names no file: who reads one adds that."""


class Contradiction(InputError):
    """Rows are not as those before suggested; with what is `learnt` from it, if anything, all can be read again."""

    def __init__(self, message: str, learnt: dict | None = None, *settings: Setting):
        super().__init__(message, *settings)
        self.learnt = learnt


class MissingFile(InputError, FileNotFoundError):
    """There is no such file or folder."""


class MissingExtraError(InputError, ImportError):
    """What was asked for needs a package that is not installed."""


class StorageError(SketchnetError, OSError):
    """A file could not be read or written."""


class TrainingError(SketchnetError):
    """Training cannot go on."""


class Interrupted(SketchnetError):
    """Asked to stop; what was reached is saved."""


class UncheckedWarning(UserWarning):
    """A file has no checksums, so that damage to it may go unseen."""
