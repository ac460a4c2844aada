"""What is written as svmlight text is read back the same, by us and by scikit-learn."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from sketchnet.data import read_svmlight, write_svmlight
from sketchnet.data.csr import CsrBatch
from sketchnet.errors import InputError, StorageError
from tests.data.plain_svmlight import assert_same


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


def test_labels_and_query_ids_in_scikit_learns_forms(tmp_path):
    X = np.array([[1, 0, 3, 0, 5], [0, 0, 0, 0, 0], [0, 5, 0, 1, 0]])
    y = sparse.csr_array((np.array([1, 1, 1, 0, 1, 1]), np.array([1, 0, 2, 1, 0, 1]), np.array([0, 1, 4, 6])))
    write_svmlight(tmp_path / "ours", X, y, base=0, comment=b"two\n\nlines", groups=[7, 7, -8])
    written = "# two\n# \n# lines\n1 qid:7 0:1 2:3 4:5\n0,2 qid:7\n0,1 qid:-8 1:5 3:1\n"
    assert (tmp_path / "ours").read_text() == written
    assert y.nnz == 6  # the zero is still stored
    dump_svmlight_file(X, y, str(tmp_path / "theirs"), multilabel=True, query_id=[7, 7, -8], comment="two\n\nlines")
    assert_same(read_svmlight(tmp_path / "theirs"), read_svmlight(tmp_path / "ours"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"labels": np.eye(3)}, "labels must be one number a row; several a row are written from a scipy sparse"),
        ({"labels": [[0], [1], [2]]}, "labels must be one number a row"),
        ({"labels": [(0, 1), (2,), ()]}, "labels must be one number a row"),
        ({"labels": 1}, "labels must be one number a row"),
        ({"labels": sparse.csr_array(np.eye(2))}, "there are 3 rows, but 2 have labels"),
        ({"groups": [1, 2]}, "there are 3 rows, but 2 have query ids"),
        ({"groups": [1, 2, 0.5]}, "groups have dtype float64; query ids are whole numbers"),
        ({"groups": np.eye(3)}, "groups must be one number a row$"),
        ({"comment": "a\0b"}, "the comment has a null character"),
        ({"comment": "\ud800"}, "is not possible; it is text, or bytes of ASCII"),
        ({"comment": b"\xc2\xbd"}, "is not possible; it is text, or bytes of ASCII"),
        ({"comment": 3}, "the comment 3 is not possible; it is text"),
        ({"X": np.ones(3)}, "X has 1 dimensions; it must have two, rows and columns"),
    ],
)
def test_what_cannot_be_written_is_said(given, message, tmp_path):
    with pytest.raises(InputError, match=message):
        write_svmlight(tmp_path / "x", **{"X": np.eye(3), **given})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "comment", ["two\n\nlines ", " a\u2028b\x0bc\x85d\x1ce\tf ", "a\r\nb\rc", "# 1 2:3", b"x \x0c y"]
)
def test_comments_are_cut_and_spaced_as_by_scikit_learn(comment, tmp_path):
    X, y = np.array([[1, 0, 0.5], [0, 2, 0]]), np.array([0, 1.5])
    write_svmlight(tmp_path / "ours", X, y, comment=comment)
    dump_svmlight_file(X, y, str(tmp_path / "theirs"), zero_based=False, comment=comment)
    ours, theirs = ((tmp_path / name).read_bytes() for name in ("ours", "theirs"))
    assert theirs.split(b"\n#\n", 1)[1] == ours  # behind its own heading
    assert_same(read_svmlight(tmp_path / "theirs"), read_svmlight(tmp_path / "ours"))


def _ids():
    return np.empty(0, np.int64)


def test_the_order_of_arguments_is_told(tmp_path):
    X, y = sparse.csr_array(np.eye(3)), np.arange(3)
    message = r"the path is a csr_array; write_svmlight takes \(path, X, labels\)"
    with pytest.raises(InputError, match=f"{message}; scikit-learn's order is another"):
        write_svmlight(X, y, tmp_path / "x.svm")
    with pytest.raises(InputError, match=f"{message}$"):
        write_svmlight(X, tmp_path / "x.svm")
    assert not list(tmp_path.iterdir())


def test_written_text(tmp_path):
    X = sparse.csr_array(np.array([[1, 0, 0.1], [0, -0.5, 0], [0, 0, 0]], np.float32))
    write_svmlight(tmp_path / "x", X, [1, -1, 0.25], comment="by hand")
    assert (tmp_path / "x").read_text() == "# by hand\n1 1:1 3:0.1\n-1 2:-0.5\n0.25\n"
