"""The reproduction takes of sketchnet what is public alone: it is a program like any other's."""

import ast
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import reproduction

PACKAGE = Path(reproduction.__file__).parent
NAMESPACES = {"sketchnet.nn.init"}  # public, though deeper than the parts of the package


def taken(source: str) -> list[tuple[str, str]]:
    """(module, name) of what a source takes of sketchnet, anywhere in it; the name is "" where a module is imported."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found += [(node.module, alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
    return [(module, name) for module, name in found if module.split(".")[0] == "sketchnet"]


def is_public(module: str, name: str) -> bool:
    """Whether a name is one of sketchnet's, or of one of its parts': listed there, or else none of its modules."""
    if (module.count(".") > 1 and module not in NAMESPACES) or "._" in module or name.startswith("_"):
        return name == "__version__" and module == "sketchnet"
    part = import_module(module)
    listed = getattr(part, "__all__", None)
    known = name in listed if listed is not None else not isinstance(getattr(part, name, None), ModuleType)
    return not name or known or f"{module}.{name}".count(".") == 1


def private(source: str) -> list[tuple[str, str]]:
    return [each for each in taken(source) if not is_public(*each)]


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_public_names_alone(path):
    assert private(path.read_text()) == []


def test_public_names_are_there():
    names = {each for path in PACKAGE.rglob("*.py") for each in taken(path.read_text())}
    assert len(names) > 40
    for module, name in names:
        part = import_module(module)
        assert not name or getattr(part, name) is not None


@pytest.mark.parametrize(
    "source",
    [
        "from sketchnet.training.loop import train",
        "import sketchnet.training.loop",
        "def f():\n    from sketchnet.data.csr import as_csr",
        "from sketchnet.storage import _lock",
        "from sketchnet.training import checkpoint",
        "from sketchnet.report import page",
    ],
)
def test_the_check_can_fail(source):
    assert len(private(source)) == 1
