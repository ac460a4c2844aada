"""`sketchnet similar`: the nearest rows."""

import json

import numpy as np
import pytest

from tests.cli.codes.documents import numbers
from tests.cli.command_line import bad, good


def test_neighbours_are_those_of_a_plain_search(here):
    good("encode", "model", "test.svm", "--output", "codes.npy", cwd=here)
    codes = np.load(here / "codes.npy").astype(float)
    unit = codes / np.linalg.norm(codes, axis=1, keepdims=True)
    cosines = unit @ unit.T
    for path in ("test.svm", "codes.npy"):
        found = numbers(good("similar", "model", path, "--rows", "3,17,3", "-n", "5", cwd=here))
        assert found[:, 0].tolist() == [3] * 5 + [17] * 5 + [3] * 5
        assert found[:, 1].tolist() == [1, 2, 3, 4, 5] * 3
        for query, block in zip((3, 17, 3), found.reshape(3, 5, 4)):
            others = [row for row in np.argsort(-cosines[query]) if row != query][:5]
            np.testing.assert_allclose(block[:, 3], cosines[query, others], atol=1e-5)
            np.testing.assert_allclose(cosines[query, block[:, 2].astype(int)], block[:, 3], atol=1e-5)
            assert query not in block[:, 2]
    (here / "two.svm").write_text("".join((here / "test.svm").read_text().splitlines(keepends=True)[20:22]))
    rows = [
        json.loads(line)
        for line in good(
            "similar", "model", "codes.npy", "--query", "two.svm", "--json", "-n", "2", cwd=here
        ).splitlines()
    ]
    assert [(row["query"], row["rank"]) for row in rows] == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert rows[0]["row"] == 20
    assert rows[2]["row"] == 21
    assert rows[0]["similarity"] == pytest.approx(1, abs=1e-6)
    text = (here / "two.svm").read_bytes()
    piped = good("similar", "model", "test.svm", "--query", "-", "-n", "1", cwd=here, stdin=text)
    assert numbers(piped)[:, 2].tolist() == [20, 21]


def test_fewer_rows_than_are_asked_for(here):
    (here / "two.svm").write_text("".join((here / "test.svm").read_text().splitlines(keepends=True)[:2]))
    assert numbers(good("similar", "model", "two.svm", "--rows", "1", cwd=here))[:, :3].tolist() == [[1, 1, 0]]
    assert len(good("similar", "model", "two.svm", "--query", "two.svm", cwd=here).splitlines()) == 4


def test_codes_that_are_none(here):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {(0, 10**13)}, }}\n".encode()
    (here / "huge.npy").write_bytes(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header)
    np.save(here / "cut.npy", np.zeros((3, 4), np.float32))
    (here / "cut.npy").write_bytes((here / "cut.npy").read_bytes()[:-1])
    (here / "zero.npy").symlink_to("/dev/zero")
    for name, message in (
        ("huge.npy", "huge.npy is float32 (0, 10000000000000); codes of this model are float32"),
        ("cut.npy", "cut.npy claims"),
        ("zero.npy", "zero.npy is no regular file"),
    ):
        bad("similar", "model", name, "--rows", "1", message=message, cwd=here)
