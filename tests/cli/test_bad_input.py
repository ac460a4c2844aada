"""What predict, evaluate, explain and train say to bad input. They change nothing."""

import gzip
import os
import shutil
import sys

import numpy as np
import pytest
import torch
from scipy import sparse

from sketchnet import cli
from tests.cli.command_line import bad, contents, good, sketchnet
from tests.cli.planted import TINY


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("predict nothing rows.svm", "nothing is no model: there is no nothing/config.json"),
        ("predict rows.svm rows.svm", "rows.svm is no model"),
        ("predict rows missing.svm", "there is no file missing.svm"),
        ("predict rows", "missing argument 'INPUT'; its arguments are MODEL INPUT; try sketchnet predict --help"),
        ("predict rows nan.svm", "nan.svm:1:5: value 'nan' is not a finite decimal number"),
        ("predict rows nan.npz", "NaN or infinity: nan in row 0, column 3"),
        ("predict rows far.svm", "far.svm:4:7: id '51' is too large; allowed are 1 to 50"),
        ("predict rows far.svm --columns 60", "far.svm:4:7: id '51' is too large; allowed are 1 to 50"),
        ("evaluate rows far.svm --columns 60", "far.svm:4:7: id '51' is too large; allowed are 1 to 50"),
        ("explain rows far.svm", "far.svm:4:7: id '51' is too large; allowed are 1 to 50"),
        ("report rows --data far.svm --columns 60 --out x.html", "far.svm:4:7: id '51' is too large; allowed are 1 to"),
        ("predict rows wide.npz", "wide.npz has 60 columns; the model has 50"),
        *(
            (f"{verb} large.svm", "large.svm, by the model rows: the output for row 0 is not a finite number")
            for verb in ("predict rows", "evaluate rows", "explain rows", "report rows --out x.html --data")
        ),
        ("predict rows urls.txt --text", "the model was not trained on text"),
        ("predict rows table.csv --format table", "the model was not trained on one"),
        ("predict rows rows.svm --format xml", "--format xml is not possible"),
        ("predict rows rows.svm --norm l2", "--norm is for text"),
        ("predict table short.csv", "column 'size' is missing"),
        ("predict table table.csv --categorical size", "--categorical size is not how the training rows were read: it"),
        (
            "predict table table.csv --ignore colour",
            "--ignore colour is not how the training rows were read: it was ca",
        ),
        (
            "predict table table.csv --missing ?",
            "--missing is not how the training rows were read: there was no --missing",
        ),
        (
            "predict table table.csv --columns 9",
            "--columns is not how the training rows were read: there was no --columns there",
        ),
        ("predict urls urls.txt --ngrams 2-3", "--ngrams is not how the training rows were read: it was"),
        (
            "predict urls urls.txt --binary",
            "--binary is not how the training rows were read: there was no --binary there",
        ),
        ("predict rows rows.svm --output rows.svm", "--output rows.svm is rows.svm, or in it, which would be lost"),
        ("predict rows rows.svm --output rows/config.json", "is rows, or in it, which would be lost"),
        ("predict urls rows.svm", "rows.svm is named as svmlight, but its like was text; give --text"),
        ("predict rows rows.svm --skip-bad-lines", "answers would no longer be those of their lines"),
        ("predict table table.csv --categorical nothing", "--categorical nothing is not possible: the training rows"),
        ("predict urls urls.txt --text-column 3", "there are 1 fields, but field 3 is asked for"),
        ("predict numbers rows.svm --proba", "--proba is for classes; numbers predicts numbers"),
        ("predict rows .", "is not a data set"),
        ("evaluate nothing rows.svm", "nothing is no model"),
        ("evaluate rows nan.svm", "nan.svm:1:5"),
        ("evaluate rows far.svm", "far.svm:4:7: id '51' is too large; allowed are 1 to 50"),
        ("evaluate rows labels.svm", "labels.svm: label 7 of row 1 is not among the classes -1, 1"),
        ("evaluate rows several.svm", "the line has no label or several"),
        ("evaluate several negative.svm", "a label that is no whole number from 0 on"),
        ("evaluate several labels.svm", "labels go up to 7; the model knows 0 to 2"),
        ("evaluate rows empty.svm", "empty.svm has no rows"),
        ("evaluate table empty.csv", "empty.csv has no rows"),
        ("evaluate urls urls.txt", "urls.txt has no labels"),
        ("evaluate table table.csv --label colour", "--label colour is not what the model learnt; that was answer"),
        ("evaluate urls classes.tsv --text-column 2 --label-column 1", "has the class 'ugly'; the model knows"),
        ("explain nothing rows.svm", "nothing is no model"),
        ("explain rows empty.svm", "empty.svm has no rows"),
        ("explain rows rows.svm --row 1000", "rows.svm has 240 rows; --row 1000 is beyond them"),
        ("explain rows rows.svm --row -1", "--row -1 is not possible; it must be greater than or equal to 0"),
        ("explain rows rows.svm --top 0", "--top 0 is not possible; it must be greater than or equal to 1"),
        ("explain rows rows.svm --output 3", "--output 3 is not possible; classes are -1, 1"),
        ("explain numbers rows.svm --output 3", "not what this model predicts"),
        ("explain rows -", "cannot come from standard input"),
        ("train nan.svm --out new", "nan.svm:1:5"),
        ("train nan.npz --out new", "NaN or infinity"),
        ("train one.svm --out new", "there is only one class, 1;"),
        ("train empty.svm --out new", "has no rows"),
        ("train bare.svm --out new", "bare.svm has no features: none of its 2 rows has an entry"),
        ("train unlabelled.svm --out new", "the rows have no labels to learn"),
        ("train wide.npz --out new", "no labels to learn; a .npz has no place for them, svmlight has"),
        ("train halves.svm --out new", "labels such as 0.5 are numbers, not classes; learn them with --regression"),
        ("train rows.svm --out new --eta 3", "eta=3.0 is not possible; it must be a number from 0 to 1"),
        (
            "train rows.svm --out new --set dropout=1",
            "dropout=1 is not possible; it must be a number from 0 to below 1",
        ),
        ("train far.svm --out new --columns 9", "far.svm:4:7: id '51' is too large; allowed are 1 to 9"),
        (
            "train far.svm --out new --columns 9 --skip-bad-lines",
            "far.svm:4:7: id '51' is too large; allowed are 1 to 9",
        ),
        ("train rows.svm --out new --test table.csv", "table.csv does not fit the training rows"),
        ("train rows.svm --out new --test narrow.npz", "rows beside the training rows have no labels, those one a row"),
        ("train numbers.svm --out new --regression --test narrow.npz", "have no labels, those one a row"),
        ("train empty.csv --label answer --out new", "the table has no rows"),
        ("train rows.svm --out new --set colour=red", "there is no setting colour"),
        ("train rows.svm --out new --set droput=0.1", "there is no setting droput; did you mean dropout?"),
        ("train rows.svm --out new -k 9 --set n_components=8", "--set n_components and --components say the same"),
        ("train rows.svm --out new --fixed --set learn=true", "--set learn and --fixed say the same"),
        ("train rows.svm --out new --set dropout", "--set dropout is not possible"),
        ("train rows.svm --out new --fixed --eta 0.5", "--eta is not for --fixed projections"),
        ("train rows.svm --out new --set seed=3", "give --seed"),
        ("train rows.svm --out new --hidden many", "--hidden many is not possible"),
        ("train rows.svm --out new --hidden 0", "hidden=0 is not possible"),
        ("train rows.svm --out new --test labels.svm", "labels.svm: label 7 of row 1 is not among the classes"),
    ],
)
def test_bad_input(args, message, here):
    files = {
        "nan.svm": "1 3:nan\n",
        "far.svm": "# rows\n1 3:1\n\n1 3:1 51:1\n",
        "large.svm": "1 1:3e38 2:3e38 50:3e38\n",
        "labels.svm": "1 1:1\n7 1:1\n",
        "negative.svm": "0,-2 1:1\n",
        "one.svm": "1 1:1\n1 2:1\n",
        "bare.svm": "1\n0\n",
        "unlabelled.svm": "1:1\n2:1\n",
        "halves.svm": "1 1:1\n0.5 2:1\n",
        "empty.svm": "",
        "empty.csv": "colour,size,answer\n",
        "short.csv": "colour,answer\nred,yes\n",
        "classes.tsv": "good\tx.example\nugly\ty.example\n",
    }
    for name, text in files.items():
        (here / name).write_text(text)
    sparse.save_npz(here / "nan.npz", sparse.csr_array((np.array([np.nan]), [3], [0, 1]), shape=(1, 50)))
    sparse.save_npz(here / "wide.npz", sparse.csr_array((np.ones(1), [3], [0, 1]), shape=(1, 60)))
    sparse.save_npz(here / "narrow.npz", sparse.csr_array((np.ones(1), [3], [0, 1]), shape=(1, 50)))
    before = contents(here)
    bad(*args.split(), *(TINY[:2] if args.startswith("train") else ()), message=message, cwd=here)
    shutil.rmtree(here / "new", ignore_errors=True)  # where train keeps what it has read
    assert contents(here) == before


@pytest.mark.parametrize(
    ("package", "args"),
    [
        ("tensorboard", "train rows.svm --out new --tensorboard"),
        ("pyarrow", "train rows.parquet --out new"),
        ("zstandard", "train rows.svm.zst --out new"),
    ],
)
def test_a_missing_package_is_bad_usage(package, args, here, monkeypatch):
    (here / "rows.parquet").write_bytes(b"PAR1")
    (here / "rows.svm.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    before = contents(here)
    monkeypatch.setitem(sys.modules, package, None)
    message = f"needs the package {package}: pip install 'sketchnet["
    bad(*args.split(), *(TINY if args.startswith("train") else ()), message=message, cwd=here)
    assert contents(here) == before


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError("boom"), "boom"),
        (OSError(5, "Input/output error"), "Input/output error"),
        (OSError(5, "Input/output error", "rows.svm"), "rows.svm: Input/output error"),
        (MemoryError(), "out of memory"),
        (torch.OutOfMemoryError("CUDA out of memory.\nOf the allocated memory"), "out of memory: CUDA out of memory."),
    ],
)
def test_failures_of_the_system_are_one_line(error, message, monkeypatch, tmp_path):
    def fails(**_):
        raise error

    monkeypatch.setattr(cli, "app", fails)
    done = sketchnet("predict", "model", "rows.svm", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, f"sketchnet: {message}\n")


def test_mistakes_of_ours_stay_visible(monkeypatch, tmp_path):
    def fails(**_):
        raise RuntimeError("shapes differ")

    monkeypatch.setattr(cli, "app", fails)
    with pytest.raises(RuntimeError, match="shapes differ"):
        sketchnet("predict", "model", "rows.svm", cwd=tmp_path)


@pytest.mark.parametrize("args", ["predict rows", "evaluate rows", "explain rows", "train --out new"])
def test_how_to_read_is_said_of_files_alone(args, here):
    """Those of a folder have been read: what was asked for cannot be had."""
    good("ingest", "rows.svm", "shards", cwd=here)
    message = "--label is for files, but shards is a folder: its rows have been read before"
    bad(*args.split(), "shards", "--label", "other", message=message, cwd=here)


@pytest.mark.parametrize("args", ["train rows.svm --out", "synth -n 50 -d 9 --density 0.5"])
def test_a_place_that_no_folder_can_take(args, tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:1\n0 2:1\n" * 20)
    (tmp_path / "link").symlink_to("nowhere")
    must = "it must be a folder, or a name that is free"
    bad(*args.split(), "link", message=f"link is a link that leads nowhere; {must}", cwd=tmp_path)
    bad(*args.split(), "rows.svm", message=f"rows.svm is a file; {must}", cwd=tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["link", "rows.svm"]


def test_packed_standard_input(here):
    packed = gzip.compress((here / "rows.svm").read_bytes())
    bad("predict", "rows", "-", stdin=packed, message="standard input is packed (.gz); unpack it first", cwd=here)
