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


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zst"])
def test_what_is_no_stream_is_not_the_end_of_the_file(kind, file):
    """Python's readers of bz2 and xz stop there without a word."""
    if kind == "zst":
        zstandard = pytest.importorskip("zstandard")
    pack = zstandard.compress if kind == "zst" else PACK[kind]
    second = bytearray(pack(b"1 2:1\n" * 1000))
    second[0] ^= 1
    for rest in (bytes(second), b"1 2:1\n"):
        with pytest.raises(InputError, match="damaged"):
            read_svmlight(file(pack(b"1 1:1\n") + rest, f"x.{kind}"))


def test_padding_and_frames_to_skip(file):
    assert read_svmlight(file(PACK["xz"](b"1 1:1\n") + bytes(8) + PACK["xz"](b"0 1:1\n"), "x.xz")).n_rows == 2
    zstandard = pytest.importorskip("zstandard")
    skipped = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"abcd"  # with which pzstd begins
    assert read_svmlight(file(skipped + zstandard.compress(b"1 1:1\n"), "x.zst")).n_rows == 1


def test_text_that_begins_like_a_packed_file(file):
    assert read_svmlight(file(b"1 1:1 # BZh\n")).n_rows == 1
    with pytest.raises(InputError, match="BZh"):
        read_svmlight(file(b"BZh9 is no label\n"))
