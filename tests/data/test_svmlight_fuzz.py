"""Mutated files: the reader gives the rows of the plain parser, or an error on the line where that finds one."""

import random

import numpy as np
import pytest

from sketchnet.data.svmlight import SvmlightReader, read_svmlight
from sketchnet.errors import InputError
from sketchnet.kernels.cpu import threads
from tests.data.plain_svmlight import Malformed, assert_same, joined, parse_plainly
from tests.data.svmlight_texts import ERRORS, EXAMPLE

MARK = b"\xef\xbb\xbf"
SEEDS = [
    EXAMPLE,
    b"1 1:0.5 3:-2.25 9:1e-3\n-1 2:.5 4:5. # c\n" * 3,
    b"1,2 qid:3 1:1\nqid:-4 5:0.1\n7 qid:5\n",
    b"1 1:1\n 2:1\n\t3:1\n",
    MARK + b"1 1:1\n",
    b"0 0:1 9223372036854775807:2\r\n2.5e-3 00012:0.1234567890123456789 3:1e-310\r\n",
    b"? 1:1\nspam:ham 2:1\n\xc3\xa4 3:1\nC# qid:1 4:1\nqid:1 1:1\n",
    b"+1 8764:0.230642 17129:0.0520213 26510:0.404552 52889:0.198513\n" * 2,
    *(content for content, _ in ERRORS),
]
BYTES = b"0123456789.:,#+-eE \t\r\n\x00\x0b\x7f\xff\xc3_xqid"
TOKENS = [
    b"1e400", b"1e39", b"-1e999", b"nan", b"inf", b"1e-400", b"0e999999999999999999999", b"9" * 40, b"0." + b"3" * 40,
    b"9223372036854775807", b"9223372036854775808", b"18446744073709551616", b"00000000000000000000001", b"qid:",
    b"qid:1", b"1:1", b"1:", b":", b"::", b"\r\n", b"\r", b"#", b",", b"1,2", b"\xe2\x82\xac", b"\xed\xa0\x80",
    b"\x00" * 9, b"\n\n", b"1e", b"1e+", b".", b"-", b"+-1", b"0x1p3", b"1_0", b"3.4028235677973366e38",
    b"2.2250738585072011e-308",
    b"179769313486231580793" + b"0" * 288, b"4.9e-324", b"2.4703282292062327e-324", b"12345678", b"1234567890123456",
]  # fmt: skip


def mutated(rng: random.Random) -> bytes:
    text = bytearray(rng.choice(SEEDS)) if rng.random() < 0.95 else bytearray(rng.randbytes(rng.randrange(60)))
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        at = rng.randrange(len(text) + 1)
        kind = rng.randrange(8)
        if kind == 0 and text:
            text[at % len(text)] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del text[at:]
        elif kind == 2:
            del text[at : at + rng.randrange(1, 6)]
        elif kind == 3:
            text[at:at] = rng.choice(TOKENS)
        elif kind == 4:
            text[at:at] = bytes(rng.choices(BYTES, k=rng.randrange(1, 4)))
        elif kind == 5:
            other = rng.choice(SEEDS)
            text[at:at] = other[rng.randrange(len(other)) :]
        elif kind == 6:
            text[at:at] = bytes([rng.choice(b"0123456789")]) * rng.choice((5, 8, 16, 19, 20, 400))
        else:
            text[at:at] = b" " + rng.choice(TOKENS) + rng.choice((b" ", b":1 ", b"\n"))
    if text.startswith((b"\x1f\x8b", b"BZh")):
        del text[0]  # it would be taken for a packed file
    return rng.choice((b"", b"", b"", MARK)) + bytes(text)


def check(text: bytes, path, rng: random.Random) -> bool:
    """Compare the reader with the plain parser; true if the text was malformed."""
    path.write_bytes(text)
    dtype = rng.choice((np.float32, np.float64))
    options = {"base": rng.choice(("auto", 0, 1)), "labels": rng.choice(("auto", "auto", "single", "multi", "ignore"))}
    if rng.random() < 0.5:
        refused(text, path, dtype, skip=True, **options)
    elif "auto" not in options.values():
        expected, skipped = parse_plainly(text, dtype, skip=True, **options)
        reader = SvmlightReader(path, dtype=dtype, on_error="skip", chunk_bytes=rng.choice((1, 20, 1000)), **options)
        chunks = [chunk for chunk in reader if chunk.n_rows]
        assert reader.skipped == skipped
        assert (reader.offset, reader.n_rows) == (len(text), expected.n_rows)
        if chunks:
            assert_same(joined(chunks), expected)
    return refused(text, path, dtype, skip=False, **options)


def refused(text: bytes, path, dtype, *, skip: bool, **options) -> bool:
    """Whether both find a mistake, on the same line; if not, both give the same rows."""
    on_error = "skip" if skip else "raise"
    try:
        expected, _ = parse_plainly(text, dtype, skip=skip, **options)
    except Malformed as error:
        with pytest.raises(InputError, match=f"^{path}:{error.args[0]}:[1-9][0-9]*: "):
            read_svmlight(path, dtype=dtype, on_error=on_error, **options)
        return True
    assert_same(read_svmlight(path, dtype=dtype, on_error=on_error, **options), expected)
    return False


def run(n: int, seed: int, folder) -> None:
    rng = random.Random(seed)
    malformed = 0
    for i in range(n):
        text, path = mutated(rng), folder / str(i)  # a new file each time: some file systems flush one that is replaced
        try:
            malformed += check(text, path, rng)
        except Exception as error:
            raise AssertionError(f"{text!r}: {error}") from error
        path.unlink()
    assert 0.2 * n < malformed < 0.95 * n  # both outcomes are tried


def test_mutated_files(tmp_path):
    run(5000, 1, tmp_path)


def test_mutated_files_cut_for_threads(tmp_path, monkeypatch):
    monkeypatch.setattr(threads, "_SMALL", 1)  # as if these files were large
    run(300, 2, tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_many_mutated_files(tmp_path, seed):
    run(10_000, 100 + seed, tmp_path)
