"""Packed svmlight files, whole and damaged."""

import bz2
import contextlib
import gzip
import lzma
import os
import re
import sys
import warnings

import numpy as np
import pytest
from scipy import sparse

from sketchnet.data import SvmlightReader, read_svmlight, write_svmlight
from sketchnet.data.compression import Limits
from sketchnet.errors import InputError, MissingExtraError, UncheckedWarning
from tests.data.plain_svmlight import assert_same, joined, parse_plainly
from tests.data.svmlight_texts import big_text

PACK = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


def packer(kind):
    """What packs as that program does, with checksums."""
    if kind != "zst":
        return PACK[kind]
    return lambda data: pytest.importorskip("zstandard").ZstdCompressor(write_checksum=True).compress(data)


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zst"])
def test_packed_files(file, kind, tmp_path):
    pack = packer(kind)
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
    pack = packer(kind)
    second = bytearray(pack(b"1 2:1\n" * 1000))
    second[0] ^= 1
    for rest in (bytes(second), b"1 2:1\n"):
        with pytest.raises(InputError, match="damaged"):
            read_svmlight(file(pack(b"1 1:1\n") + rest, f"x.{kind}"))


def test_padding_and_frames_to_skip(file):
    assert read_svmlight(file(PACK["xz"](b"1 1:1\n") + bytes(8) + PACK["xz"](b"0 1:1\n"), "x.xz")).n_rows == 2
    pack = packer("zst")
    skipped = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"abcd"  # with which pzstd begins
    assert read_svmlight(file(skipped + pack(b"1 1:1\n"), "x.zst")).n_rows == 1


def test_text_that_begins_like_a_packed_file(file):
    assert read_svmlight(file(b"1 1:1 # BZh\n")).n_rows == 1
    with pytest.raises(InputError, match="BZh"):
        read_svmlight(file(b"BZh9 is no label\n"))


def test_a_flipped_bit_in_our_zst_changes_no_row(tmp_path):
    pytest.importorskip("zstandard")
    path = tmp_path / "x.svm.zst"
    write_svmlight(path, sparse.random_array((2, 90), density=0.02, rng=np.random.default_rng(0)))
    expected, content = read_svmlight(path), path.read_bytes()
    for bit in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        with warnings.catch_warnings(), contextlib.suppress(InputError):
            warnings.simplefilter("ignore", UncheckedWarning)  # the bit that says whether there is a checksum
            assert_same(read_svmlight(path), expected)


def test_packed_without_checksums(file):
    zstandard = pytest.importorskip("zstandard")
    for content in (zstandard.compress(b"1 1:1\n"), lzma.compress(b"1 1:1\n", check=lzma.CHECK_NONE)):
        path = file(content)
        with pytest.warns(UncheckedWarning, match=f"{path} was packed without checksums: damage may go unseen"):
            assert read_svmlight(path).n_rows == 1


def test_what_takes_much_memory_to_unpack_is_refused(file):
    zstandard = pytest.importorskip("zstandard")
    parameters = zstandard.ZstdCompressionParameters(window_log=24, write_checksum=1)
    frame = zstandard.ZstdCompressor(compression_params=parameters).compressobj()  # which does not know the size
    zst = frame.compress(b"1 1:1\n") + frame.flush()
    xz = lzma.compress(b"1 1:1\n", filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 24}])
    for content, needed in ((zst, "16,777,216"), (xz, "more than 1,048,576")):
        path = file(content)
        assert read_svmlight(path).n_rows == 1
        with pytest.raises(InputError, match=f"{path} takes {needed} bytes of memory to unpack; allowed are 1,048,576"):
            list(SvmlightReader(path, limits=Limits(window=1 << 20)))


@pytest.mark.parametrize("chunk_bytes", [1, 7, 100, 1000])
def test_how_long_a_line_may_be(chunk_bytes, file):
    line = b"1 " + b"1:1 " * 20 + b"\n"
    path = file(b"0 1:1\n" + line * 2)
    expected = read_svmlight(path)
    few = SvmlightReader(path, chunk_bytes=chunk_bytes, limits=Limits(line=len(line)))
    assert_same(joined(list(few)), expected)
    if chunk_bytes < len(line):
        with pytest.raises(InputError, match=f"{path} has a line of more than {len(line) - 2} bytes from byte 6 on"):
            list(SvmlightReader(path, chunk_bytes=chunk_bytes, limits=Limits(line=len(line) - 2)))
