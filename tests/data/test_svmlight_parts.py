"""Byte ranges of svmlight files: wherever a file is cut, its parts together have every row once."""

import gzip
import os

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from sketchnet.data import SvmlightReader, read_svmlight
from sketchnet.errors import InputError
from tests.data.plain_svmlight import assert_same, joined, parse_plainly

LINES = [b"1 1:1 4:2", b"", b"-1 2:0.5 # 3:4", b"# 1 1:1", b"2", b"3 4:1e-3 1:7", b"4 2:1"]
TEXTS = [
    b"\n".join(LINES) + b"\n",
    b"\r\n".join(LINES),
    b"\xef\xbb\xbf" + b"\n".join(LINES),
    b"\n\n" + b"\n".join(LINES) + b"\n# end",
]
KNOWN = {"n_columns": 4, "base": 1}


def parts(path, size):
    """Every cut into two, and into pieces of every size."""
    for cut in range(size + 2):
        yield (0, cut), (cut, None)
    for step in range(1, 30):
        yield tuple((start, step) for start in range(0, size, step))


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("chunk_bytes", [1, 25, 1000])
def test_parts_have_every_row_once(file, text, chunk_bytes):
    path, expected = file(text), parse_plainly(text)[0]
    for spans in parts(path, len(text)):
        batches, chunks = [], []
        for offset, length in spans:
            options = {**KNOWN, "offset": offset, "length": length}
            reader = SvmlightReader(path, **options, chunk_bytes=chunk_bytes)
            chunks += list(reader)
            batches += [read_svmlight(path, **options)] if chunk_bytes == 1000 else []
            assert reader.offset >= min(offset, len(text))
        assert_same(joined(chunks), expected)
        if batches:
            assert_same(joined(batches), expected)


def test_a_part_is_that_of_scikit_learn(file):
    """But for lines that begin at the cut: there they belong to the part before it."""
    text = b"".join(b"%d qid:%d %d:0.5 9:%d\n" % (row, row // 2, row % 3 + 1, row) for row in range(12))
    path = file(text)
    for cut in range(1, len(text)):
        for (offset, length), ours in (((0, cut), (0, cut + 1)), ((cut, -1), (cut + 1, None))):
            X, y, groups = load_svmlight_file(
                str(path), n_features=9, zero_based=False, query_id=True, offset=offset, length=length
            )
            part = read_svmlight(path, n_columns=9, base=1, dtype=np.float64, offset=ours[0], length=ours[1])
            assert (part.scipy() != X).nnz == 0
            assert part.labels.tolist() == y.tolist()
            assert ([] if part.groups is None else part.groups.tolist()) == groups.tolist()


def test_a_part_goes_on_where_its_reader_stopped(file):
    text = TEXTS[0]
    path = file(text)
    expected = read_svmlight(path, **KNOWN, offset=3, length=40)
    reader = SvmlightReader(path, **KNOWN, offset=3, length=40, chunk_bytes=1)
    first = next(iter(reader))
    assert_same(joined([first, *reader]), expected)
    assert reader.line is None
    reader = SvmlightReader(path, **KNOWN, offset=3, length=40, chunk_bytes=1)
    first = next(iter(reader))
    rest = read_svmlight(path, **KNOWN, offset=reader.offset, length=43 - reader.offset)
    assert_same(joined([first, rest]), expected)


def test_errors_of_a_part_tell_the_byte(file):
    path = file(b"1 1:1\n2 1:x\n3 9:1\n")
    for use in (read_svmlight, lambda *args, **options: list(SvmlightReader(*args, **options, chunk_bytes=1))):
        with pytest.raises(InputError, match=r"x.svm: byte 10: value 'x'"):
            use(path, **KNOWN, offset=2)
        with pytest.raises(InputError, match=r"x.svm: byte 14: id '9' is too large; allowed are 1 to 4"):
            use(path, **KNOWN, offset=7)
        with pytest.raises(InputError, match=r"x.svm:2:5: value 'x'"):  # the first lines can be counted
            use(path, **KNOWN, length=7)
        use(path, **KNOWN, length=6)
        with pytest.raises(InputError, match=r"byte 8: the line has no label or several; allowed is one"):
            use(file(b"1 1:1\n\n 1:1\n", "y.svm"), **KNOWN, offset=1)


def test_parts_that_cannot_be_read(file, tmp_path):
    path = file(b"1 1:1\n")
    for use in (read_svmlight, lambda *args, **options: list(SvmlightReader(*args, **options))):
        for missing in KNOWN:
            options = {name: value for name, value in KNOWN.items() if name != missing}
            with pytest.raises(InputError, match=f"{missing} must be given with offset or length"):
                use(path, **options, offset=1)
        for name, value in (("offset", -1), ("length", -1), ("offset", 1.5), ("length", "1")):
            with pytest.raises(InputError, match=f"{name}={value!r} is not possible"):
                use(path, **KNOWN, **{name: value})
        with pytest.raises(InputError, match=r"x.svm.gz is packed, or a pipe; offset and length are for plain files"):
            use(file(gzip.compress(b"1 1:1\n"), "x.svm.gz"), **KNOWN, length=3)
    with pytest.raises(InputError, match="offset and length are for one file, but 2 are given"):
        read_svmlight([path, path], **KNOWN, offset=1)
    with pytest.raises(InputError, match="start is given, and offset or length"):
        SvmlightReader(path, **KNOWN, start=(6, 2), offset=1)
    assert read_svmlight(path, **KNOWN, offset=100).n_rows == 0  # more workers than there are bytes
    assert os.listdir(tmp_path)
