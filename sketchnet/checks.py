"""Checks of settings: each returns the value, or says what was given and what is allowed."""

from __future__ import annotations

import operator
import re
from collections.abc import Collection, Iterable
from importlib import import_module
from math import inf, isfinite
from numbers import Integral, Real

import numpy as np

from sketchnet.errors import InputError, MissingExtraError


def check_integer(name: str, value, least: int, most: int) -> int:
    """A plain int within [least, most]."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or not least <= number <= most:
        raise InputError(f"{name}={value!r} is not possible; it must be an integer from {least} to {most}")
    return number


def check_real(name: str, value, least: float = 0.0, *, below: float = inf, most: float = inf) -> float:
    """A finite float from `least` to `most`, or to below `below`."""
    is_number = isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)
    if not is_number or not least <= value <= most or not value < below:
        end = f" to below {below:g}" if below < inf else f" to {most:g}" if most < inf else ""
        raise InputError(f"{name}={value!r} is not possible; it must be a number from {least:g}{end}")
    return float(value)


def check_flag(name: str, value) -> bool:
    if not isinstance(value, bool | np.bool_ | int) or value not in (True, False):
        raise InputError(f"{name}={value!r} is not possible; it is true or false")
    return bool(value)


def as_flag(value) -> bool | None:
    """True or False for one of Python's or NumPy's; None for anything else."""
    return bool(value) if isinstance(value, bool | np.bool_) else None


def check_choice(name: str, value, allowed: Collection):
    """One of the names allowed; None and numbers may be among them."""
    is_name = isinstance(value, str | Integral) and not isinstance(value, bool)
    if not any(value is choice or (is_name and value == choice) for choice in allowed):
        raise InputError(f"{name}={value!r} is not possible; allowed are {', '.join(map(str, allowed))}")
    return value


def check_options(name: str, value) -> dict:
    """A copy of a dictionary whose keys are names."""
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise InputError(f"{name}={value!r} is not possible; they are names and values, such as {{'s': 100}}")
    return dict(value)


def check_device(device) -> str:
    """The name of a device, also of one of torch's own; whether it is there is another question."""
    name = str(device)
    if not re.fullmatch(r"auto|cpu|cuda(:(0|[1-9][0-9]?))?", name):
        raise InputError(f"device {device!r} is not possible; it is auto, cpu or cuda")
    return name


def cuda_number(device: str) -> int | None:
    """That of a checked name, if it has one."""
    number = device.partition(":")[2]
    return int(number) if number else None


def import_extra(package: str, extra: str, what: str):
    """An optional package, without which `what` is not possible."""
    try:
        return import_module(package)
    except ImportError:
        raise MissingExtraError(f"{what} needs the package {package}: pip install 'sketchnet[{extra}]'") from None


def meant(name: str, known: Iterable[str]) -> str:
    """The end of a message about a name that is none of those known: the nearest ones, or all."""
    from difflib import get_close_matches

    near = get_close_matches(name, sorted(known))
    return f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(sorted(known))}"
