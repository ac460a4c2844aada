"""`sketchnet ingest` on every format, and the other verbs that make or list data."""

import gzip
import json
import re

import numpy as np
import pytest
from scipy import sparse

from sketchnet.data import CsrBatch, Synthetic, open_shards, read_svmlight, write_svmlight
from sketchnet.data.ngrams import NgramHasher
from sketchnet.errors import InputError
from sketchnet.memory import PeakMemory
from tests.cli.command_line import bad, good, sketchnet
from tests.data.test_shards import batch, same
from tests.data.test_svmlight_packed import packer


def test_svmlight_packed_and_in_several_files(tmp_path):
    x = batch(3000, d=10**9)
    write_svmlight(tmp_path / "a.svm", x.rows(slice(0, 1000)))
    write_svmlight(tmp_path / "b.svm.gz", x.rows(slice(1000, 3000)))
    done = sketchnet("ingest", "a.svm", "b.svm.gz", "out", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == 3000
    same(open_shards(tmp_path / "out")[:], read_svmlight([tmp_path / "a.svm", tmp_path / "b.svm.gz"]))


def test_bad_lines_stop_or_are_counted(tmp_path):
    (tmp_path / "a.svm").write_text("1 3:1\n0 5:oops\n1 4:2\n")
    done = sketchnet("ingest", "a.svm", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert "a.svm:2:5" in done.stderr
    done = sketchnet("ingest", "a.svm", "out", "--skip-bad-lines", "--overwrite", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 x 4, 2 non-zeros in 1 shards, 1 malformed lines left out" in done.stdout


def test_strings(tmp_path):
    lines = [f"{'train' if i % 3 else 'test'}\t{['good', 'bad'][i % 2]}\tsite{i}.example/ä" for i in range(500)]
    (tmp_path / "urls.tsv").write_text("\n".join(lines))
    args = "--text --text-column 3 --label-column 2 --where 1=train --ngrams 1-3 --columns 100000 --norm l2 --json"
    done = sketchnet("ingest", "urls.tsv", "out", *args.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    chosen = [line.split("\t") for line in lines if line.startswith("train")]
    expected = NgramHasher("char", (1, 3), 100_000, norm="l2").batch([fields[2] for fields in chosen])
    shards = open_shards(tmp_path / "out")
    assert np.array_equal(shards[:].indices, expected.indices)
    assert np.array_equal(shards[:].values, expected.values)
    classes = json.loads(done.stdout)["classes"]
    assert [classes[int(i)] for i in shards.labels] == [fields[1] for fields in chosen]


def test_values_that_the_training_rows_do_not_have(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\nred,0\nblue,1\n")
    (tmp_path / "b.csv").write_text("x,y\ngreen,0\nblue,1\n")
    good("ingest", "a.csv", "a", "--label", "y", cwd=tmp_path)
    done = sketchnet("ingest", "b.csv", "b", "--like", "a", cwd=tmp_path)
    said = "b.csv, column 'x': 1 values that the training rows do not have, left out\n"
    assert (done.returncode, done.stderr) == (0, said)


def test_a_header_of_strings(tmp_path):
    (tmp_path / "urls.tsv").write_text("split\tlabel\turl\n" + "train\tgood\ta.example\ntrain\tbad\tb.example\n" * 9)
    args = "ingest urls.tsv out --text --text-column 3 --label-column 2 --columns 1000 --json".split()
    done = sketchnet(*args, "--header", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (json.loads(done.stdout)["rows"], json.loads(done.stdout)["classes"]) == (18, ["good", "bad"])
    assert "its header is True, this one's is False" in sketchnet(*args, cwd=tmp_path).stderr
    assert json.loads(sketchnet(*args, "--header", cwd=tmp_path).stdout)["rows"] == 18


def test_what_a_file_means_does_not_depend_on_the_memory(tmp_path):
    """With the least memory a chunk is about 330 kB."""
    (tmp_path / "a.svm").write_text("1 3:1 7:2\n" * 50_000 + "2 0:1\n1,3 2:1\n")
    (tmp_path / "a.tsv").write_text("1\tx\n2\ty\n" * 5_000 + "spam\tz\n")
    fields = ("--text", "--text-column", "2", "--label-column", "1", "--columns", "1000")
    for name, options in (("a.svm", ()), ("a.tsv", fields)):
        for memory in ("11MB", "4GB"):
            good("ingest", name, memory, "--memory", memory, "--overwrite", *options, cwd=tmp_path)
        little, much = (open_shards(tmp_path / memory) for memory in ("11MB", "4GB"))
        same(little[:], much[:])
        told = [{**data.descriptions[0], "job": None, "shards": None} for data in (little, much)]
        assert told[0] == told[1]


def test_labels_that_some_lines_lack(tmp_path):
    (tmp_path / "a.svm").write_text("1 3:1\n 5:1\n1 4:2\n")
    done = sketchnet("ingest", "a.svm", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert "a.svm:2:2: the line has no label, but others have one; --labels multi allows" in done.stderr
    done = sketchnet("ingest", "a.svm", "multi", "--labels", "multi", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert open_shards(tmp_path / "multi")[:].label_indptr.tolist() == [0, 1, 1, 2]


def test_predict_leaves_out_headers_and_marks(world):
    rows, urls = (world / "rows.svm").read_bytes(), (world / "urls.tsv").read_bytes()
    mark, fields = b"\xef\xbb\xbf", ("--text-column", "2")
    answers = good("predict", "rows", "rows.svm", cwd=world)
    assert good("predict", "rows", "-", cwd=world, stdin=mark + rows) == answers
    bad("predict", "rows", "-", message="standard input:1:5:", cwd=world, stdin=mark + b"1 1:x\n")
    answers = good("predict", "urls", "urls.tsv", *fields, cwd=world)
    given = {"cwd": world, "stdin": mark + b"label\turl\n" + urls * 20}  # more than one block
    assert good("predict", "urls", "-", "--header", *fields, **given) == answers * 20
    lines = b"login.example/\nnews.example/home\n"
    plain = good("predict", "urls", "-", "--proba", cwd=world, stdin=lines)
    assert good("predict", "urls", "-", "--proba", cwd=world, stdin=mark + lines) == plain


def test_tables(tmp_path):
    (tmp_path / "t.csv").write_text("colour,size,y\nred,2,1\nblue,,0\nred,3.5,1\n")
    for columns in ([], ["--columns", "1000"]):
        done = sketchnet("ingest", "t.csv", "out", "--label", "y", "--overwrite", *columns, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        shards = open_shards(tmp_path / "out")
        assert shards.shape == (3, int(columns[1]) if columns else 3)
        assert shards[:].values.tolist() == [1, 2, 1, 1, 3.5]
        assert shards.labels.tolist() == [1, 0, 1]


def test_a_test_set_like_the_training_set(tmp_path):
    (tmp_path / "train.csv").write_text("colour,y\nred,b\nblue,a\ngreen,b\n")
    (tmp_path / "test.csv").write_text("colour,y\nblue,b\ngreen,a\n")
    for args in (["train.csv", "train", "--label", "y"], ["test.csv", "test", "--like", "train"]):
        assert sketchnet("ingest", *args, cwd=tmp_path).returncode == 0
    both = open_shards(tmp_path / "train", tmp_path / "test")
    assert both.labels.tolist() == [1, 0, 1, 1, 0]
    assert both[:].indices.tolist() == [2, 0, 1, 0, 1]
    sketchnet("ingest", "test.csv", "alone", "--label", "y", cwd=tmp_path)
    with pytest.raises(InputError, match="differ; read it as the other was"):
        open_shards(tmp_path / "train", tmp_path / "alone")


def test_npz(tmp_path):
    X = sparse.random_array((200, 10**6), density=1e-4, format="csr", rng=np.random.default_rng(0))
    sparse.save_npz(tmp_path / "x.npz", X)
    done = sketchnet("ingest", "x.npz", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    same(open_shards(tmp_path / "out")[:], CsrBatch(X.indptr, X.indices, X.data, 10**6))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["a.svm"], "at least one INPUT and an OUTPUT"),
        (["missing.svm", "out"], "there is no file missing.svm"),
        (["a.dat", "out"], "the names do not tell the format of a.dat"),
        (["a.svm", "out", "--format", "xml"], "--format xml is not possible"),
        (["a.svm", "out", "--base", "2"], "--base 2 is not possible"),
        (["a.svm", "out", "--memory", "1MB"], "--memory 1MB is too little"),
        (["a.svm", "out", "--norm", "l2"], "--norm is for text, but a.svm is read as svmlight"),
        (["a.svm", "out", "--header"], "--header is for text and table, but a.svm is read as svmlight"),
        (["a.svm", "out", "--columns", "0"], "--columns 0 is not possible"),
        (["a.svm", "."], "has files that no ingest wrote"),
        (["a.svm", "out", "--like", "nothing"], "there is no nothing/dataset.json"),
        (["a.svm", "out", "--like", "table"], "a.svm is read as ids and cannot be like table, which was read as table"),
        (["a.svm", "b.csv", "out"], "a.svm and the others have several formats: svmlight, table; give those of one"),
        (["c.csv", "table", "--label", "b"], "its files is b.csv, this one's is c.csv; choose another name"),
        (["a.svm", "out", "--text", "--ngrams", "1-"], "--ngrams 1- is not possible"),
        (["a.svm", "out", "--text", "--where", "x"], "--where x is not possible"),
        (["a.svm", "out", "--text", "--text-column", "9"], "there are 1 fields, but field 9 is asked for"),
        (["a.svm", "out", "--columns", "3"], "a.svm:1:3: id '5' is too large; allowed are 1 to 3"),
        (["cut.svm.gz", "out"], "is damaged or cut off"),
    ],
)
def test_errors(args, message, tmp_path):
    (tmp_path / "a.svm").write_text("1 5:1\n")
    (tmp_path / "a.dat").write_text("1 5:1\n")
    for name in ("b.csv", "c.csv"):
        (tmp_path / name).write_text("a,b\n1,2\n")
    assert sketchnet("ingest", "b.csv", "table", "--label", "b", cwd=tmp_path).returncode == 0
    (tmp_path / "cut.svm.gz").write_bytes(gzip.compress(b"1 5:1\n" * 1000)[:-10])
    done = sketchnet("ingest", *args, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_changed_is_not_taken_for_the_one_that_was_read(tmp_path):
    for text in ("1 5:1\n", "1 5:1 6:1\n"):
        (tmp_path / "a.svm").write_text(text)
        done = sketchnet("ingest", "a.svm", "out", cwd=tmp_path)
    assert "out was read from a.svm as it was earlier; choose another name" in done.stderr
    with pytest.raises(InputError, match="a.svm is a file: `sketchnet ingest` makes a folder of it"):
        open_shards(tmp_path / "a.svm")


def test_synth(tmp_path):
    done = sketchnet(*"synth out -n 1000 -d 5000 --density 0.01 --seed 7 --json".split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["train"]["rows"] == 800
    data = Synthetic(1000, 5000, 0.01, seed=7)
    same(open_shards(tmp_path / "out" / "train")[:], data.rows(slice(0, 800)))
    same(open_shards(tmp_path / "out" / "test")[:], data.rows(slice(800, 1000)))


def test_synth_of_impossible_sizes(tmp_path):
    bad("synth", "out", "-d", "9" * 20, message=f"d={'9' * 20} is not possible; it must be an integer", cwd=tmp_path)
    bad("synth", "out", "-n", "0", message="n=0 is not possible", cwd=tmp_path)
    assert not list(tmp_path.iterdir())


def test_data_list(tmp_path):
    done = sketchnet("data", "list", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    names = {info["name"] for info in json.loads(done.stdout)}
    assert {"mnist", "norb", "cifar10", "cifar100", "svhn", "tng", "rcv1", "url", "webspam"} <= names
    assert "webspam" in sketchnet("data", "list", cwd=tmp_path).stdout


def test_files_that_are_not_there(tmp_path):
    for verb in (("ingest", "clicsk", "out"), ("train", "clicsk")):
        bad(*verb, message="there is no file clicsk", cwd=tmp_path)


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zst"])
def test_a_bomb_stays_within_the_budget(kind, tmp_path):
    """A few kilobytes that unpack to a line of 256 MB."""
    pack = packer(kind)
    (tmp_path / "bomb").write_bytes(pack(b"0" * (16 << 20)) * 16)
    for format, rows in (("svmlight", b"1 1:1\n"), ("text", b"a\n"), ("table", b"a\n1\n")):
        (tmp_path / "small").write_bytes(pack(rows))
        how = ("--format", format, "--memory", "40MB")
        good("ingest", "small", f"small-{format}", *how, cwd=tmp_path)  # what the program itself takes
        with PeakMemory() as used:
            done = bad("ingest", "bomb", f"out-{format}", *how, message="bomb", cwd=tmp_path)
        assert re.search("line of more than|line is longer than", done.stderr)
        assert used.peak < 40e6


def test_files_without_checksums_are_told_once(tmp_path):
    (tmp_path / "x.svm.zst").write_bytes(pytest.importorskip("zstandard").compress(b"1 1:1\n") * 3)
    done = sketchnet("ingest", "x.svm.zst", "out", cwd=tmp_path)
    said = "sketchnet: x.svm.zst was packed without checksums: damage may go unseen\n"
    assert (done.returncode, done.stderr) == (0, said)


def test_synth_looks_at_both_places_before_it_makes_the_first(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "test").write_text("mine")
    command = ("synth", "out", "-n", "20", "-d", "20", "--density", "0.1")
    bad(*command, message="out/test is no folder; choose another name for the data set", cwd=tmp_path)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["test"]
