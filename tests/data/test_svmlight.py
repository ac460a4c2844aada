import bz2
import gzip
import lzma
import os
import re
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from sketchnet.data import SvmlightReader, read_svmlight, write_svmlight
from sketchnet.data.csr import CsrBatch
from sketchnet.errors import InputError, StorageError
from tests.data.plain_svmlight import NUMBER, Malformed, assert_same, joined, parse_plainly


@pytest.fixture
def file(tmp_path):
    def write(content: bytes, name="x.svm"):
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    return write


EXAMPLE = (
    b"# a comment: 1:2, with \xff bytes\r\n"
    b"+1 1:0.5 3:-2\t7:1e-3   # more: 1,2\n"
    b"\n \t \r\n"
    b"-1.5 9:.5 2:5. 2:+7#x\r\n"
    b"3\n"
    b"\t4e2 12345678:123456789.25 123456789012:0.1234567890123456789\n"
    b"5 1:1"
)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_example(file, dtype):
    batch = read_svmlight(file(EXAMPLE), dtype=dtype)
    assert batch.indptr.tolist() == [0, 3, 6, 6, 8, 9]
    assert batch.indices.tolist() == [0, 2, 6, 8, 1, 1, 12345677, 123456789011, 0]
    expected = [0.5, -2, 1e-3, 0.5, 5, 7, 123456789.25, 0.1234567890123456789, 1]
    assert batch.values.tolist() == np.array(expected, dtype).tolist()
    assert batch.labels.tolist() == [1, -1.5, 3, 400, 5]
    assert batch.n_columns == 123456789012
    assert batch.label_indptr is None
    assert batch.groups is None
    assert_same(batch, parse_plainly(EXAMPLE, dtype)[0])


def test_labels_and_queries(file):
    batch = read_svmlight(file(b"1,3.5,-2 qid:7 1:1\nqid:-7 2:1\n2 qid:9223372036854775807\n"))
    assert batch.labels.tolist() == [1, 3.5, -2, 2]
    assert batch.label_indptr.tolist() == [0, 3, 3, 4]
    assert batch.groups.tolist() == [7, -7, 2**63 - 1]
    assert read_svmlight(file(b"1 1:1\n2 1:1"), labels="multi").label_indptr.tolist() == [0, 1, 2]


def test_base(file):
    one, zero = b"1 1:1 5:1\n", b"1 0:1 5:1\n"
    a, b = file(one, "a"), file(zero, "b")
    assert read_svmlight(a).indices.tolist() == [0, 4]
    assert read_svmlight(a, base=0).indices.tolist() == [1, 5]
    assert read_svmlight(b).indices.tolist() == [0, 5]
    assert read_svmlight([a, b]).indices.tolist() == [1, 5, 0, 5]  # one zero in any file says that all begin at 0
    assert read_svmlight(b, n_columns=6).n_columns == 6
    for chunk_bytes in (1, 100):
        chunks = list(SvmlightReader(b, chunk_bytes=chunk_bytes, n_columns=6))
        assert chunks[0].indices.tolist() == [0, 5]
    with pytest.raises(InputError, match=r"b:1:7: id '5' is beyond the 5 columns, of which the first is 0"):
        read_svmlight(b, n_columns=5)
    with pytest.raises(InputError, match=r"b:1:7: id '5' is beyond the 5 columns"):
        list(SvmlightReader(b, n_columns=5))
    with pytest.raises(InputError, match=r"b:1:3: id 0 in a file whose ids begin at 1; .* give base=0"):
        read_svmlight(b, base=1)


ERRORS = [
    (b"1 1:1\nx 1:1", "2:1: label 'x' is not a finite decimal number"),
    (b"1 1:1\n\n1 2:3 4:5,6 7:8", "3:9: value '5,6' is not a finite decimal number"),
    (b"1 1:nan", "1:5: value 'nan'"),
    (b"inf 1:1", "1:1: label 'inf'"),
    (b"1 1:1e400", "1:5: number '1e400' is too large"),
    (b"1 1:1_0", "1:5: value '1_0'"),
    (b"1 1:0x10", "1:5: value '0x10'"),
    (b"1 1:", "1:5: value ''"),
    (b"1 :1", "1:3: id '' is not a whole number"),
    (b"1 7", "1:3: '7' has no colon; allowed is id:value"),
    (b"1 -7:1", "1:3: id '-7' is not a whole number"),
    (b"1 1.5:1", "1:3: id '1.5' is not"),
    (b"1 9223372036854775808:1", "1:3: id '9223372036854775808' is too large"),
    (b"1 1:1:1", "1:5: value '1:1'"),
    (b"1, 1:1", "1:3: label ''"),
    (b"1 1:1\r 2:2\n", "1:6: carriage return inside a line"),
    (b"1 1:2\xc2\xb2 3:3", "1:6: byte 0xc2 is not allowed outside comments"),
    (b"1 1:1\x002:2", "1:6: byte 0x00"),
    (b"1\x0b1:1", "1:2: byte 0x0b"),
    (b"1 qid:x 1:1", "1:3: 'qid:x' is no query id"),
    (b"1 1:1 qid:3", "1:7: the query id must stand once, right after the label"),
    (b"1 qid:1 1:1\n1 1:1", "2:1: the line has no query id"),
    (b"1 1:1\n1 qid:1 1:1", "2:1: the line has a query id"),
]


@pytest.mark.parametrize(("content", "message"), ERRORS)
def test_errors_tell_the_place(file, content, message):
    path = file(content)
    with pytest.raises(InputError) as caught:
        read_svmlight(path)
    assert str(caught.value).startswith(f"{path}:{message}")
    with pytest.raises(Malformed):
        parse_plainly(content)
    batch = read_svmlight(path, on_error="skip")
    expected, skipped = parse_plainly(content, skip=True)
    assert_same(batch, expected)
    labels = "single" if batch.label_indptr is None else "multi"
    reader = SvmlightReader(path, on_error="skip", chunk_bytes=1, labels=labels)
    assert_same(joined([*reader, expected.rows(slice(0, 0))]), expected)
    assert reader.skipped == skipped == 1


def test_float32_overflow(file):
    # Halfway between the largest float32 and what would follow, in a few digits and in all: it rounds to infinity.
    for text in (b"3.4028235677973366e38", b"340282356779733661637539395458142568448", b"1e39"):
        path = file(b"1 1:" + text)
        assert np.isfinite(read_svmlight(path, dtype=np.float64).values).all()
        with pytest.raises(InputError, match="x.svm:1:5: number"):
            read_svmlight(path)
    assert read_svmlight(file(b"1 1:3.4028235677973362e38")).values[0] == np.finfo(np.float32).max


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"base": 2}, "base is 2; allowed are 'auto', 0, 1"),
        ({"labels": "x"}, "labels is 'x'; allowed are 'auto', 'single', 'multi'"),
        ({"on_error": None}, "on_error is None; allowed are 'raise', 'skip'"),
        ({"dtype": np.int32}, "dtype is int32; allowed are float32 and float64"),
        ({"n_columns": -1}, "n_columns is -1; allowed are 0 to 2"),
    ],
)
def test_bad_options(file, options, message):
    for use in (read_svmlight, SvmlightReader):
        with pytest.raises(InputError, match=re.escape(message)):
            use(file(EXAMPLE), **options)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        read_svmlight(tmp_path / "none")
    with pytest.raises(InputError, match="is a folder"):
        read_svmlight(tmp_path)
    with pytest.raises(InputError, match="no file was given"):
        read_svmlight([])


def test_starts_beyond_the_end(file):
    for content, name in ((b"1 1:1\n", "x"), (gzip.compress(b"1 1:1\n"), "x.gz")):
        assert list(SvmlightReader(file(content, name), start=(6, 2))) == []
        with pytest.raises(InputError, match="has 6 bytes|ends 1 bytes before"):
            list(SvmlightReader(file(content, name), start=(7, 2)))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes(tmp_path):
    for number, content in enumerate((EXAMPLE, gzip.compress(EXAMPLE))):
        pipe = tmp_path / f"pipe{number}"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_bytes, args=(content,))
        writer.start()
        assert_same(read_svmlight(pipe), parse_plainly(EXAMPLE)[0])
        writer.join()


def test_empty_files(file):
    for content in (b"", b"\n", b"# nothing\n", b"\r\n \r\n"):
        batch = read_svmlight(file(content))
        assert (batch.n_rows, batch.n_columns, len(batch.labels)) == (0, 0, 0)


def numbers(width):
    return st.floats(allow_nan=False, allow_infinity=False, width=width)


@st.composite
def batches(draw):
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    ids = st.one_of(st.integers(0, 20), st.integers(0, 2**63 - 1))
    entry = st.tuples(ids, numbers(np.dtype(dtype).itemsize * 8))
    several, with_groups = draw(st.booleans()), draw(st.booleans())
    row = st.tuples(
        st.lists(entry, min_size=1 if several and not with_groups else 0, max_size=6),
        st.lists(numbers(64), max_size=3) if several else st.lists(numbers(64), min_size=1, max_size=1),
        st.integers(-(2**63) + 1, 2**63 - 1),
    )
    rows = draw(st.lists(row, max_size=8))
    indices = np.array([i for entries, _, _ in rows for i, _ in entries], np.int64)
    return CsrBatch(
        np.cumsum([0] + [len(entries) for entries, _, _ in rows]),
        indices,
        np.array([v for entries, _, _ in rows for _, v in entries], dtype),
        int(indices.max()) + 1 if len(indices) else 0,
        np.array([label for _, labels, _ in rows for label in labels], np.float64),
        np.cumsum([0] + [len(labels) for _, labels, _ in rows]) if several else None,
        np.array([group for _, _, group in rows], np.int64) if with_groups and rows else None,
    )


@settings(max_examples=300, deadline=None)
@given(batches(), st.sampled_from(["", ".gz", ".bz2", ".xz"]))
def test_round_trip(tmp_path_factory, batch, suffix):
    path = tmp_path_factory.getbasetemp() / f"round_trip.svm{suffix}"
    write_svmlight(path, batch, base=0, comment="two\nlines")
    labels = "single" if batch.label_indptr is None else "multi"
    assert_same(read_svmlight(path, base=0, labels=labels, dtype=batch.values.dtype), batch)


SPELLINGS = st.from_regex(NUMBER.pattern.decode(), fullmatch=True)


@settings(max_examples=300, deadline=None)
@given(st.lists(numbers(64).map(repr) | SPELLINGS, min_size=1, max_size=20))
def test_numbers_are_rounded_as_python_does(tmp_path_factory, texts):
    path = tmp_path_factory.getbasetemp() / "numbers.svm"
    texts = [text for text in texts if abs(float(text)) < 1e38]
    path.write_text("1 " + " ".join(f"1:{text}" for text in texts))
    assert read_svmlight(path, dtype=np.float64).values.tobytes() == np.array([float(t) for t in texts]).tobytes()


def test_many_numbers_are_rounded_as_python_does(file):
    rng = np.random.default_rng(0)
    texts = []
    for digits in range(1, 22):
        for _ in range(2000):
            whole = "".join(map(str, rng.integers(0, 10, digits)))
            point = rng.integers(0, digits + 1)
            exponent = rng.choice(["", f"e{rng.integers(-330, 270)}", f"E+{rng.integers(0, 30)}"])
            texts.append(f"{'-' if rng.random() < 0.3 else ''}{whole[:point]}.{whole[point:]}{exponent}")
    # Numbers halfway between two doubles, and just beside: the hardest to round.
    for bits in rng.integers(2**52, 2**53, 3000).tolist():
        for shift in (-5, -1, 0, 3, 10):
            half = 2 * bits + 1
            exact = str(half * 2**shift) if shift >= 0 else str(half * 5**-shift) + f"e{shift}"
            texts += [exact, exact.replace("e", "1e", 1) if "e" in exact else exact + ".0000000001"]
    expected = np.array([float(text) for text in texts])
    path = file(b"1 " + " ".join(f"1:{text}" for text in texts).encode())
    assert read_svmlight(path, dtype=np.float64).values.tobytes() == expected.tobytes()
    small = np.abs(expected) < 1e38
    path = file(b"1 " + " ".join(f"1:{text}" for text, fits in zip(texts, small) if fits).encode())
    assert read_svmlight(path).values.tobytes() == expected[small].astype(np.float32).tobytes()


@pytest.mark.parametrize("form", ["%.6g", "%r", "%.20f", "%.3e", "%d", "%.17g", "%.9g"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_agrees_with_scikit_learn(file, form, dtype):
    rng = np.random.default_rng(1)
    lines = []
    for r in range(300):
        ids = np.unique(rng.integers(0 if r % 2 else 1, 10 ** rng.integers(1, 9), 40))
        values = rng.standard_normal(len(ids)) * 10.0 ** rng.integers(-8, 9)
        features = " ".join(f"{i}:{form % v}" for i, v in zip(ids.tolist(), values.tolist()))
        lines.append(f"{form % rng.standard_normal()} {features}{' # note' if r % 3 == 0 else ''}\n")
    path = file("".join(lines).encode())
    X, y = load_svmlight_file(str(path), dtype=dtype)
    ours = read_svmlight(path, dtype=dtype)
    assert ours.values.tobytes() == X.data.tobytes()
    assert np.array_equal(ours.indices, X.indices)
    assert np.array_equal(ours.indptr, X.indptr)
    assert ours.labels.astype(dtype).tobytes() == y.astype(dtype).tobytes()
    assert ours.n_columns == X.shape[1]


def test_reads_what_scikit_learn_wrote_and_it_reads_ours(tmp_path):
    X = sparse.random_array((40, 500), density=0.1, format="csr", rng=np.random.default_rng(2))
    y = np.arange(40) % 3
    dump_svmlight_file(X, y, str(tmp_path / "theirs"), zero_based=False, query_id=np.arange(40))
    theirs = read_svmlight(tmp_path / "theirs", dtype=np.float64, n_columns=500)
    assert theirs.groups.tolist() == list(range(40))
    again = load_svmlight_file(str(tmp_path / "theirs"), n_features=500)[0]  # it writes 16 digits, which is not exact
    assert theirs.values.tobytes() == again.data.tobytes()
    write_svmlight(tmp_path / "ours", X, y, comment="made by a test")
    back, labels = load_svmlight_file(str(tmp_path / "ours"), n_features=500)
    assert (back != X).nnz == 0
    assert np.array_equal(labels, y)
    assert read_svmlight(tmp_path / "ours", dtype=np.float64).values.tobytes() == X.data.tobytes()


def big_text(n_rows=4000, seed=0):
    """Rows, comments, blanks and hard numbers, enough for several threads."""
    rng = np.random.default_rng(seed)
    lines = []
    for r in range(n_rows):
        ids = rng.integers(1, 10**6, rng.integers(0, 30)).tolist()
        line = f"{r}" + "".join(f" {i}:{v:.6g}" for i, v in zip(ids, rng.standard_normal(len(ids)).tolist()))
        line += [" # 1:2,3", "", "\r", " 5:1e-320", " 7:0.1234567890123456789012345"][r % 5]
        lines.append(line + "\n\n" * (r % 7 == 0) + "\n# comment: 1,2\n" * (r % 11 == 0) + "\n")
    return "".join(lines).encode()


@pytest.mark.parametrize("threads", ["1", "2", "5"])
def test_threads_do_not_matter(file, threads, monkeypatch):
    monkeypatch.setenv("SKETCHNET_THREADS", threads)
    text = big_text()
    assert_same(read_svmlight(file(text)), parse_plainly(text)[0])


def test_several_files(file):
    texts = [big_text(300, seed) for seed in range(3)]
    paths = [file(text, f"{i}.svm") for i, text in enumerate(texts)]
    assert_same(read_svmlight(paths), parse_plainly(b"".join(texts))[0])
    paths[1] = file(b"1 1:1\nbad", "bad.svm")
    with pytest.raises(InputError, match=r"bad.svm:2:1: label 'bad'"):
        read_svmlight(paths)


def test_errors_deep_in_a_file(file):
    lines = big_text().split(b"\n")
    for number in (5, len(lines) // 2, len(lines) - 3):
        bad = [*lines]
        bad[number] = b"7 8:9:10"
        bad[number + 1 :] = [b"also bad"] * 3
        with pytest.raises(InputError, match=rf"x.svm:{number + 1}:5: value '9:10'"):
            read_svmlight(file(b"\n".join(bad)))


def test_many_overflows_are_skipped(file):
    text = b"1 1:1 2:1e-320\n2 1:1e999\n3,1e999 2:2\n" * 20000
    path = file(text)
    assert_same(read_svmlight(path, on_error="skip"), parse_plainly(text, skip=True)[0])
    assert sum(1 for reader in [SvmlightReader(path, on_error="skip")] for _ in reader) == 1
    reader = SvmlightReader(path, on_error="skip", chunk_bytes=1000)
    assert sum(chunk.n_rows for chunk in reader) == reader.n_rows == 20000
    assert reader.skipped == 40000


@pytest.mark.parametrize("chunk_bytes", [1, 7, 100, 1000, 65536, 1 << 24])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_chunks_are_the_whole_and_resume_anywhere(file, chunk_bytes, suffix):
    text = big_text(60 if chunk_bytes < 1000 else 1000)
    path = file(gzip.compress(text) if suffix else text, f"x.svm{suffix}")
    whole = read_svmlight(path)
    reader = SvmlightReader(path, chunk_bytes=chunk_bytes)
    chunks, places = [], [(0, 1)]
    for chunk in reader:
        chunks.append(chunk)
        places.append((reader.offset, reader.line))
    assert reader.base == 1
    assert reader.labels == "single"
    assert_same(joined(chunks), whole)
    assert places[-1] == (len(text), text.count(b"\n") + 1)
    assert all(line == text[:offset].count(b"\n") + 1 for offset, line in places)
    for i in range(0, len(places), max(1, len(places) // 20)):
        again = SvmlightReader(path, chunk_bytes=chunk_bytes, start=places[i], n_columns=whole.n_columns)
        rest = list(again)
        assert len(rest) == len(chunks) - i
        for a, b in zip(rest, chunks[i:]):
            assert a.indices.tobytes() == b.indices.tobytes()
            assert a.values.tobytes() == b.values.tobytes()
            assert a.labels.tobytes() == b.labels.tobytes()


def test_what_the_first_chunk_decides(file):
    path = file(b"1 1:1\n2 0:1\n3 1:1\n")
    for on_error in ("raise", "skip"):
        with pytest.raises(InputError, match=r"x.svm:2:3: id 0 .*give base=0"):
            list(SvmlightReader(path, chunk_bytes=6, on_error=on_error))
        with pytest.raises(InputError, match=r"x.svm:2:3: id 0"):
            list(SvmlightReader(path, chunk_bytes=6, on_error=on_error, start=(6, 2)))
    assert len(list(SvmlightReader(path, chunk_bytes=6, base=0))) == 3
    path = file(b"1 1:1\n1,2 1:1\n")
    with pytest.raises(InputError, match=r"x.svm:2:1: .*labels='multi'"):
        list(SvmlightReader(path, chunk_bytes=6, on_error="skip"))
    assert [c.labels.tolist() for c in SvmlightReader(path, chunk_bytes=6, labels="multi")] == [[1], [1, 2]]
    path = file(b"1 0:1\n2 5:1\n")
    assert [c.indices.tolist() for c in SvmlightReader(path, chunk_bytes=6, start=(6, 2))] == [[5]]


PACK = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zst"])
def test_packed_files(file, kind, tmp_path):
    if kind == "zst":
        zstandard = pytest.importorskip("zstandard")
    pack = zstandard.compress if kind == "zst" else PACK[kind]
    text = big_text(500)
    half = text.index(b"\n", len(text) // 2) + 1
    expected = parse_plainly(text)[0]
    packed = pack(text[:half]) + pack(text[half:])  # two parts one after the other are one file
    assert_same(read_svmlight(file(packed, f"x.{kind}")), expected)
    assert_same(read_svmlight(file(packed, "named otherwise")), expected)
    for cut in (len(packed) - 1, len(packed) - 9, len(packed) // 3, 7):
        with pytest.raises(InputError, match="damaged"):
            read_svmlight(file(packed[:cut], f"cut.{kind}"))
    with pytest.raises(InputError, match=f"does not hold {kind} data"):
        read_svmlight(file(text, f"plain.{kind}"))
    write_svmlight(tmp_path / f"ours.{kind}", expected)
    assert_same(read_svmlight(tmp_path / f"ours.{kind}"), expected)
    assert len(os.listdir(tmp_path)) == 5  # no temporary file stays


def test_zst_without_its_package(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(InputError, match=re.escape("pip install 'sketchnet[zstd]'")):
        read_svmlight(file(b"\x28\xb5\x2f\xfd"))
    with pytest.raises(InputError, match=re.escape("pip install 'sketchnet[zstd]'")):
        write_svmlight(file(b"old", "x.zst"), sparse.csr_array(np.eye(3)))
    assert file(b"").parent.joinpath("x.zst").read_bytes() == b"old"


def test_writing_refuses_what_cannot_be_read_back(file, tmp_path):
    path = file(b"old")
    one = np.array([0, 1]), np.array([5]), np.array([1.0]), 6
    for batch, message in [
        (CsrBatch(*one[:2], np.array([np.nan]), 6), "NaN"),
        (CsrBatch(*one[:2], np.array([2**53 + 1]), 6), "beyond 2"),
        (CsrBatch(*one[:3], 5), "allowed are 0 to 4"),
        (CsrBatch(one[0], np.array([2**63 - 1]), one[2], 2**63), "allowed are 0 to 9223372036854775806"),
        (CsrBatch(*one, labels=np.array([1.0, 2.0])), "there are 1 rows, but 2 have labels"),
        (CsrBatch(np.array([0, 0]), _ids(), np.empty(0), 6, np.empty(0), np.array([0, 0])), "row 0 has neither"),
    ]:
        with pytest.raises(InputError, match=message):
            write_svmlight(path, batch)
        assert path.read_bytes() == b"old"
        assert os.listdir(tmp_path) == ["x.svm"]
    with pytest.raises(StorageError, match="cannot write"):
        write_svmlight(tmp_path / "no folder" / "x", CsrBatch(*one))


def _ids():
    return np.empty(0, np.int64)


def test_written_text(tmp_path):
    X = sparse.csr_array(np.array([[1, 0, 0.1], [0, -0.5, 0], [0, 0, 0]], np.float32))
    write_svmlight(tmp_path / "x", X, [1, -1, 0.25], comment="by hand")
    assert (tmp_path / "x").read_text() == "# by hand\n1 1:1 3:0.1\n-1 2:-0.5\n0.25\n"


def test_long_lines_and_bombs(file):
    entries = 300_000
    batch = read_svmlight(file(b"1" + b" 3:0.25" * entries))
    assert batch.indptr.tolist() == [0, entries]
    assert sum(len(c.indices) for c in SvmlightReader(file(b"1" + b" 3:0.25" * entries), chunk_bytes=10)) == entries
    digits = b"9" * 1_000_000
    for content in (b"1 " + digits + b":1", b"1 1:" + digits, digits, b"1 1:1e" + digits, b"1 qid:" + digits):
        with pytest.raises(InputError, match="x.svm:1:"):
            read_svmlight(file(content))
    path = file(b"1 " + b"0" * 10**6 + b"1:0." + digits + b" 2:1e-" + digits)
    assert read_svmlight(path).values.tolist() == [1, 0]


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("base", [0, 1, "auto"])
@pytest.mark.parametrize("largest", [2**31 - 2, 2**31 - 1, 2**31, 2**63 - 1])
def test_ids_are_as_wide_as_they_must_be(tmp_path, monkeypatch, largest, base, on_error):
    monkeypatch.setattr("sketchnet.data.svmlight._CHUNK", 64)  # so that wide ids come after narrow ones were kept
    first = 1 if base == 1 else 0
    text = b"1 1:2 5:3\n" * 20 + b"1 %d:1 %d:4\n" % (first, largest) + b"0 2:7\n" * 20
    path = tmp_path / "x.svm"
    path.write_bytes(text)
    batch = read_svmlight(path, base=base, on_error=on_error)
    assert_same(batch, parse_plainly(text, base=base)[0])
    assert batch.indices.dtype == (np.int32 if largest - (base != 0) <= 2**31 - 2 else np.int64)
    chunks = list(SvmlightReader(path, base=first, on_error=on_error, chunk_bytes=64))
    assert_same(joined(chunks), batch)


def test_an_id_that_needs_64_bits_is_still_checked_against_the_columns(tmp_path):
    path = tmp_path / "x.svm"
    path.write_bytes(b"1 5:1\n1 9999999999:1\n")
    with pytest.raises(InputError, match=":2:3: id .9999999999. is beyond the 100 columns"):
        read_svmlight(path, n_columns=100)
    reader = SvmlightReader(path, n_columns=100, on_error="skip")
    assert [batch.n_rows for batch in reader] == [1]
    assert reader.skipped == 1
