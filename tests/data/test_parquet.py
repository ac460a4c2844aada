"""Parquet files of sparse rows, ours and those of others; damaged files of either kind."""

import os
import sys
from contextlib import suppress

import numpy as np
import pytest

from sketchnet.data import parquet, parquet_claims
from sketchnet.data.compression import Limits
from sketchnet.data.tables import TableEncoder
from sketchnet.errors import InputError, MissingExtraError
from sketchnet.memory import PeakMemory
from tests.data.parquet_files import TABLE, batch_of, equal, pa, pq, put, read
from tests.data.parquet_writing import write_parquet
from tests.data.plain_tables import joined, rows_of, same


@pytest.mark.parametrize("chunk_rows", [1, 3, 100, None])
def test_streams_and_row_groups(chunk_rows, tmp_path):
    lists = [list(range(i % 4)) for i in range(50)]
    whole = batch_of(lists, labels=np.arange(50))
    parts = [whole.rows(slice(a, min(a + 3, 50))) for a in range(0, 50, 3)]  # offsets do not begin at 0
    write_parquet(tmp_path / "x.parquet", parts, group_rows=7)
    assert 4 < pq.ParquetFile(tmp_path / "x.parquet").num_row_groups < 10
    for start_row in (0, 1, 8, 9, 10, 49):
        got = joined(read(tmp_path / "x.parquet", chunk_rows=chunk_rows, start_row=start_row))
        assert same(got, joined([whole.rows(slice(start_row, 50))]))
    assert read(tmp_path / "x.parquet", start_row=50) == []
    with pytest.raises(InputError, match="has 50 rows; start_row=51"):
        read(tmp_path / "x.parquet", start_row=51)


LISTS = [[3, 1], [], None, [7], [2, 2, 5]]


@pytest.mark.parametrize("kind", ["list_", "large_list"])
@pytest.mark.parametrize("ids", ["int8", "int32", "int64", "uint64"])
@pytest.mark.parametrize("statistics", [True, False])
def test_files_of_others(kind, ids, statistics, tmp_path):
    column = pa.array(LISTS, getattr(pa, kind)(getattr(pa, ids)()))
    path = put(tmp_path, {"other": ["x"] * 5, "indices": column}, row_group_size=2, write_statistics=statistics)
    got = joined(read(path))
    assert got.n_columns == 8
    assert got.indices.dtype == ids
    assert got.values.dtype == np.float32
    assert rows_of(got) == [[(i, 1.0) for i in row or []] for row in LISTS]
    assert got.labels is None
    assert read(path, n_columns=50)[0].n_columns == 50


def test_slices_and_hidden_null_lists():
    offsets, hidden = pa.array([0, 2, 4, 5], pa.int32()), pa.array([False, True, False])
    column = pa.ListArray.from_arrays(offsets, pa.array([1, 2, 3, 4, 5]), mask=hidden)
    batch = parquet._sparse_batch("x", 0, {"indices": column}, 9)
    assert rows_of(batch) == [[(1, 1), (2, 1)], [], [(5, 1)]]
    assert rows_of(parquet._sparse_batch("x", 0, {"indices": column.slice(1)}, 9)) == [[], [(5, 1)]]
    fixed = pa.array([[1, 2], [3, 4]], pa.list_(pa.int64(), 2)).slice(1)
    assert rows_of(parquet._sparse_batch("x", 0, {"indices": fixed}, 9)) == [[(3, 1), (4, 1)]]


def test_names_of_columns(tmp_path):
    path = tmp_path / "x.parquet"
    names = {"indices": "i", "values": "v", "label": "y", "group": "q"}
    batch = batch_of([[1], [2, 3]], labels=np.array([0.5, 1]), groups=np.array([4, 4]))
    write_parquet(path, batch, **names)
    assert pq.read_schema(path).names == ["i", "v", "y", "q"]
    assert equal(read(path, **names)[0], batch)
    with pytest.raises(InputError, match="has no column 'z' for the label; its columns: i, v, y, q"):
        read(path, **names | {"label": "z"})


I64 = pa.list_(pa.int64())


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"indices": pa.array([[1], [2], [-3]], I64)}, "row 2: column id -3 is negative"),
        ({"indices": pa.array([[-5], [], []], I64)}, "row 0: column id -5 is negative"),
        ({"indices": pa.array([[1], [2, None], []], I64)}, "row 1: a column id is null"),
        ({"indices": pa.array([[1], [], [2**63]], pa.list_(pa.uint64()))}, f"row 2: column id {2**63} is too large"),
        ({"indices": [[1], [2], [3]], "values": [[1.0], [], [1.0]]}, "row 1: there are 1 column ids but 0 values"),
        ({"indices": [[1], [2], [3]], "values": [[1.0], [1.0], None]}, "row 2: there are 1 column ids but 0 values"),
        ({"indices": [[1], [2], [3]], "values": [[1.0], [1.0], [None]]}, "row 2: a value is null"),
        (
            {"indices": [[1], [2], [3]], "values": [[1.0], [1.0], [np.inf]]},
            "row 2: the value of column 3 is not finite",
        ),
        ({"indices": [[1], [2], [3]], "label": [1, None, 1]}, "row 1: the label is null"),
        ({"indices": [[1], [2], [3]], "label": [1.0, float("nan"), 0.0]}, "row 1: the label is nan, which is no fin"),
        ({"indices": [[1], [2], [3]], "label": [1.0, 0.0, float("inf")]}, "row 2: the label is inf, which is no fin"),
        ({"indices": [[1], [2], [3]], "label": [[1], [], [2, None]]}, "row 2: a label is null"),
        (
            {"indices": [[1], [2], [3]], "label": ["a", "b", "c"]},
            "'label' holds string; label must be numbers or lists",
        ),
        ({"indices": [[1], [2], [3]], "values": [1, 2, 3]}, "'values' holds int64; values must be lists of numbers"),
        ({"indices": [[1.5], [2], [3]]}, "'indices' holds list<element: double>; indices must be lists of integers"),
        ({"indices": [1, 2, 3]}, "has no list column 'indices', so it takes a TableEncoder"),
    ],
)
@pytest.mark.parametrize("chunk_rows", [1, 2, 10])
def test_errors_say_where(columns, message, chunk_rows, tmp_path):
    path = put(tmp_path, columns)
    with pytest.raises(InputError) as error:
        read(path, chunk_rows=chunk_rows)
    assert message in str(error.value)
    assert str(path) in str(error.value)


def test_ids_must_fit(tmp_path):
    path = put(tmp_path, {"indices": [[1], [5]]})
    with pytest.raises(InputError, match="row 1: column id 5 is too large; allowed are 0 to 4"):
        read(path, n_columns=5)
    with pytest.raises(InputError, match="n_columns=-1 is not allowed"):
        read(path, n_columns=-1)
    path = put(tmp_path, pa.table({"indices": [[1]]}).replace_schema_metadata({"sketchnet": "nonsense"}))
    with pytest.raises(InputError, match="metadata 'sketchnet' are damaged"):
        read(path)


def test_a_missing_extra_says_its_name(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"reading Parquet needs .* pip install 'sketchnet\[parquet\]'"):
        read(tmp_path / "x.parquet")


def test_files_that_are_not_parquet(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read(tmp_path / "none.parquet")
    with pytest.raises(InputError, match="is no regular file"):
        read(tmp_path)
    path = put(tmp_path, {"indices": [[1, 2]] * 100})
    whole = path.read_bytes()
    for content in (b"", b"PAR1", whole[:-9], whole[9:], b"a,b\n1,2\n"):
        path.write_bytes(content)
        with pytest.raises(InputError, match="is not a whole Parquet file"):
            read(path)


def test_changed_bytes_are_noticed(tmp_path):
    path = tmp_path / "x.parquet"
    write_parquet(path, batch_of([[1, 2, 3]] * 2000, labels=np.arange(2000)), compression="none")
    whole = np.frombuffer(path.read_bytes(), np.uint8)
    for place in range(500, 5000, 500):  # well within the pages
        changed = whole.copy()
        changed[place] ^= 1
        path.write_bytes(changed.tobytes())
        with pytest.raises(InputError, match="is not a whole Parquet file"):
            read(path)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_give_rows_or_clean_errors(seed, tmp_path):
    rng = np.random.default_rng(seed)
    columns = TABLE if seed % 2 else {"indices": [[1, 2], [], None, [5]] * 9, "label": [1, 2, 3, 4] * 9}
    path = put(tmp_path, columns)
    whole = np.frombuffer(path.read_bytes(), np.uint8)
    outcomes = set()
    for _ in range(100):
        changed = whole[: len(whole) if rng.random() < 0.9 else rng.integers(1, len(whole))].copy()
        changed[rng.integers(len(changed))] = rng.integers(256)
        path.write_bytes(changed.tobytes())
        try:
            outcomes.add(sum(b.n_rows for b in read(path, encoder=TableEncoder(n_columns=99))))
        except InputError:
            outcomes.add("error")
    assert outcomes == {5 if seed % 2 else 36, "error"}


def bomb(tmp_path, kind):
    n = 1 << 24
    offsets = {"one row": [0, n], "one long row": [*range(1000), n]}
    if kind == "text":
        return put(tmp_path, {"a": ["x" * n]}, use_dictionary=False, compression="zstd")
    return put(tmp_path, {"indices": pa.LargeListArray.from_arrays(pa.array(offsets[kind]), pa.array(np.full(n, 7)))})


@pytest.mark.parametrize("kind", ["one row", "one long row", "text"])
def test_a_bomb_stays_within_the_limit(kind, tmp_path):
    path = bomb(tmp_path, kind)
    assert path.stat().st_size < 20_000
    encoder, limits = TableEncoder(n_columns=9), Limits(window=4 << 20)
    with PeakMemory() as used, pytest.raises(InputError, match=f"{path}.* row group 0 take.* 4,194,304"):
        read(path, encoder=encoder, limits=limits)
    assert used.peak < 8 << 20


@pytest.mark.parametrize("dictionary", [True, False])
def test_pages_that_are_unpacked_at_once_stay_within_the_limit(dictionary, tmp_path):
    """Texts as long as to fill a page of 24 MB, or a dictionary of it, of which there are copies while it is read."""
    texts = [f"{i:03}" * 8000 for i in range(1000)]
    path = put(tmp_path, {"a": texts, "b": [1] * 1000}, use_dictionary=dictionary, compression="zstd")
    needed, encoder = 72 * 10**6, TableEncoder(n_columns=9)
    with pytest.raises(InputError, match=f"{path}: row group 0 takes {needed // 10**6},...,... bytes at once"):
        read(path, encoder=encoder, limits=Limits(window=needed))
    assert sum(batch.n_rows for batch in read(path, encoder=encoder, limits=Limits(window=needed + (1 << 20)))) == 1000
    without, small = TableEncoder(ignore=["a"], n_columns=9), Limits(window=1 << 20)
    with PeakMemory() as used:
        assert sum(batch.n_rows for batch in read(path, encoder=without, limits=small)) == 1000
    assert used.peak < 8 << 20


def test_pages_of_columns_add_up(tmp_path):
    texts = [f"{i:03}" * 2000 for i in range(1000)]
    path = put(tmp_path, {"a": texts, "indices": [[1]] * 1000, "b": texts}, use_dictionary=False, compression="zstd")
    parquet_claims.check_pages(path, ["a", "indices"], 21_000_000)
    with pytest.raises(InputError, match="row group 0 takes 36,...,... bytes at once; allowed are 21,000,000"):
        parquet_claims.check_pages(path, ["a", "indices", "b"], 21_000_000)
    assert sum(batch.n_rows for batch in read(path, limits=Limits(window=1 << 20))) == 1000  # a and b are not read


@pytest.mark.parametrize("statistics", [True, False])
def test_pages_are_those_that_were_written(statistics, tmp_path):
    """Also behind headers that are long."""
    texts = [chr(97 + i % 26) * 1000 for i in range(40_000)]
    how = {"use_dictionary": False, "data_page_size": 1 << 16, "write_statistics": statistics}
    path = put(tmp_path, {"a": texts}, row_group_size=20_000, **how)
    with open(path, "rb") as file:
        for group in parquet_claims._groups(path, path.stat().st_size):
            ((name, column),) = parquet_claims._columns(group)
            sizes = [size for _, size in parquet_claims._pages(file, column)]
            assert name == b"a"
            assert sum(sizes) == pytest.approx(20_000 * 1004, rel=0.001)
            assert len(sizes) > 10


def test_equal_lists_are_no_bomb(tmp_path):
    path = put(tmp_path, {"indices": [[1, 2, 3]] * 20_000})
    assert sum(batch.n_rows for batch in read(path, limits=Limits(window=1 << 20))) == 20_000


def test_damaged_claims_are_none(tmp_path):
    path = put(tmp_path, {"indices": [[1, 2, 3]] * 2, "label": [1, 2]})
    content = path.read_bytes()
    assert parquet_claims._claims(path, len(content)) == [6 * 8]
    for at in range(len(content) - 8 - int.from_bytes(content[-8:-4], "little"), len(content)):
        for bit in (1, 16, 128):
            path.write_bytes(content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :])
            parquet_claims._claims(path, len(content))
            parquet_claims.check_pages(path, ["indices", "label"], 1)


def test_damaged_pages_are_none(tmp_path):
    path = put(tmp_path, {"indices": [[1, 2, 3]] * 2, "label": [1, 2]})
    content = path.read_bytes()
    for at in range(len(content)):
        for bit in (1, 16, 128):
            path.write_bytes(content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :])
            with suppress(InputError):
                parquet_claims.check_pages(path, ["indices", "label"], 1 << 20)


def test_texts_as_views(tmp_path):
    path = put(tmp_path, {"a": pa.array(["x", "y", None, "x"], pa.string_view()), "b": [1, 2, 3, 4]})
    folder = tmp_path / "plain"
    folder.mkdir()
    plain = put(folder, {"a": ["x", "y", None, "x"], "b": [1, 2, 3, 4]})
    assert same(*(read(file, encoder=TableEncoder(n_columns=99))[0] for file in (path, plain)))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "x.parquet")
    with pytest.raises(InputError, match=r"x.parquet is no regular file"):
        read(tmp_path / "x.parquet")
