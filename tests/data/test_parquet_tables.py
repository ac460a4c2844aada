"""Parquet files of named columns, through the encoder of tables."""

import json
from decimal import Decimal

import numpy as np
import pytest

from sketchnet.data.csv_files import fit_csv, read_csv_batches
from sketchnet.data.parquet import fit_parquet
from sketchnet.data.tables import TableEncoder
from sketchnet.errors import InputError
from tests.data.parquet_files import TABLE, pa, put, read
from tests.data.plain_tables import joined, plain_hash, rows_of, same


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
    with pytest.raises(InputError, match=r"column 'nested' holds list<.*; ignore=\['nested'\] leaves it out"):
        read(path, encoder=TableEncoder(n_columns=9))


def test_long_ids_and_infinity(tmp_path):
    path = put(tmp_path, {"id": [1, 2**60], "x": [1.0, float("inf")]})
    with pytest.raises(InputError, match="row 1, column 'id': 1152921504606846976 has more digits than a number"):
        read(path, encoder=TableEncoder(n_columns=9))
    encoder = fit_parquet(path, TableEncoder(ignore=["id"], missing=["inf"]))
    assert joined(read(path, encoder=encoder)).indptr.tolist() == [0, 1, 1]


def test_nan_is_missing(tmp_path):
    path = put(tmp_path, {"a": [1.5, np.nan, None, 0.0], "b": ["u", "NA", "nan", None], "y": [1.0, 2.0, 3.0, np.nan]})
    encoder = fit_parquet(path, TableEncoder(ignore=["y"]))
    assert encoder.feature_names() == ["a", "b=u"]
    assert rows_of(joined(read(path, encoder=encoder))) == [[(0, 1.5), (1, 1)], [], [], []]
    assert fit_parquet(path, TableEncoder(categorical=["a"], ignore=["b", "y"])).feature_names() == ["a=0", "a=1.5"]
    for classes in (None, ["1", "2", "3"]):
        with pytest.raises(InputError, match="row 3, column 'y': the label is missing"):
            read(path, encoder=TableEncoder("y", classes=classes, n_columns=9))


def test_errors_of_tables(tmp_path):
    path = put(tmp_path, {"a": ["1", "2", "x"], "b": [1.0, np.nan, np.inf], "c": ["u", None, "v"]}, row_group_size=1)
    for encoder, message in (
        (TableEncoder(numeric=["a"], n_columns=9), "row 2, column 'a': 'x' is not a finite number"),
        (TableEncoder(missing=[""], n_columns=9), "row 1, column 'b': 'nan' is not a finite number"),
        (TableEncoder(n_columns=9), "row 2, column 'b': 'inf' is not a finite number"),
        (TableEncoder("c", ignore=["b"], n_columns=9), "row 1, column 'c': the label is missing"),
        (TableEncoder("d", n_columns=9), "there is no column 'd'; columns are 'a', 'b', 'c'"),
        (TableEncoder(), "call fit, or give n_columns"),
    ):
        with pytest.raises(InputError, match=message):
            read(path, encoder=encoder)


def test_state_names_are_plain(tmp_path):
    path = put(tmp_path, TABLE)
    encoder = fit_parquet([path, path], TableEncoder("class"))
    read(put(tmp_path, TABLE | {"colour": ["green"] * 5}), encoder=encoder)
    assert json.loads(json.dumps(encoder.to_dict()))["unknown_"] == {"colour": 5}


def test_booleans_are_spelt_as_in_text(tmp_path):
    """A model of a CSV file that pandas wrote takes the same table as Parquet."""
    (tmp_path / "a.csv").write_text("b,y\nTrue,1\nFalse,2\nTrue,1\n")
    encoder = fit_csv(tmp_path / "a.csv", TableEncoder("y"))
    path = put(tmp_path, {"b": [True, False, True], "y": [1, 2, 1]})
    assert rows_of(joined(read(path, encoder=encoder))) == [[(1, 1)], [(0, 1)], [(1, 1)]]
    assert encoder.unknown_ == {}


def test_decimals_that_float64_would_merge_are_refused(tmp_path):
    keys = pa.array([Decimal(9007199254740993), Decimal(9007199254740994)], pa.decimal128(20, 0))
    path = put(tmp_path, pa.table({"key": keys, "y": [0, 1]}))
    with pytest.raises(InputError, match="column 'key': 9007199254740993 has more digits than a number keeps"):
        read(path, encoder=TableEncoder("y", n_columns=9))
    with pytest.raises(InputError, match="column 'key': 9007199254740993 has more digits than a number keeps"):
        read(path, encoder=TableEncoder("key", n_columns=9))


@pytest.mark.parametrize("type", [pa.string_view(), pa.binary_view()], ids=str)
def test_views_are_texts(type, tmp_path):
    path = put(tmp_path, pa.table({"x": pa.array(["a", "b", None], type), "y": [0, 1, 0]}))
    assert fit_parquet(path, TableEncoder("y")).feature_names() == ["x=a", "x=b"]


@pytest.mark.parametrize(
    "column",
    [pa.array([b"\xff", b"a"]), pa.array([1, 2], pa.timestamp("s", tz="Nowhere/Bad"))],
    ids=["bytes", "time zone"],
)
def test_columns_that_are_no_text_say_which_they_are(column, tmp_path):
    path = put(tmp_path, pa.table({"x": column, "y": [0, 1]}))
    with pytest.raises(InputError, match=r"a.parquet: column 'x' holds .*; ignore=\['x'\] leaves it out"):
        fit_parquet(path, TableEncoder("y"))
