"""Packed svmlight files, whole and damaged."""

import bz2
import gzip
import lzma
import os
import re
import sys

import numpy as np
import pytest
from scipy import sparse

from sketchnet.data import read_svmlight, write_svmlight
from sketchnet.errors import InputError, MissingExtraError
from tests.data.plain_svmlight import assert_same, parse_plainly
from tests.data.svmlight_texts import big_text

PACK = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zst"])
def test_packed_files(file, kind, tmp_path):
    if kind == "zst":
        zstandard = pytest.importorskip("zstandard")
    pack = zstandard.compress if kind == "zst" else PACK[kind]
    text = big_text(500)
    half = text.index(b"\n", len(text) // 2) + 1
    expected = parse_plainly(text)[0]
    packed = pack(text[:half]) + pack(text[half:])  # two parts one after the other are one file
    assert_same(read_svmlight(file(packed, f"x.{kind}")), expected)
    assert_same(read_svmlight(file(packed, "named otherwise")), expected)
    for cut in (len(packed) - 1, len(packed) - 9, len(packed) // 3, 7):
        with pytest.raises(InputError, match="damaged"):
            read_svmlight(file(packed[:cut], f"cut.{kind}"))
    with pytest.raises(InputError, match=f"does not hold {kind} data"):
        read_svmlight(file(text, f"plain.{kind}"))
    write_svmlight(tmp_path / f"ours.{kind}", expected)
    assert_same(read_svmlight(tmp_path / f"ours.{kind}"), expected)
    assert len(os.listdir(tmp_path)) == 5  # no temporary file stays


def test_zst_without_its_package(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtraError, match=re.escape("pip install 'sketchnet[zstd]'")):
        read_svmlight(file(b"\x28\xb5\x2f\xfd"))
    with pytest.raises(MissingExtraError, match=re.escape("pip install 'sketchnet[zstd]'")):
        write_svmlight(file(b"old", "x.zst"), sparse.csr_array(np.eye(3)))
    assert file(b"").parent.joinpath("x.zst").read_bytes() == b"old"
