"""What the library says of its settings, the command line says of its flags."""

import pytest

from sketchnet.cli.flags import in_flags
from sketchnet.errors import BadRows, InputError, MissingExtraError, MissingFile, Setting
from tests.cli.command_line import bad, good


@pytest.mark.parametrize(
    ("setting", "python", "flags"),
    [
        (Setting("base", 0), "base=0", "--base 0"),
        (Setting("overwrite", True), "overwrite=True", "--overwrite"),
        (Setting("n_columns", 100), "n_columns=100", "--columns 100"),
        (Setting("text_column", 2), "text_column=2", "--text-column 2"),
        (Setting("ignore", ["a b", "c"]), "ignore=['a b', 'c']", "--ignore 'a b' --ignore c"),
        (Setting("missing", ["?"], "missing=[*MISSING, '?']"), "missing=[*MISSING, '?']", "--missing '?'"),
        (Setting("chunk_bytes", 100), "chunk_bytes=100", "--memory"),
        (Setting("hashed_columns", 64), "hashed_columns=64", "--set hashed_columns=64"),
    ],
)
def test_each_becomes_its_flag(setting, python, flags):
    error = InputError(f"rebase=0: it is so; give {setting} or not", setting)
    assert str(error) == f"rebase=0: it is so; give {python} or not"
    assert in_flags(error) == f"rebase=0: it is so; give {flags} or not"


@pytest.mark.parametrize("kind", [BadRows, InputError, MissingFile, MissingExtraError])
def test_settings_of_an_error_behind_the_error(kind):
    """Whoever adds a file's name makes a new error of the old one's text."""

    def read():
        try:
            raise kind(f"give {Setting('base', 0)}", Setting("base", 0))
        except InputError as error:
            raise InputError(f"x.svm: {error}") from None

    with pytest.raises(InputError) as caught:
        read()
    assert in_flags(caught.value) == "x.svm: give --base 0"


@pytest.mark.parametrize(
    ("name", "text", "options", "message"),
    [
        ("a.svm", "1 0:1\n", "--base 1", "if they begin at 0, give --base 0"),
        ("a.svm", "1,2 1:1\n", "--labels single", "allowed is one; --labels multi allows any number"),
        (
            "a.csv",
            "a,y\n" + "1,0\n" * 40 + "te n,1\n",
            "--label y",
            "--categorical a if the column has codes, or --mis",
        ),
        ("a.csv", "a,y\n" + "1,0\n" * 40 + "te n,1\n", "--label y", "or --missing 'te n' if that means no value"),
        ("a.csv", "a,y\n9007199254740993,0\n", "--label y", "--ignore a leaves the column out, --categorical a takes"),
        ("b.svm", "1 2:1\n", "", "choose another name or give --overwrite to replace it"),
        (
            "rows.svm",
            "1 1:1\n",
            "--memory 11MB",
            "pieces of another size (--memory); choose another name or give --over",
        ),
    ],
)
def test_flags_that_would_help(name, text, options, message, tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:1\n")
    (tmp_path / name).write_text(text)
    good("ingest", "rows.svm", "rows", cwd=tmp_path)
    bad("ingest", name, "rows" if "--over" in message else "out", *options.split(), message=message, cwd=tmp_path)
