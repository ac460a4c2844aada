"""Names that a terminal would obey: of classes, of columns, of files. It gets none of them as they are."""

import ast
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from sketchnet import cli
from sketchnet.errors import InputError, UncheckedWarning
from sketchnet.escapes import escape_controls
from tests.cli.command_line import bad, good, sketchnet
from tests.cli.planted import TINY

HOSTILE = "\x1b]0;title\x07\x9b2J\u202e\x7f\r\n"
SHOWN = r"\x1b]0;title\x07\x9b2J\u202e\x7f\r\n"


def quiet(text):
    """Whether a terminal shows all of a text, line by line."""
    return escape_controls(text, but="\n\t") == text


@pytest.fixture(scope="module")
def hostile(one_thread, tmp_path_factory):
    """A folder with a table of hostile names, and the model of it."""
    folder = tmp_path_factory.mktemp("hostile")
    lines = [f'"colour{HOSTILE}",size,answer']
    words = [("red", "yes") if i % 2 else ("blue", "no") for i in range(200)]
    lines += [f'"{colour}{HOSTILE}",{i % 7},"{answer}{HOSTILE}"' for i, (colour, answer) in enumerate(words)]
    (folder / "table.csv").write_bytes("\n".join(lines).encode() + b"\n")
    good("train", "table.csv", "--label", "answer", "--out", "model", *TINY, cwd=folder)
    return folder


def test_predictions_are_a_line_each(hostile):
    said = good("predict", "model", "table.csv", "--proba", cwd=hostile)
    assert quiet(said)
    header, *answers = said.removesuffix("\n").split("\n")
    assert header == f"label\tno{SHOWN}\tyes{SHOWN}"
    assert [answer.split("\t")[0] for answer in answers] == [f"no{SHOWN}", f"yes{SHOWN}"] * 100
    good("predict", "model", "table.csv", "--output", "answers", "--proba", cwd=hostile)
    assert (hostile / "answers").read_text() == said


def test_tables_and_lines_show_names_escaped(hostile):
    said = good("evaluate", "model", "table.csv", cwd=hostile)
    assert quiet(said)
    header, *rows = said.splitlines()[-3:]
    assert header.split() == [f"no{SHOWN}", f"yes{SHOWN}"]
    assert {len(line) for line in rows} == {len(header)}  # in line
    for more in ((), ("--row", 1, "--output", f"yes{HOSTILE}")):
        said = good("explain", "model", "table.csv", *more, cwd=hostile)
        assert quiet(said)
        assert f"  colour{SHOWN}=red{SHOWN}\n" in said


def test_json_has_the_very_names(hostile):
    classes = [f"no{HOSTILE}", f"yes{HOSTILE}"]
    lines = good("predict", "model", "table.csv", "--json", cwd=hostile)
    assert quiet(lines)
    first, second = (json.loads(line) for line in lines.split("\n")[:2])
    assert [first["label"], second["label"], *first["probabilities"]] == classes + classes
    for verb in ("evaluate", "explain"):
        said = good(verb, "model", "table.csv", "--json", cwd=hostile)
        assert quiet(said)
        found = json.loads(said)
        assert verb != "evaluate" or found["classes"] == classes
        assert verb != "explain" or f"colour{HOSTILE}=red{HOSTILE}" in [c["name"] for c in found["columns"]]


def test_pages_have_none(hostile):
    good("report", "model", "--data", "table.csv", "--out", "o.html", "--markdown", "o.md", cwd=hostile)
    for name in ("o.html", "o.md"):
        text = (hostile / name).read_text(encoding="utf-8")
        assert quiet(text)
        assert r"]0;title\x07\x9b2J\u202e\x7f\r" in text.replace("\\\\", "\\")


@pytest.mark.parametrize("verb", ["predict", "evaluate", "explain"])
def test_names_of_files_in_errors(verb, here):
    (here / f"a{HOSTILE}.svm").write_text("1 1:x\n")
    done = bad(verb, "rows", f"a{HOSTILE}.svm", message=f"a{SHOWN}.svm:1:5: value 'x' is not a finite", cwd=here)
    assert quiet(done.stderr)
    done = bad(verb, f"m{HOSTILE}", "rows.svm", message=f"m{SHOWN} is no model", cwd=here)
    assert quiet(done.stderr)


def test_names_of_files_in_answers(here):
    (here / f"a{HOSTILE}.svm").write_text((here / "rows.svm").read_text() + "spam\n")
    said = good("ingest", f"a{HOSTILE}.svm", f"set{HOSTILE}", "--skip-bad-lines", cwd=here)
    assert said.startswith(f"set{SHOWN}: 240 x 50")
    done = sketchnet("project", f"a{HOSTILE}.svm", f"o{HOSTILE}.npy", "-k", 4, "--skip-bad-lines", cwd=here)
    assert done.stderr == f"a{SHOWN}.svm: 1 malformed lines left out\n"
    assert done.stdout.startswith(f"o{SHOWN}.npy: 240 x 50")


def test_names_that_are_no_utf8(here):
    """Python has halves of surrogate pairs for their bytes, which cannot be written."""
    path = here / os.fsdecode(b"\xff.svm")
    path.write_bytes((here / "rows.svm").read_bytes())
    assert good("ingest", path.name, os.fsdecode(b"\xfe"), cwd=here).startswith(r"\udcfe: 240 x 50")
    good("report", "rows", "--data", path.name, "--out", "o.html", cwd=here)
    assert r"\udcff.svm" in (here / "o.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError(f"bad {HOSTILE}"), 2),
        (OSError(5, f"bad {HOSTILE}"), 1),
        (OSError(5, "no", f"bad {HOSTILE}"), 1),
    ],
)
def test_whatever_a_message_holds(error, code, tmp_path, monkeypatch):
    def fails(**_):
        warnings.warn(f"unchecked {HOSTILE}", UncheckedWarning, stacklevel=1)
        raise error

    monkeypatch.setattr(cli, "app", fails)
    done = sketchnet("predict", cwd=tmp_path)
    first, second, rest = done.stderr.split("\n")
    assert (done.returncode, first, rest) == (code, f"sketchnet: unchecked {SHOWN}", "")
    assert second.startswith(f"sketchnet: bad {SHOWN}")


def test_bars_show_names_escaped(monkeypatch, capfd):
    from sketchnet.cli.progress import progress_steps

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with progress_steps(f"reading [red]x{HOSTILE}") as tick:
        tick(1, 1, "")
    said = capfd.readouterr().err
    assert "[red]x" in said
    assert "\x1b]0" not in said
    assert not {"\x07", "\x9b", "\u202e", "\x7f"} & set(said)


def test_letters_that_the_terminal_lacks(here):
    """They are escaped too, where they were a traceback."""
    (here / "ä.svm").write_bytes((here / "rows.svm").read_bytes())
    command = [sys.executable, "-m", "sketchnet", "ingest", "ä.svm", "ä"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, cwd=here, capture_output=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(rb"\xe4: 240 x 50")


STREAMS = ("typer", "sys.stdout", "sys.stdout.buffer", "sys.stderr")


def printing(source):
    """Lines of a source that print, or write to a standard stream."""
    nodes = list(ast.walk(ast.parse(source)))
    prints = [node.lineno for node in nodes if isinstance(node, ast.Name) and node.id == "print"]
    methods = [node for node in nodes if isinstance(node, ast.Attribute) and ast.unparse(node.value) in STREAMS]
    return prints + [node.lineno for node in methods if node.attr in ("echo", "secho", "write", "writelines")]


def test_one_module_prints():
    """The other one writes lines whose names have been escaped, and bytes."""
    for path in Path(cli.__file__).parent.glob("*.py"):
        assert not printing(path.read_text()) or path.name in ("printing.py", "lines.py"), path


def test_the_check_can_fail():
    assert printing("print(1)\nx = 2\nsys.stderr.write('a')\ntyper.echo(3)") == [1, 3, 4]
