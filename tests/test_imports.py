"""The way of the data: a module imports only from those that stand before it, and knows no flags of the last.

And importing sketchnet is cheap.
"""

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sketchnet

PACKAGE = Path(sketchnet.__file__).parent
ORDER = """
lazy errors escapes checks memory storage random kernels data projection selection normalisation nn training pretraining
experts evaluation metrics estimators report cli __main__
""".split()


def imported(source: str) -> set[str]:
    """Parts of the package that a source imports, anywhere in it."""
    parts = set()
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        parts |= {name.split(".")[1] for name in names if name.startswith("sketchnet.")}
    return parts & set(ORDER)


def wrong_way(part: str, source: str) -> set[str]:
    return {other for other in imported(source) if ORDER.index(other) > ORDER.index(part)}


def sources():
    for path in sorted(PACKAGE.rglob("*.py")):
        part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if part != "__init__":
            yield pytest.param(part, path, id=str(path.relative_to(PACKAGE)))


@pytest.mark.parametrize(("part", "path"), list(sources()))
def test_imports_point_backwards(part, path):
    assert part in ORDER, f"{part} has no place in the order of the package"
    assert not wrong_way(part, path.read_text())


def test_the_check_can_fail():
    assert wrong_way("random", "from sketchnet.projection import Gaussian") == {"projection"}
    assert wrong_way("data", "def f():\n    from sketchnet import estimators") == {"estimators"}
    assert wrong_way("estimators", "import sketchnet.data.csr") == set()


def hidden(package: str, source: str, modules: set[str]) -> set[str]:
    """Names that an __init__ takes from elsewhere, though a module of the package has the same name: whoever imports
    that module first replaces them by it.
    """
    taken = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    return {
        alias.asname or alias.name
        for node in taken
        for alias in node.names
        if (alias.asname or alias.name) in modules and node.module not in (package, f"{package}.{alias.name}")
    }


@pytest.mark.parametrize("init", sorted(PACKAGE.rglob("__init__.py")), ids=lambda path: path.parent.name)
def test_no_module_hides_a_name_of_its_package(init):
    package = ".".join(init.parent.relative_to(PACKAGE.parent).parts)
    modules = {path.stem for path in init.parent.glob("*.py")} | {
        path.parent.name for path in init.parent.glob("*/*.py")
    }
    assert not hidden(package, init.read_text(), modules)


def test_the_check_of_names_can_fail():
    assert hidden("a.b", "from a.b.moments import batch_norm, moments", {"batch_norm", "moments"}) == {"batch_norm"}
    assert hidden("a.b", "from a.b.moments import moments\nfrom a.b import draw", {"draw", "moments"}) == set()


def named_flags(source: str) -> list[str]:
    """Flags of a command line in a source's texts."""
    texts = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    return [flag for text in texts if isinstance(text, str) for flag in re.findall(r"(?<![\w-])--[a-z][\w-]*", text)]


@pytest.mark.parametrize(("part", "path"), list(sources()))
def test_only_the_command_line_knows_its_flags(part, path):
    """Errors name settings (`errors.Setting`), which it says in flags. Pages have names of styles that look alike."""
    assert part in ("report", "cli", "__main__") or not named_flags(path.read_text())


def test_the_check_of_flags_can_fail():
    assert named_flags('raise InputError(f"give {x} (--base 0), or --skip-bad-lines")') == [
        "--base",
        "--skip-bad-lines",
    ]
    assert named_flags('"a -- b, a--b, ---"  # --base') == []


def test_importing_sketchnet_loads_neither_torch_nor_numba():
    code = "import sys, sketchnet; print([m for m in ('torch', 'numba', 'sklearn', 'scipy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_layers_do_not_load_the_compiler():
    """torch.compiler.disable as a decorator would: a second more for every command."""
    code = "import sys, sketchnet.nn; print('torch._dynamo' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_every_folder_is_there_without_being_imported():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")} - {"cli"}  # which is for a shell
    for folder in folders:  # by what Python asks before somebody has imported it
        assert sketchnet.__getattr__(folder) is importlib.import_module(f"sketchnet.{folder}")


@pytest.mark.parametrize("module", [sketchnet, sketchnet.data])
def test_public_names(module):
    for name in [*module.__all__, *module.__all__]:  # twice: importing one must not hide another
        assert getattr(module, name).__name__ in (name, f"sketchnet.{name}")
        assert name in dir(module)
    with pytest.raises(AttributeError, match="no attribute 'Sketch'"):
        _ = module.Sketch
