"""Every kind of source: resumed after any chunk it gives the same files, in bounded memory."""

import gzip
import json
import subprocess

import numpy as np
import pytest
from scipy import sparse

from sketchnet.data import BagOfWords, TableEncoder, ingest, open_shards, read_svmlight, write_svmlight
from sketchnet.data.ngrams import NgramHasher
from sketchnet.data.npz import open_npz
from sketchnet.data.sources import NpzSource, SvmlightSource, TableSource, TextSource
from sketchnet.errors import InputError
from sketchnet.memory import PeakMemory
from sketchnet.storage import replacing, workspace
from tests.data.parquet_writing import write_parquet
from tests.data.test_ingest import Interrupted, contents
from tests.data.test_shards import batch
from tests.forked import answer_of


def svmlight(folder):
    for i, name in enumerate(("a.svm", "b.svm.gz")):
        write_svmlight(folder / name, batch(400, i, labels="multi"))
    return lambda: SvmlightSource([folder / "a.svm", folder / "b.svm.gz"], chunk_bytes=2000, labels="multi")


def text(folder):
    for i, name in enumerate(("a.tsv", "b.tsv")):
        rows = [f"{'zyx'[(j + i) % 3]}\tstring {j} ä" if j > 30 or i else f"-\t{j}" for j in range(200)]
        (folder / name).write_text("\n".join(["\ufefflabel\ttext", *rows]))
    fields = {"text_column": 2, "label_column": 1, "header": True}
    hasher = NgramHasher("char", (1, 2), 1000)
    return lambda: TextSource([folder / "a.tsv", folder / "b.tsv"], hasher, **fields, chunk_bytes=300)


def table(folder, n_columns):
    for i, name in enumerate(("a.csv", "b.csv")):
        rows = [f"{'pqr'[(j * (i + 2)) % 3]},{j if i else 'word'},{'xyz'[(j + i) % 3]}" for j in range(60)]
        (folder / name).write_text("colour,size,y\n" + "\n".join(rows))
    files = [folder / "a.csv", folder / "b.csv"]

    return lambda: TableSource(files, TableEncoder("y", n_columns=n_columns))


def parquet(folder):
    pytest.importorskip("pyarrow")
    for i, name in enumerate(("a.parquet", "b.parquet")):
        write_parquet(folder / name, [batch(50, i), batch(30, i + 5)])
    return lambda: TableSource([folder / "a.parquet", folder / "b.parquet"], TableEncoder())


def npz(folder):
    sparse.save_npz(folder / "x.npz", batch(500).scipy())
    return lambda: NpzSource([folder / "x.npz"], folder)


def unlabelled(folder):
    (folder / "a.svm").write_text("\ufeff" + " 1:1 2:1\n" * 300)
    (folder / "b.svm").write_text(" 3:1\n" * 300 + "1,2 5:1\n" * 300 + "1 4:1\n" * 300)
    return lambda: SvmlightSource([folder / "a.svm", folder / "b.svm"], chunk_bytes=200)


def contradicted(folder):
    """Late rows say that ids begin at 0 and that rows have several labels or none."""
    (folder / "a.svm").write_text("1 1:1 2:1\n" * 250 + "x\n" + "2 4:1\n" * 30 + " 3:1\n" + "2 3:1\n" * 40)
    (folder / "b.svm").write_text("1 3:1\n" * 100 + "1,2 5:1\n" + "1 4:1\n" * 100 + "1 0:1 6:1\n" * 9)
    return lambda: SvmlightSource([folder / "a.svm", folder / "b.svm"], chunk_bytes=200, on_error="skip")


def late_names(folder):
    (folder / "a.tsv").write_text("1\tx\n2\ty\n" * 150)
    (folder / "b.tsv").write_text("2\tx\n" * 50 + "spam\tz\n" + "1\ty\n" * 50)
    fields = {"text_column": 2, "label_column": 1, "chunk_bytes": 100}
    return lambda: TextSource([folder / "a.tsv", folder / "b.tsv"], NgramHasher("char", (1, 2), 1000), **fields)


SOURCES = {
    "svmlight": svmlight,
    "unlabelled": unlabelled,
    "contradicted": contradicted,
    "text": text,
    "late names": late_names,
    "hashed": lambda folder: table(folder, 1000),
    "one-hot": lambda folder: table(folder, None),
    "parquet": parquet,
    "npz": npz,
}


@pytest.mark.parametrize("kind", SOURCES)
def test_resumed_after_any_chunk_gives_the_same_files(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("sketchnet.data.csv_files.CHUNK_ROWS", 7)
    monkeypatch.setattr("sketchnet.data.parquet._CHUNK_ROWS", 9)
    make = SOURCES[kind](tmp_path)
    told = ingest(make(), tmp_path / "whole", shard_entries=100)
    seen = []
    out = tmp_path / "resumed"
    ingest(make(), out, shard_entries=100, progress=lambda fraction, rows: seen.append((fraction, rows)))
    assert all(f is None or 0 <= f <= 1 for f, _ in seen)
    assert seen[-1][1] == told["rows"]
    assert kind not in ("svmlight", "text", "npz") or seen[-1][0] == 1.0
    for stop in {rows for _, rows in seen[:: max(1, len(seen) // 12)]}:

        def progress(fraction, rows, stop=stop):
            if rows == stop:
                raise Interrupted

        out = tmp_path / f"resumed-{stop}"
        with pytest.raises(Interrupted):
            ingest(make(), out, shard_entries=100, progress=progress)
        ingest(make(), out, shard_entries=100)
        assert contents(out) == contents(tmp_path / "whole")
    assert open_shards(tmp_path / "whole").n_rows == told["rows"]


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("1 2:1\n", "1,2 3:1\n", None),
        ("1,3 2:1\n", "1 3:1\n", None),
        ("1 2:1\n", "1 qid:5 3:1\n", "rows from 1 on have one label and a query id, those before have one label"),
        ("# nothing\n", "1 qid:5 3:1\n", None),
        ("1 2:1\n", "1 0:1\n", None),
        ("# nothing\n", "1 0:1\n", None),
        (" 2:1\n", "1 2:1\n", "a.svm:1:2: the line has no label, but others have one; labels='multi' allows"),
        ("1 2:1\n", " 2:1\n", "b.svm:1:2: the line has no label"),
        (" 2:1\n", "1,2 2:1\n", None),
        (" 2:1\n", " 2:1\n", None),
    ],
)
def test_files_that_do_not_fit_each_other(first, second, message, tmp_path):
    (tmp_path / "a.svm").write_text(first)
    (tmp_path / "b.svm").write_text(second)
    source = SvmlightSource([tmp_path / "a.svm", tmp_path / "b.svm"])
    if message is None:
        assert ingest(source, tmp_path / "x")["rows"] == (first + second).count("\n") - first.count("#")
    else:
        with pytest.raises(InputError, match=message):
            ingest(source, tmp_path / "x")


def read_text(paths, chunk_bytes=1 << 19, **options):
    """(strings, labels, names of classes) as a source reads them, in one go and again after each chunk."""
    source = TextSource(paths, NgramHasher("char", (1, 2), 1000), chunk_bytes=chunk_bytes, **options)
    found = list(source.chunks(None))
    rows = [batch.n_rows for batch, _ in found]
    for number, (_, state) in enumerate(found):
        assert [batch.n_rows for batch, _ in source.chunks(state)] == rows[number + 1 :]
    strings, labels = list(source.strings()), [b.labels for b, _ in found if b.labels is not None and b.n_rows]
    hashed = source._hasher.batch(strings).indices
    assert np.array_equal(np.concatenate([batch.indices for batch, _ in found] + [hashed[:0]]), hashed)
    return strings, np.concatenate([*labels, []]).tolist(), source.description(found[-1][1] if found else None)


@pytest.mark.parametrize("chunk_bytes", [1, 1 << 19])
def test_a_byte_order_mark_is_no_part_of_text(chunk_bytes, file):
    fields = {"text_column": 2, "label_column": 1, "chunk_bytes": chunk_bytes}
    text = "\ufeffgood\tä\nbad\tb\n\ufeffgood\tc\n".encode()
    for path in (file(text, "a.tsv"), file(gzip.compress(text), "a.tsv.gz")):
        strings, labels, told = read_text([path], **fields)
        assert (strings, labels, told["classes"]) == (["ä", "b", "c"], [0, 1, 2], ["good", "bad", "\ufeffgood"])
        again = read_text([path, path], **fields)
        assert (again[0], again[2]["classes"]) == (strings * 2, told["classes"])
    assert read_text([file("\ufeff1\ta\n2\tb".encode(), "b.tsv")], **fields)[1] == [1, 2]
    assert read_text([file("\ufeffä\nb".encode(), "c.txt")], chunk_bytes)[0] == ["ä", "b"]
    assert read_text([file("\ufeff".encode(), "d.txt")], chunk_bytes)[0] == []
    assert read_text([file("\ufeff\n".encode(), "e.txt")], chunk_bytes)[0] == [""]


@pytest.mark.parametrize("chunk_bytes", [1, 1 << 19])
def test_a_header_is_left_out_of_each_file(chunk_bytes, file):
    a, b = file(b"\xef\xbb\xbflabel\ttext \xff\ngood\tx\n", "a.tsv"), file(b"label\nbad\ty\ngood\tz", "b.tsv")
    fields = {"text_column": 2, "label_column": 1, "header": True, "chunk_bytes": chunk_bytes}
    strings, labels, told = read_text([a, b], **fields)
    assert (strings, labels, told["classes"]) == (["x", "y", "z"], [0, 1, 0], ["good", "bad"])
    assert read_text([file(b"label\ttext\n", "c.tsv")], **fields)[0] == []
    jobs = [TextSource([a], NgramHasher(), header=header).job() for header in (True, False)]
    assert [job["header"] for job in jobs] == [True, False]


@pytest.mark.parametrize("chunk_bytes", [1, 1 << 19])
def test_an_empty_label_is_no_class(chunk_bytes, file):
    path = file(b"train\tgood\tx\ntest\t\ty\ntrain\t\tz\n", "a.tsv")
    fields = {"text_column": 3, "chunk_bytes": chunk_bytes}
    with pytest.raises(InputError, match=r"a.tsv:2: the label is missing"):
        read_text([path], label_column=2, **fields)
    with pytest.raises(InputError, match=r"a.tsv:3: the label is missing"):
        read_text([path], label_column=2, where=[1, "train"], **fields)
    assert read_text([path], **fields)[0] == ["x", "y", "z"]
    with pytest.raises(InputError, match=r"b.tsv:2: the label is missing"):
        read_text([file(b"1\tx\n\ty\n", "b.tsv")], text_column=2, label_column=1, chunk_bytes=chunk_bytes)
    for missing in (b"nan", b"NA", b"  "):
        path = file(b"1\tx\n" + missing + b"\ty\n0\tz\n", "c.tsv")
        with pytest.raises(InputError, match=r"c.tsv:2: the label is missing"):
            read_text([path], text_column=2, label_column=1, chunk_bytes=chunk_bytes)


def test_lists_of_ids_and_tables_are_not_mixed(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    for name, columns in (("a.parquet", {"indices": [[1], [2]]}), ("b.parquet", {"x": [1.0, 2.0]})):
        pq.write_table(pa.table(columns), tmp_path / name)
    source = TableSource([tmp_path / "a.parquet", tmp_path / "b.parquet"], TableEncoder(n_columns=9))
    with pytest.raises(InputError, match=r"b.parquet and .*a.parquet one holds lists of ids, the other a table"):
        list(source.chunks(None))


def test_lines_without_rows_do_not_make_a_source_forget(tmp_path):
    for name, content in (("a.svm", " 2:1\n"), ("b.svm", "# nothing\n"), ("c.svm", "1 2:1\n")):
        (tmp_path / name).write_text(content)
    files = [tmp_path / name for name in ("a.svm", "b.svm", "c.svm")]
    assert ingest(SvmlightSource(files[:2]), tmp_path / "x")["labels"] == "multi"
    with pytest.raises(InputError, match="a.svm:1:2: the line has no label, but others have one"):
        ingest(SvmlightSource(files), tmp_path / "y")


def test_large_ids_of_mixed_types_are_kept(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    ids = [2**62 + 1, 2**62 + 3]
    for i, dtype in enumerate((pa.int64(), pa.uint64())):
        pq.write_table(pa.table({"indices": pa.array([[ids[i]]], pa.list_(dtype))}), tmp_path / f"{i}.parquet")
    ingest(TableSource([tmp_path / "0.parquet", tmp_path / "1.parquet"], TableEncoder()), tmp_path / "x")
    assert open_shards(tmp_path / "x")[:].indices.tolist() == ids


def test_somebody_elses_folder_is_left_alone(tmp_path):
    make = npz(tmp_path)
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "dataset.json").write_text('{"my": 1}')
    (folder / "thesis.tex").write_text("precious")
    for overwrite in (False, True):
        with pytest.raises(InputError):
            ingest(make(), folder, overwrite=overwrite)
    assert (folder / "thesis.tex").read_text() == "precious"


@pytest.mark.parametrize("left", ["clearing", "no shards", "half a record", "tidying"])
def test_an_overwrite_or_start_that_was_cut_off_is_no_dead_end(left, tmp_path):
    make = npz(tmp_path)
    out = tmp_path / "x"
    ingest(make(), out, shard_entries=500)
    whole = contents(out)
    job = json.loads((out / "dataset.json").read_text())["job"]
    if left == "clearing":
        (out / "ingest.json").write_text(json.dumps({"format": 1, "job": job, "clearing": True}))
    elif left == "no shards":
        subprocess.run(["rm", "-r", *map(str, out.glob("shard-*"))], check=True)
    elif left == "half a record":
        subprocess.run(["rm", "-r", *map(str, out.glob("*"))], check=True)
        with workspace(out / "ingest.json", keep=True) as work:
            (work / "new").write_text('{"form')
    else:
        (out / "ingest.json").write_text(json.dumps({"format": 1, "job": job}))
    ingest(make(), out, shard_entries=500, overwrite=left == "no shards")
    assert contents(out) == whole


def test_options_must_be_plain(tmp_path):
    (tmp_path / "a.svm").write_text("1 2:1\n")
    with pytest.raises(InputError, match="must be plain numbers, texts and lists"):
        ingest(SvmlightSource([tmp_path / "a.svm"], dtype=np.float64), tmp_path / "x")
    assert not (tmp_path / "x").exists()


def memory_used(warm: str, large: str, out: str, *options: str) -> int:
    from sketchnet.cli import app

    app(["ingest", warm, f"{warm}.out", *options], standalone_mode=False)  # loads and compiles
    with PeakMemory() as used:
        app(["ingest", large, out, *options], standalone_mode=False)
    return used.peak


@pytest.mark.parametrize("kind", ["svmlight", "gz", "text", "table", "npz"])
def test_memory_stays_inside_the_budget(kind, tmp_path):
    """30 MB of input in a fresh process with --memory 60MB."""
    name = {"svmlight": "x.svm", "gz": "x.svm.gz", "text": "x.txt", "table": "x.csv", "npz": "x.npz"}[kind]
    for folder, size in (("small", 1), ("large", 100)):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / name
        if kind in ("svmlight", "gz"):
            line = " ".join(f"{7 * i}:{i}.5" for i in range(1, 200)) + "\n"
            content = ("1 " + line).encode() * (250 * size)
            path.write_bytes(gzip.compress(content, 1) if kind == "gz" else content)
        elif kind == "text":
            path.write_text("".join(f"some/{i}/address/of/a/page-{i * 7919 % 10007}\n" for i in range(1000 * size)))
        elif kind == "table":
            path.write_text("a,b,c,d\n" + "".join(f"w{i % 99},{i},v{i % 7},{i / 3}\n" for i in range(3000 * size)))
        else:
            sparse.save_npz(path, batch(8000 * size).scipy(), compressed=False)
    options = {"text": ["--text"], "table": ["--columns", "1000000"]}.get(kind, [])
    paths = [str(tmp_path / "small" / name), str(tmp_path / "large" / name), str(tmp_path / "out")]
    assert answer_of(memory_used, *paths, *options, "--memory", "60MB") < 60e6


def test_label_digits_of_text_are_not_lost(file):
    with pytest.raises(InputError, match="x.tsv:1: label '9007199254740993' has more digits than a number keeps"):
        read_text([file(b"9007199254740993\tfoo\n9007199254740992\tbar\n", "x.tsv")], label_column=1, text_column=2)


def test_half_floats_of_parquet_are_widened(tmp_path):
    """Kernels do not know them."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = {"indices": [[0, 1], [2]], "values": [[np.float16(1), np.float16(2)], [np.float16(3)]], "label": [0, 1]}
    types = {"values": pa.list_(pa.float16())}
    pq.write_table(pa.table({k: pa.array(v, types.get(k)) for k, v in table.items()}), tmp_path / "a.parquet")
    ingest(TableSource([tmp_path / "a.parquet"], TableEncoder()), tmp_path / "out")
    assert open_shards(tmp_path / "out")[:].scipy().toarray().tolist() == [[1, 2, 0], [0, 0, 3]]


@pytest.mark.parametrize(
    ("read", "what"),
    [
        (read_svmlight, "file"),
        (lambda path: SvmlightSource([path]), "file"),
        (lambda path: open_npz(path, path.parent), "file"),
        (BagOfWords.load, "file"),
        (open_shards, "folder"),
    ],
    ids=["read_svmlight", "SvmlightSource", "open_npz", "BagOfWords", "open_shards"],
)
def test_what_is_missing_is_a_missing_file_to_python_too(read, what, tmp_path):
    path = tmp_path / "nothing"
    for kind in (InputError, FileNotFoundError):
        with pytest.raises(kind) as caught, replacing(tmp_path / "output"):  # writing elsewhere is not what failed
            read(path)
        assert str(caught.value) == f"there is no {what} {path}"
        assert caught.value.args == (f"there is no {what} {path}",)


def test_a_folder_is_no_missing_file(tmp_path):
    with pytest.raises(InputError, match="is no regular file"):
        SvmlightSource([tmp_path])


def test_tables_without_rows_are_named(file):
    for name, content in (("a.csv", b"x,y\n"), ("b.csv", b"")):
        path = file(content, name)
        with pytest.raises(InputError, match=f"^{path}.*(no rows|is empty)"):
            list(TableSource([path], TableEncoder("y")).chunks(None))
