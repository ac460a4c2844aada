"""Large svmlight files: threads, chunks, several files and places to go on from do not change the rows."""

import gzip

import pytest

from sketchnet.data import SvmlightReader, read_svmlight
from sketchnet.errors import InputError
from tests.data.plain_svmlight import assert_same, joined, parse_plainly
from tests.data.svmlight_texts import big_text


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


@pytest.mark.parametrize("chunk_bytes", [1, 7, 12, 1000])
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_a_missing_label_is_found_wherever_chunks_end(file, chunk_bytes, on_error):
    for text, line in ((b"# x\n 1:1\n 2:1\n1 3:1\n2 3:1\n", 2), (b"1 3:1\n2 3:1\n 1:1\n 2:1\n", 3)):
        with pytest.raises(InputError, match=rf"x.svm:{line}:2: the line has no label, but others have one"):
            list(SvmlightReader(file(text), chunk_bytes=chunk_bytes, on_error=on_error))
        chunks = list(SvmlightReader(file(text), chunk_bytes=chunk_bytes, labels="multi"))
        assert_same(joined(chunks), parse_plainly(text, labels="multi")[0])
    text = b" 1:1\n 2:1\n1,2 3:1\n2 3:1\n"
    assert_same(joined(list(SvmlightReader(file(text), chunk_bytes=chunk_bytes))), parse_plainly(text)[0])


def test_rows_without_labels_are_remembered_where_reading_goes_on(file):
    reader = SvmlightReader(file(b" 1:1\n", "a.svm"))
    assert len(list(reader)) == 1
    assert reader.so_far["unlabelled"].endswith("a.svm:1:2")
    assert len(list(SvmlightReader(file(b"1,2 1:1\n1 1:1\n"), so_far=reader.so_far))) == 1
    with pytest.raises(InputError, match=r"a.svm:1:2: the line has no label, but others have one"):
        list(SvmlightReader(file(b"1 1:1\n"), so_far=reader.so_far))


def test_starts_beyond_the_end(file):
    for content, name in ((b"1 1:1\n", "x"), (gzip.compress(b"1 1:1\n"), "x.gz")):
        assert list(SvmlightReader(file(content, name), start=(6, 2))) == []
        with pytest.raises(InputError, match="has 6 bytes|ends 1 bytes before"):
            list(SvmlightReader(file(content, name), start=(7, 2)))


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
