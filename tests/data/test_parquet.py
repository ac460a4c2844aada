import json
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sketchnet.data import parquet, parquet_writing
from sketchnet.data.csr import CsrBatch
from sketchnet.data.csv_files import fit_csv, read_csv_batches
from sketchnet.data.parquet import MissingExtraError, fit_parquet, read_parquet_batches
from sketchnet.data.parquet_writing import write_parquet
from sketchnet.data.tables import TableEncoder
from sketchnet.errors import InputError, StorageError
from tests.data.test_tables import joined, plain_hash, rows_of, same

pa = pytest.importorskip("pyarrow", reason="the extra 'parquet' is not installed")
pq = pytest.importorskip("pyarrow.parquet")

FIELDS = ("indptr", "indices", "values", "labels", "label_indptr", "groups")


def put(tmp_path, columns, **options):
    path = tmp_path / "a.parquet"
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), path, **options)
    return path


def read(path, **options):
    return list(read_parquet_batches(path, **options))


def batch_of(lists, values=None, n_columns=100, dtype=np.int64, **more):
    indptr = np.cumsum([0, *map(len, lists)])
    flat = np.array([i for row in lists for i in row], dtype)
    values = np.arange(1, len(flat) + 1, dtype=np.float32) if values is None else values
    return CsrBatch(indptr, flat, values, n_columns, **more)


def equal(a: CsrBatch, b: CsrBatch) -> bool:
    pairs = [(getattr(a, name), getattr(b, name)) for name in FIELDS]
    return a.n_columns == b.n_columns and all(
        x is y or (x is not None and y is not None and x.dtype == y.dtype and np.array_equal(x, y)) for x, y in pairs
    )


@st.composite
def batches(draw):
    def some(dtypes, n, **elements):
        dtype = np.dtype(draw(st.sampled_from(dtypes)))
        return draw(
            hnp.arrays(dtype, int(n), elements=hnp.from_dtype(dtype, allow_nan=False, allow_infinity=False, **elements))
        )

    lengths = draw(st.lists(st.integers(0, 4), max_size=6))
    indptr = np.cumsum([0, *lengths], dtype=np.int64)
    ids = some(["i4", "i8", "u4", "u8", "i2"], indptr[-1], min_value=0, max_value=2**15 - 1)
    values = some(["f4", "f8", "f2", "i1", "u8", "?"], indptr[-1])
    labels = label_indptr = None
    kind = draw(st.sampled_from(["none", "one", "several"]))
    if kind == "one":
        labels = some(["f8", "i8", "u1", "?"], len(lengths))
    elif kind == "several":
        label_indptr = np.cumsum([0, *draw(st.lists(st.integers(0, 3), min_size=len(lengths), max_size=len(lengths)))])
        labels = some(["f8", "i8"], label_indptr[-1])
    groups = some(["i8", "u8"], len(lengths)) if draw(st.booleans()) else None
    return CsrBatch(indptr, ids, values, draw(st.integers(2**15, 2**63)), labels, label_indptr, groups)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batch=batches())
def test_round_trip(batch, tmp_path):
    write_parquet(tmp_path / "x.parquet", batch)
    got = read(tmp_path / "x.parquet")
    assert len(got) == (1 if batch.n_rows else 0)
    assert all(equal(x, batch) for x in got)
    assert os.listdir(tmp_path) == ["x.parquet"]


@pytest.mark.parametrize("chunk_rows", [1, 3, 100, None])
def test_streams_and_row_groups(chunk_rows, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_writing, "_GROUP_ROWS", 7)
    lists = [list(range(i % 4)) for i in range(50)]
    whole = batch_of(lists, labels=np.arange(50))
    parts = [whole.rows(slice(a, min(a + 3, 50))) for a in range(0, 50, 3)]  # offsets do not begin at 0
    write_parquet(tmp_path / "x.parquet", iter(parts))
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


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (batch_of([[1], [100]]), "batch 1 has ids beyond 0 to 99"),
        (batch_of([[-1]]), "batch 1 has ids beyond 0 to 99"),
        (batch_of([[1]], np.array([np.nan], np.float32)), "batch 1 has values that are not finite"),
        (batch_of([[1]], np.ones(2, np.float32)), "batch 1 has 1 column ids but 2 values"),
        (batch_of([[1]], dtype=np.int32), "batch 1 has other columns than batch 0: indices large_list<item: int32>"),
        (batch_of([[1]], n_columns=101), "batch 1 has other columns than batch 0: .*101 columns; before.*100 columns"),
        (batch_of([[1]], labels=np.ones(1)), "batch 1 has other columns than batch 0"),
    ],
)
def test_a_failed_write_leaves_the_old_file(batch, message, tmp_path):
    path = tmp_path / "x.parquet"
    old = batch_of([[1, 2]])
    write_parquet(path, old)
    with pytest.raises(InputError, match=message):
        write_parquet(path, [batch_of([[4]]), batch])
    assert equal(read(path)[0], old)
    assert os.listdir(tmp_path) == ["x.parquet"]


def test_other_failures_of_writing(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="no batches to write"):
        write_parquet(tmp_path / "x.parquet", [])
    with pytest.raises(StorageError, match="cannot write"):
        write_parquet(tmp_path / "no" / "x.parquet", batch_of([[1]]))
    with pytest.raises(StorageError, match="no room on the disk"):
        write_parquet(tmp_path / "x.parquet", full_disk())
    assert os.listdir(tmp_path) == []


def full_disk():
    yield batch_of([[1]])
    raise OSError(28, "No space left on device")


TABLE = {
    "colour": ["red", None, "blue", "", "red"],
    "size": [1, None, 0, 4, 5],
    "weight": [0.5, 1.5, None, 2.5, 0.0],
    "class": ["cat", "dog", "cat", "bird", "dog"],
}


@pytest.mark.parametrize("chunk_rows", [1, 2, 5])
@pytest.mark.parametrize("dictionary", [False, True])
def test_tables(chunk_rows, dictionary, tmp_path):
    table = pa.table(TABLE)
    if dictionary:
        table = table.set_column(0, "colour", table["colour"].dictionary_encode())
    path = put(tmp_path, table, row_group_size=3)
    encoder = fit_parquet(path, TableEncoder("class"))
    assert encoder.feature_names() == ["colour=blue", "colour=red", "size", "weight"]
    batch = joined(read(path, encoder=encoder, chunk_rows=chunk_rows))
    assert rows_of(batch) == [[(1, 1), (2, 1), (3, 0.5)], [(3, 1.5)], [(0, 1)], [(2, 4), (3, 2.5)], [(1, 1), (2, 5)]]
    assert batch.labels.tolist() == [1, 2, 1, 0, 2]
    hashed = TableEncoder("class", n_columns=10**9)
    batch = joined(read(path, encoder=hashed, chunk_rows=chunk_rows))
    assert rows_of(batch)[0] == [
        (plain_hash(x, 10**9), v) for x, v in [("colour=red", 1), ("size", 1), ("weight", 0.5)]
    ]
    assert hashed.classes_ == ["cat", "dog", "bird"]
    for start_row in (2, 3, 4):
        rest = joined(read(path, encoder=TableEncoder("class", n_columns=10**9), start_row=start_row))
        assert same(rest, joined([batch.rows(slice(start_row, 5))]))


def test_csv_and_parquet_agree(tmp_path):
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 9, 300).astype(str), rng.standard_normal(300).round(3)
    path = put(tmp_path, {"a": [f"v{x}" for x in a], "b": b, "c": [str(x) for x in b], "y": a})
    text = tmp_path / "a.csv"
    text.write_text("a,b,c,y\n" + "".join(f"v{x},{v},{v},{x}\n" for x, v in zip(a, b)))
    encoder = fit_csv(text, TableEncoder("y"))
    assert encoder.kinds_ == {"a": "categorical", "b": "numeric", "c": "numeric"}  # c is text in the Parquet file
    assert same(joined(read(path, encoder=encoder)), joined(read_csv_batches(text, encoder)))


def test_types_of_columns(tmp_path):
    columns = {
        "flag": pa.array([True, False, None]),
        "day": pa.array([0, 1, 0], pa.date32()),
        "price": pa.array([1, 2, 3], pa.decimal128(5, 2)),
        "zip": pa.array([7, 7, 8], pa.int64()),
        "nothing": pa.nulls(3),
        "bytes": pa.array([b"x", b"y", None]),
        "few": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array(["p", "p", ""])),
        "nested": pa.array([[1], [2], [3]]),
    }
    path = put(tmp_path, columns)
    encoder = fit_parquet(path, TableEncoder(categorical=["zip"], ignore=["nested"]))
    names = encoder.feature_names()
    days = ["day=1970-01-01", "day=1970-01-02"]
    assert names == ["flag", *days, "price", "zip=7", "zip=8", "nothing", "bytes=x", "bytes=y", "few=p"]
    rows = [[(names[i], v) for i, v in row] for row in rows_of(joined(read(path, encoder=encoder)))]
    assert rows[0] == [("flag", 1), (days[0], 1), ("price", 1), ("zip=7", 1), ("bytes=x", 1), ("few=p", 1)]
    assert rows[1] == [(days[1], 1), ("price", 2), ("zip=7", 1), ("bytes=y", 1), ("few=p", 1)]
    assert rows[2] == [(days[0], 1), ("price", 3), ("zip=8", 1)]
    with pytest.raises(InputError, match="column 'nested' holds list<.*ignore=.* omits it"):
        read(path, encoder=TableEncoder(n_columns=9))


def test_errors_of_tables(tmp_path):
    path = put(tmp_path, {"a": ["1", "2", "x"], "b": [1.0, np.nan, np.inf], "c": ["u", None, "v"]}, row_group_size=1)
    for encoder, message in (
        (TableEncoder(numeric=["a"], n_columns=9), "row 2, column 'a': 'x' is not a finite number"),
        (TableEncoder(n_columns=9), "row 1, column 'b': 'nan' is not a finite number"),
        (TableEncoder(missing=["nan"], n_columns=9), "row 2, column 'b': 'inf' is not a finite number"),
        (TableEncoder("c", ignore=["b"], n_columns=9), "row 1, column 'c': the label is missing"),
        (TableEncoder("d", n_columns=9), "there is no column 'd'; columns are 'a', 'b', 'c'"),
        (TableEncoder(), "call fit, or give n_columns"),
    ):
        with pytest.raises(InputError, match=message):
            read(path, encoder=encoder)


def test_a_missing_extra_says_its_name(monkeypatch, tmp_path):
    monkeypatch.setattr(parquet, "pa", None)
    with pytest.raises(
        MissingExtraError, match=r"reading Parquet needs the extra 'parquet': pip install 'sketchnet\[parquet\]'"
    ):
        read(tmp_path / "x.parquet")
    with pytest.raises(MissingExtraError, match="writing Parquet needs the extra"):
        write_parquet(tmp_path / "x.parquet", batch_of([[1]]))


def test_files_that_are_not_parquet(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read(tmp_path / "none.parquet")
    with pytest.raises(InputError, match="Is a directory"):
        read(tmp_path)
    path = put(tmp_path, {"indices": [[1, 2]] * 100})
    whole = path.read_bytes()
    for content in (b"", b"PAR1", whole[:-9], whole[9:], b"a,b\n1,2\n"):
        path.write_bytes(content)
        with pytest.raises(InputError, match="is not a whole Parquet file"):
            read(path)


def test_state_names_are_plain(tmp_path):
    path = put(tmp_path, TABLE)
    encoder = fit_parquet([path, path], TableEncoder("class"))
    read(put(tmp_path, TABLE | {"colour": ["green"] * 5}), encoder=encoder)
    assert json.loads(json.dumps(encoder.to_dict()))["unknown_"] == {"colour": 5}


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
