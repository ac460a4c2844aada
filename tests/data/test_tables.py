"""Tables to sparse rows: kinds of columns, categories, classes and what the encoder keeps."""

import json

import numpy as np
import pytest

from sketchnet.data.csv_files import fit_csv, read_csv_batches
from sketchnet.data.tables import MISSING, TableEncoder, hash_features
from sketchnet.errors import InputError
from tests.data.plain_tables import TABLE, joined, oracle, plain_hash, rows_of, same, write


def test_one_hot(tmp_path):
    path = write(tmp_path, TABLE)
    encoder = fit_csv(path, TableEncoder("class"))
    assert encoder.feature_names() == ["colour=blue", "colour=red", "size", "weight"]
    assert encoder.classes_ == ["bird", "cat", "dog"]
    (batch,) = read_csv_batches(path, encoder)
    assert rows_of(batch) == [[(1, 1), (2, 10), (3, 0.5)], [(0, 1)], [(2, 7), (3, -1000)], [(1, 1), (2, 3), (3, 2)]]
    assert batch.labels.tolist() == [1, 2, 1, 0]
    assert batch.n_columns == 4
    assert [a.dtype for a in (*batch.arrays, batch.labels)] == [np.int64, np.int64, np.float32, np.int64]


def test_hashed(tmp_path):
    path = write(tmp_path, TABLE)
    encoder = TableEncoder("class", n_columns=10**12, seed=3)
    (batch,) = read_csv_batches(path, encoder)
    rows = [line.split(",") for line in TABLE.splitlines()[1:]]
    names = TABLE.splitlines()[0].split(",")
    kinds = {"colour": "categorical", "size": "numeric", "weight": "numeric"}
    assert rows_of(batch) == oracle(names, rows, kinds, lambda name: plain_hash(name, 10**12, 3))
    assert encoder.classes_ == ["cat", "dog", "bird"]  # by first appearance
    assert batch.labels.tolist() == [0, 1, 0, 2]


def test_the_hash_never_changes():
    names = ["colour=red", "size", "", "größe=日本"]
    golden = [
        [2968809934448323355, 4209187238085604397, 3797230976420062948, 5205646456890668701],
        [675, 832, 333, 388],
    ]
    assert hash_features(names, 2**63).tolist() == golden[0]
    assert hash_features(names, 1000, seed=7).tolist() == golden[1]
    assert hash_features([], 5).tolist() == []
    assert hash_features(names, 2**63 - 25).tolist() == [plain_hash(name, 2**63 - 25) for name in names]


def test_fit_forgets(tmp_path):
    encoder = fit_csv(write(tmp_path, "a,y\nx,p\n"), TableEncoder("y"))
    fit_csv(write(tmp_path, "b,y\n1,q\nz,r\n"), encoder)
    assert encoder.feature_names() == ["b=1", "b=z"]
    assert encoder.classes_ == ["q", "r"]


def test_unknown_categories_are_counted(tmp_path):
    encoder = fit_csv(write(tmp_path, "a,b\nx,1\ny,2\n"), TableEncoder())
    batch = joined(read_csv_batches(write(tmp_path, "b,a\n5,z\n6,x\n7,\n8,z\n", "b.csv"), encoder, chunk_rows=1))
    assert rows_of(batch) == [[(2, 5)], [(0, 1), (2, 6)], [(2, 7)], [(2, 8)]]
    assert encoder.unknown_ == {"a": 2}


USUAL = ["", "NA", "nan", "NaN", "null", "None", "N/A", "n/a", "#N/A", "NULL", "<NA>", "-nan"]


@pytest.mark.parametrize("n_columns", [None, 1000])
@pytest.mark.parametrize("text", USUAL)
def test_usual_spellings_are_missing(text, n_columns, tmp_path):
    path = write(tmp_path, f"size,colour,y\n1,red,p\n{text},blue,q\n3,{text},p\n{text},{text},q\n")
    encoder = fit_csv(path, TableEncoder("y", n_columns=n_columns))
    assert encoder.kinds_ == {"size": "numeric", "colour": "categorical"}
    batch = joined(read_csv_batches(path, encoder))
    assert [[value for _, value in row] for row in rows_of(batch)] == [[1, 1], [1], [3], []]
    assert encoder.unknown_ == {}
    if n_columns is None:
        assert encoder.feature_names() == ["size", "colour=blue", "colour=red"]
        later = write(tmp_path, f"size,colour,y\n{text},{text},p\n", "b.csv")
        assert rows_of(joined(read_csv_batches(later, encoder))) == [[]]
        assert encoder.unknown_ == {}


@pytest.mark.parametrize("text", USUAL)
@pytest.mark.parametrize("labels", [("1", "2"), ("p", "q")])
@pytest.mark.parametrize("n_columns", [None, 9])
def test_usual_spellings_are_no_labels(text, labels, n_columns, tmp_path):
    path = write(tmp_path, f"a,y\n1,{labels[0]}\n2,{labels[1]}\n3,{text}\n")
    encoder = TableEncoder("y", n_columns=n_columns)
    if n_columns is None:
        fit_csv(path, encoder)
        assert text not in encoder.classes_
    with pytest.raises(InputError, match=r"a.csv, line 4, column 'y': the label is missing") as error:
        list(read_csv_batches(path, encoder))
    of_class = bool(text) and labels == ("p", "q")
    assert (f": {text!r} says so; missing=[...] of sketchnet.data.TableEncoder" in str(error.value)) == of_class


def test_missing_given_stands_instead_of_the_usual(tmp_path):
    path = write(tmp_path, "a,y\nNA,None\n,nan\n1,None\n")
    encoder = fit_csv(path, TableEncoder("y", missing=[""]))
    assert encoder.feature_names() == ["a=1", "a=NA"]
    assert encoder.classes_ == ["None", "nan"]
    assert joined(read_csv_batches(path, encoder)).labels.tolist() == [0, 1, 0]
    path = write(tmp_path, "a\n1\n?\nNA\n")
    assert fit_csv(path, TableEncoder(missing=[*MISSING, "?"])).kinds_ == {"a": "numeric"}


def test_infinity_is_not_missing(tmp_path):
    path = write(tmp_path, "a\n1\ninf\n")
    message = r"line 3, column 'a': 'inf' is not a finite number.* missing=\[\*MISSING, 'inf'\] if"
    for numeric in (["a"], "auto"):
        with pytest.raises(InputError, match=message):
            list(read_csv_batches(path, TableEncoder(numeric=numeric, n_columns=9)))
    path = write(tmp_path, "a\ninf\ninf\n")
    assert fit_csv(path, TableEncoder()).kinds_ == {"a": "categorical"}


def test_long_ids_are_no_numbers(tmp_path):
    path = write(tmp_path, "a,b\n1,9007199254740991\n2,-9007199254740993\n")
    message = (
        r"a.csv, line 3, column 'b': -9007199254740993 has more digits .*; ignore=\['b'\] .*, categorical=\['b'\] "
    )
    for label in (None, "b"):
        with pytest.raises(InputError, match=message):
            list(read_csv_batches(path, TableEncoder(label, n_columns=9)))
    assert fit_csv(path, TableEncoder(categorical=["b"])).kinds_ == {"a": "numeric", "b": "categorical"}
    assert joined(read_csv_batches(path, TableEncoder(numeric=["a", "b"], n_columns=9))).n_rows == 2
    path = write(tmp_path, "a\n1e30\n2.5\n")
    assert joined(read_csv_batches(path, TableEncoder(n_columns=9))).n_rows == 2


def test_a_numeric_name_that_is_asked_for(tmp_path):
    path = write(tmp_path, "2019,2020,kind\n1,2,a\n3,4,b\n")
    assert list(fit_csv(path, TableEncoder()).kinds_) == ["c0", "c1", "c2"]
    assert fit_csv(path, TableEncoder("kind")).kinds_ == {"2019": "numeric", "2020": "numeric"}
    assert fit_csv(path, TableEncoder(ignore=["2019"])).kinds_ == {"2020": "numeric", "kind": "categorical"}
    encoder = fit_csv(path, TableEncoder("kind"))
    assert joined(read_csv_batches(path, encoder)).n_rows == 2


@pytest.mark.parametrize("label", [None, "a"])
def test_a_slip_among_numbers_is_an_error(label, tmp_path):
    """One number in twenty, at most, may be a slip; with more, the column is one of names."""
    numbers = [str(n) for n in range(19)]
    path = write(tmp_path, "\n".join(["a,b", *(f"{cell},1" for cell in ["NA", *numbers[:10], "ten", *numbers[10:]])]))
    message = (
        r"a.csv, line 13, column 'a': 'ten' is not a finite number, but nearly all others .* give categorical=\['a'\] "
    )
    with pytest.raises(InputError, match=message):
        fit_csv(path, TableEncoder(label))
    for more in ({"categorical": ["a"]}, {"missing": [*MISSING, "ten"]}):
        if label is None:
            fit_csv(path, TableEncoder(label, **more))
    path = write(tmp_path, "\n".join(["a,b", *(f"{cell},1" for cell in [*numbers[:18], "ten"])]))
    encoder = fit_csv(path, TableEncoder(label))
    assert "categorical" in (encoder.label_kind_, encoder.kinds_.get("a"))


def test_saved_encoders_keep_what_was_missing_for_them(tmp_path):
    path = write(tmp_path, "a,b,y\n1,NA,p\n2,x,nan\n")
    old = fit_csv(path, TableEncoder("y", missing=[""])).to_dict()
    assert old["missing"] == [""]  # what was written before NA was missing
    again = TableEncoder.from_dict(json.loads(json.dumps(old)))
    assert again.missing == [""]
    batch = joined(read_csv_batches(path, again))
    assert rows_of(batch) == [[(0, 1), (1, 1)], [(0, 2), (2, 1)]]
    assert again.classes_ == ["nan", "p"]
    assert batch.labels.tolist() == [1, 0]


def test_kinds_given(tmp_path):
    path = write(tmp_path, "id,zip,age,y\n5,10115,30,1\n6,80331,??,0\n")
    encoder = TableEncoder("y", categorical=["zip"], ignore=["id"], missing=["", "??"])
    fit_csv(path, encoder)
    assert encoder.feature_names() == ["zip=10115", "zip=80331", "age"]
    batch = joined(read_csv_batches(path, encoder))
    assert rows_of(batch) == [[(0, 1), (2, 30)], [(1, 1)]]
    assert batch.labels.dtype == np.float64
    encoder = fit_csv(path, TableEncoder("y", numeric=["zip"], classes=["1", "0"]))
    assert encoder.kinds_ == {"id": "categorical", "zip": "numeric", "age": "categorical"}
    assert joined(read_csv_batches(path, encoder)).labels.tolist() == [0, 1]


def test_prediction_needs_no_label(tmp_path):
    encoder = fit_csv(write(tmp_path, TABLE), TableEncoder("class"))
    path = write(tmp_path, "colour,size,weight\nred,1,2\n", "b.csv")
    assert joined(read_csv_batches(path, encoder, labels=False)).labels is None
    with pytest.raises(InputError, match=r"b.csv, line 2: label column 'class' is missing"):
        list(read_csv_batches(path, encoder))


def test_float64_on_request(tmp_path):
    path = write(tmp_path, "a\n0.1\n1e300\n1e-300\n")
    batch = joined(read_csv_batches(path, TableEncoder(n_columns=3, dtype="float64")))
    assert batch.values.tolist() == [0.1, 1e300, 1e-300]
    with pytest.raises(
        InputError, match=r"line 3, column 'a': 1e\+300 is too large for float32; .* of sketchnet.data.Tab"
    ):
        list(read_csv_batches(path, TableEncoder(n_columns=3)))


@pytest.mark.parametrize("n_columns", [None, 2**63])
def test_state_travels_as_json(n_columns, tmp_path):
    path = write(tmp_path, TABLE)
    encoder = fit_csv(path, TableEncoder("class", n_columns=n_columns, missing=["", "?"]))
    again = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert again.to_dict() == encoder.to_dict()
    assert same(joined(read_csv_batches(path, again)), joined(read_csv_batches(path, encoder)))
    with pytest.raises(InputError, match="no table encoder of format 1: format=2"):
        TableEncoder.from_dict(encoder.to_dict() | {"format": 2})


def test_state_between_batches_resumes_a_stream(tmp_path):
    path = write(tmp_path, TABLE)
    whole = list(read_csv_batches(path, TableEncoder("class", n_columns=99), chunk_rows=1))
    first = TableEncoder("class", n_columns=99)
    next(iter(read_csv_batches(path, first, chunk_rows=1)))
    again = TableEncoder.from_dict(json.loads(json.dumps(first.to_dict())))
    rest = list(read_csv_batches(path, again, chunk_rows=1, start_row=1))
    assert all(map(same, rest, whole[1:]))
    assert len(rest) == 3


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (
            TableEncoder("klass", n_columns=9),
            r"a.csv, line 2: there is no column 'klass'; columns are 'colour', 'size'",
        ),
        (TableEncoder(4, n_columns=9), "there is no column 4"),
        (TableEncoder("class", numeric=["width"], n_columns=9), "there is no column 'width'"),
        (
            TableEncoder("class", numeric=["colour"], n_columns=9),
            "line 2, column 'colour': 'red' is not a finite number",
        ),
        (TableEncoder("class", ignore=["class"], n_columns=9), "the label 'class' is also in ignore"),
        (
            TableEncoder("class", classes=["cat", "bird"], n_columns=9),
            "line 3, column 'class': the label is none of the",
        ),
        (TableEncoder("colour", n_columns=9), "line 4, column 'colour': the label is missing"),
        (TableEncoder("weight", n_columns=9), "line 3, column 'weight': the label is missing"),
        (TableEncoder("class"), "has not seen a table: call fit, or give n_columns"),
    ],
)
def test_errors_of_the_encoder(encoder, message, tmp_path):
    with pytest.raises(InputError, match=message):
        list(read_csv_batches(write(tmp_path, TABLE), encoder))


@pytest.mark.parametrize(
    "arguments",
    [
        {"n_columns": 0},
        {"n_columns": 2**63 + 1},
        {"seed": -1},
        {"seed": 2**64},
        {"dtype": "int32"},
        {"numeric": "age"},
        {"categorical": "age"},
        {"missing": [None]},
        {"classes": ["a", "a"]},
        {"numeric": ["a"], "categorical": ["a"]},
    ],
)
def test_bad_settings(arguments):
    with pytest.raises(InputError):
        TableEncoder(**arguments)


def test_other_tables_than_the_first(tmp_path):
    encoder = fit_csv(write(tmp_path, "a,b\n1,2\n"), TableEncoder())
    with pytest.raises(InputError, match=r"b.csv, line 2: column 'b' is missing; columns are 'a'"):
        list(read_csv_batches(write(tmp_path, "a\n1\n", "b.csv"), encoder))
    with pytest.raises(
        InputError, match=r"b.csv, line 2: column 'c' was not in the first table; ignore=\['c'\] leaves"
    ):
        list(read_csv_batches(write(tmp_path, "a,b,c\n1,2,3\n", "b.csv"), encoder))
    with pytest.raises(InputError, match="there is no file"):
        list(read_csv_batches(tmp_path / "none.csv", encoder))
    with pytest.raises(InputError, match="no rows, so there is nothing to fit"):
        fit_csv(write(tmp_path, "a,b\n"), TableEncoder())
