"""Settings of the library as the command line calls them: the one place that knows both names."""

from __future__ import annotations

import re
from shlex import quote
from typing import cast

from sketchnet.errors import InputError, Setting

_OTHER_NAMES = {"ngram_range": "ngrams", "counts": "binary", "n_columns": "columns", "group": "group_column"}
_OF_MEMORY = ("chunk_bytes", "shard_entries")  # sizes that follow from the budget
_OF_NETWORKS = ("hashed_columns",)  # without a flag of their own


def flag_of(setting: str) -> str:
    """Return the flag that gives a setting: `--text-column` for text_column."""
    return f"--{_OTHER_NAMES.get(setting, setting).replace('_', '-')}"


def in_flags(error: InputError) -> str:
    """Return the message of an error with flags where it names settings, or where an error behind it did."""
    message, cause = str(error), cast(BaseException | None, error)
    while cause is not None:
        for setting in getattr(cause, "settings", ()):
            flags = _flags(setting).replace("\\", r"\\")  # a flag's value may look like a reference to a group
            message = re.sub(rf"(?<!\w){re.escape(str(setting))}", flags, message)
        cause = cause.__context__
    return message


def _flags(setting: Setting) -> str:
    """What a command line says to give a setting its value."""
    name, value = setting.name, setting.value
    if name in _OF_MEMORY:
        return flag_of("memory")
    if name in _OF_NETWORKS:
        return f"--set {name}={value}"
    if value is True:
        return flag_of(name)
    return " ".join(f"{flag_of(name)} {quote(str(each))}" for each in (value if isinstance(value, list) else [value]))
