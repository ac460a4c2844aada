"""svmlight text: what is read, and where mistakes are found."""

import gzip
import os
import re
import threading

import numpy as np
import pytest

from sketchnet.data import SvmlightReader, read_svmlight
from sketchnet.errors import InputError
from tests.data.plain_svmlight import Malformed, assert_same, joined, parse_plainly
from tests.data.svmlight_texts import ERRORS, EXAMPLE


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


def test_ignored_labels_may_be_anything(file):
    lines = [b"?", b"spam", b"spam:ham", b"\xc3\xa4", b"C#", b"1,spam", b"nan", b"1", b"1,3", b"", b"-1"]
    text = b"".join(label + b" 1:%d 3:2\n" % number for number, label in enumerate(lines))
    batch = read_svmlight(file(text), labels="ignore")
    assert batch.labels is None
    assert batch.label_indptr is None
    assert batch.indices.tolist() == [0, 2] * len(lines)
    assert batch.values[::2].tolist() == list(range(len(lines)))
    rows = read_svmlight(file(b"spam\n1#x\n?#x\n\tspam\t1:2 # y\r\n"), labels="ignore")
    assert np.diff(rows.indptr).tolist() == [0, 0, 0, 1]
    assert read_svmlight(file(b"spam qid:4 1:1\nqid:5 1:1\n"), labels="ignore").groups.tolist() == [4, 5]
    reader = SvmlightReader(file(text), labels="ignore", chunk_bytes=1)
    assert_same(joined(list(reader)), batch)
    assert reader.line == len(lines) + 1
    for bad, message in [
        (b"spam 1:x", "1:8: value 'x'"),
        (b"1:1\n1:x", "2:3: value 'x'"),  # an entry
        (b"-1:2 3:4", "1:1: id '-1' is not a whole number"),
        (b"1,3:4", "1:1: id '1' is not a whole number"),
        (b"spam ham 1:1", "1:6: 'ham' has no colon"),
        (b"spam\r 1:1", "1:5: carriage return"),
        (b"spam 1:1 qid:1", "1:10: the query id must stand once"),
    ]:
        with pytest.raises(InputError, match=re.escape(f"x.svm:{message}")):
            read_svmlight(file(bad), labels="ignore")


NO_LABEL = "the line has no label, but others have one; labels='multi' allows"


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize(
    ("text", "place"),
    [(b"1 1:1\n\n 2:1\n3:1\n2 1:1\n", "3:2"), (b"2:1\n1 1:1\n", "1:1"), (b"1 qid:1 1:1\nqid:2 1:1\n", "2:1")],
)
def test_a_label_that_is_missing_among_others_is_no_empty_set(file, text, place, on_error):
    path = file(text)
    for use in (read_svmlight, lambda *args, **options: list(SvmlightReader(*args, **options))):
        with pytest.raises(InputError, match=f"x.svm:{place}: {NO_LABEL}"):
            use(path, on_error=on_error)
    assert np.diff(read_svmlight(path, labels="multi").label_indptr).min() == 0


def test_empty_sets_of_labels_beside_larger_ones_and_files_without_labels(file):
    assert read_svmlight(file(b"1 1:1\n2:1\n1,2 1:1\n")).label_indptr.tolist() == [0, 1, 1, 3]
    assert read_svmlight(file(b"1:1\n2:1\n")).label_indptr.tolist() == [0, 0, 0]
    one, none, several = file(b"1 1:1\n", "one"), file(b"1:1\n", "none"), file(b"1,2 1:1\n", "several")
    assert read_svmlight([one, none, several]).label_indptr.tolist() == [0, 1, 1, 3]
    with pytest.raises(InputError, match=f"none:1:1: {NO_LABEL}"):
        read_svmlight([one, one, none])


def test_a_byte_order_mark_is_left_out(file):
    mark = b"\xef\xbb\xbf"
    for name, pack in (("x.svm", bytes), ("x.svm.gz", gzip.compress)):
        path = file(pack(mark + EXAMPLE), name)
        assert_same(read_svmlight(path), parse_plainly(EXAMPLE)[0])
        assert_same(read_svmlight([path, path]), parse_plainly(EXAMPLE + b"\n" + EXAMPLE)[0])
    text = mark + b"1 1:1 5:2\n2 0:1\n"
    reader = SvmlightReader(file(text), chunk_bytes=1, base=0)
    places, chunks = [], []
    for chunk in reader:
        places.append((reader.offset, reader.line))
        chunks.append(chunk)
    assert_same(joined(chunks), parse_plainly(text[3:])[0])
    assert places == [(13, 2), (len(text), 3)]
    assert [c.indices.tolist() for c in SvmlightReader(file(text), start=(13, 2))] == [[0]]
    assert read_svmlight(file(mark)).n_rows == 0
    with pytest.raises(InputError, match=r"x.svm:1:5: value 'x'"):  # columns as an editor shows them
        read_svmlight(file(mark + b"1 1:x\n"))
    for bad in (mark + mark + b"1 1:1\n", b"1 1:1\n" + mark + b"1 1:1\n", b" " + mark + b"1 1:1\n"):
        with pytest.raises(InputError, match="byte 0xef is not allowed"):
            read_svmlight(file(bad))
    with pytest.raises(InputError, match="byte 0xef is not allowed"):
        read_svmlight(file(mark + mark + b"1 99999999999:1\n"))  # read twice, as its id needs wider integers


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
    with pytest.raises(InputError, match=r"b:1:7: id '5' is too large; allowed are 0 to 4"):
        read_svmlight(b, n_columns=5)
    with pytest.raises(InputError, match=r"b:1:7: id '5' is too large; allowed are 0 to 4"):
        list(SvmlightReader(b, n_columns=5))
    with pytest.raises(InputError, match=r"b:1:3: id 0 in a file whose ids begin at 1; .* give base=0"):
        read_svmlight(b, base=1)


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"base": 2}, "base=2 is not possible; allowed are auto, 0, 1"),
        ({"labels": "x"}, "labels='x' is not possible; allowed are auto, single, multi"),
        ({"on_error": None}, "on_error=None is not possible; allowed are raise, skip"),
        ({"dtype": np.int32}, "dtype is int32; allowed are float32 and float64"),
        ({"n_columns": -1}, "n_columns=-1 is not possible; it must be an integer from 0 to 922"),
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


def test_malformed_lines_alone_may_be_left_out(file):
    path = file(b"1 5:x\n1 5:1\n1 7:1\n")
    reader = SvmlightReader(path, n_columns=5, on_error="skip")
    assert ([batch.n_rows for batch in reader], reader.skipped) == ([1], 2)
    for use in (read_svmlight, lambda *args, **options: list(SvmlightReader(*args, **options))):
        with pytest.raises(InputError, match=r"x.svm:3:3: id '7' is too large; allowed are 1 to 5"):
            use(path, n_columns=5, on_error="skip_malformed")
        use(path, n_columns=7, on_error="skip_malformed")


def test_an_id_that_needs_64_bits_is_still_checked_against_the_columns(tmp_path):
    path = tmp_path / "x.svm"
    path.write_bytes(b"1 5:1\n1 9999999999:1\n")
    with pytest.raises(InputError, match=":2:3: id .9999999999. is too large; allowed are 1 to 100"):
        read_svmlight(path, n_columns=100)
    reader = SvmlightReader(path, n_columns=100, on_error="skip")
    assert [batch.n_rows for batch in reader] == [1]
    assert reader.skipped == 1
