"""Names of a package whose modules are loaded on first use."""

from __future__ import annotations

import sys
from importlib import import_module

TYPE_CHECKING = False  # as type checkers know it; `sketchnet` itself loads this module
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def load_on_use(package: str, modules: dict[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package, for names and the modules of it that have them; a name may be
    that of its module.
    """

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{modules[name]}")
        return module if name == modules[name] else getattr(module, name)

    def list_names() -> list[str]:
        return [*vars(sys.modules[package]), *modules]

    return load, list_names
