"""`sketchnet encode`: codes in every form."""

import json

import numpy as np

from sketchnet import SketchAutoencoder
from tests.cli.codes.documents import RETRIEVAL, N, numbers, open_shards_of
from tests.cli.command_line import bad, contents, good


def test_codes_in_every_form(here):
    expected = SketchAutoencoder.load(here / "model").transform(open_shards_of(here, "test.svm"))
    good("encode", "model", "test.svm", "--output", "codes.npy", cwd=here)
    codes = np.load(here / "codes.npy", allow_pickle=False)
    assert (codes.shape, codes.dtype) == ((N, 4), np.float32)
    np.testing.assert_allclose(codes, expected, rtol=1e-4, atol=1e-5)
    lines = good("encode", "model", "test.svm", cwd=here)
    np.testing.assert_array_equal(numbers(lines).astype(np.float32), codes)
    rows = [json.loads(line)["code"] for line in good("encode", "model", "test.svm", "--json", cwd=here).splitlines()]
    np.testing.assert_array_equal(np.array(rows, np.float32), codes)
    for path, text in (("test-bare.svm", b""), ("shards", b""), ("-", (here / "test.svm").read_bytes())):
        np.testing.assert_allclose(numbers(good("encode", "model", path, cwd=here, stdin=text)), codes, atol=1e-5)
    told = json.loads(good("encode", "model", "test.svm", "--output", "codes.npy", "--json", cwd=here))
    assert told == {"output": "codes.npy", "rows": N, "codes": 4, "dtype": "float32"}


def test_the_model_of_an_estimator(here):
    """It knows how the rows of a data set on disk were read, here that the first column is called 1."""
    rows = open_shards_of(here, "test.svm")
    estimator = SketchAutoencoder(4, hidden=(8,), epochs=1, pretrain=1).fit(rows)
    estimator.save(here / "saved")
    lines = "".join(line + "\n" for line in (here / "test.svm").read_text().splitlines() if " 1:" not in line)
    (here / "few.svm").write_text(lines)
    few = [i for i, line in enumerate((here / "test.svm").read_text().splitlines()) if " 1:" not in line]
    codes = numbers(good("encode", "saved", "few.svm", cwd=here))
    np.testing.assert_allclose(codes, estimator.transform(rows)[few], atol=1e-5)
    for labels in ("test.svm", "sets.svm"):  # whatever the labels of its own rows were like
        assert json.loads(good("evaluate", "saved", labels, *RETRIEVAL, cwd=here))["rows"] == N


def test_bits(here):
    good("encode", "binary", "test.svm", "--bits", "--output", "bits.npy", cwd=here)
    bits, codes = np.load(here / "bits.npy"), numbers(good("encode", "binary", "test.svm", cwd=here))
    assert bits.dtype == np.uint8
    assert ((codes >= 0) & (codes <= 1)).all()
    np.testing.assert_array_equal(bits, codes > 0.5)
    assert ((codes > 0.4) & (codes < 0.5)).any()  # the test could fail: training without noise drives none to 0 or 1
    assert ((codes > 0.5) & (codes < 0.6)).any()
    np.testing.assert_array_equal(numbers(good("encode", "binary", "test.svm", "--bits", cwd=here)), bits)


def test_an_array_of_no_rows_and_one_that_fails(here):
    (here / "empty.svm").write_text("")
    good("encode", "model", "empty.svm", "--output", "none.npy", cwd=here)
    assert np.load(here / "none.npy").shape == (0, 4)
    (here / "broken.svm").write_text((here / "test.svm").read_text() + "1 5:oops\n")
    before = contents(here)
    bad("encode", "model", "broken.svm", "--output", "none.npy", message=f"broken.svm:{N + 1}:5", cwd=here)
    assert contents(here) == before


def test_codes_do_not_take_the_place_of_what_they_are_made_from(here):
    good("ingest", "train.svm", "shards", cwd=here)
    array = next((here / "shards").rglob("values.npy"))
    before = array.read_bytes()
    bad("encode", "model", "shards", "--output", array, message="is shards, or in it, which would be lost", cwd=here)
    assert array.read_bytes() == before
