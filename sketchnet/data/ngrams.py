"""Raw strings to sparse rows: every n-gram is hashed to a column, so that no vocabulary has to be learnt or kept."""

from __future__ import annotations

import re
from functools import lru_cache
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from sketchnet.checks import check_choice, check_integer
from sketchnet.data.csr import CsrBatch
from sketchnet.errors import InputError
from sketchnet.random import STREAM_NGRAM, hash64, hash_key

MOST_COLUMNS = 2**63 - 1  # a width that scipy and 64-bit kernels can hold; ids then end at 2**63 - 2

_ANALYZERS = ("byte", "char", "word")
_NORMS = (None, "l1", "l2")


class NgramHasher(TransformerMixin, BaseEstimator):
    """Count the n-grams of strings in hashed columns, in parallel and without a vocabulary.

    It learns nothing: `fit` only checks the parameters. Counts equal those of scikit-learn's HashingVectorizer and
    CountVectorizer (norm=None, alternate_sign=False), apart from which n-grams happen to share a column.

    The column of an n-gram with UTF-8 bytes b is floor(h * n_columns / 2**64), where h is a 64-bit hash: from a state
    that the seed gives, state = (state ^ byte) * multiplier and state ^= state >> 32 for every byte, then MurmurHash3's
    finaliser. It is the same on every machine and for any number of threads.

    Parameters
    ----------
    analyzer : {"char", "word", "byte"}, default="char"
        What an n-gram is made of. "char": Unicode code points. "word": runs of at least two word characters, as in
        scikit-learn (`\\b\\w\\w+\\b`), joined by a space. "byte": UTF-8 bytes, or any bytes that are given.
    ngram_range : (int, int), default=(1, 6)
        Smallest and largest n. Strings with fewer units than n have no n-grams.
    n_columns : int or None, default=2**24
        Columns of the result, at most 2**63 - 1. None means that many: 64-bit ids, in effect without collisions.
    counts : bool, default=True
        Values are the numbers of occurrences; if False, they are 1.
    norm : {None, "l1", "l2"}, default=None
        Scale each row to norm 1.
    lowercase : bool, default=False
        Take strings in lower case. Not for "byte".
    seed : int, default=0
        From 0 to 2**64 - 1; another seed gives another hash.

    Examples
    --------
    >>> from sketchnet.data.ngrams import NgramHasher
    >>> NgramHasher(ngram_range=(1, 3)).transform(["example.com/a", "пример.рф"]).shape
    (2, 16777216)
    """

    def __init__(
        self,
        analyzer="char",
        ngram_range=(1, 6),
        n_columns=2**24,
        *,
        counts=True,
        norm=None,
        lowercase=False,
        seed=0,
    ):
        self.analyzer = analyzer
        self.ngram_range = ngram_range
        self.n_columns = n_columns
        self.counts = counts
        self.norm = norm
        self.lowercase = lowercase
        self.seed = seed

    def fit(self, strings=None, y=None):
        """Check the parameters. Nothing is learnt, and the strings are not looked at."""
        self._check()
        return self

    def transform(self, strings):
        """A CSR array (len(strings), n_columns) of float32, with ascending and distinct columns in each row."""
        X = self.batch(strings).scipy()
        X.has_canonical_format = True  # spares users scipy's check
        return X

    def batch(self, strings, labels=None) -> CsrBatch:
        """The same rows as a CsrBatch, with one label a row if given: what ingest streams."""
        from sketchnet.kernels.cpu import ngrams as kernels  # loads numba

        self._check()
        strings = rows_of_text(strings)
        if labels is not None and len(labels) != len(strings):
            raise InputError(f"there are {len(strings)} strings but {len(labels)} labels; there must be one a string")
        unit = {"byte": kernels.BYTES, "char": kernels.CHARACTERS, "word": kernels.WORDS}[self.analyzer]
        norm = {None: kernels.NO_NORM, "l1": kernels.L1, "l2": kernels.L2}[self.norm]
        is_word = word_characters() if self.analyzer == "word" else np.empty(0, np.bool_)
        n_columns = MOST_COLUMNS if self.n_columns is None else int(self.n_columns)
        low, high = (int(n) for n in self.ngram_range)
        indptr, indices, values = kernels.hash_ngrams(
            self._buffer(strings), unit, is_word, (low, high), self._key(), n_columns, bool(self.counts), norm
        )
        return CsrBatch(indptr, indices, values, n_columns, None if labels is None else np.asarray(labels))

    def column_of(self, ngram: str | bytes) -> int:
        """The column of one n-gram, given as it is hashed: in lower case if so asked, words joined by a space."""
        self._check()
        multiplier, state = (int(x) for x in self._key())
        for byte in ngram if isinstance(ngram, bytes) else _encode(text_of(ngram, 0), 0):
            state = (state ^ byte) * multiplier & (2**64 - 1)
            state ^= state >> 32
        h = hash64(np.array([state], np.uint64), np.uint64(1), np.uint64(0))  # only the mixing
        n_columns = MOST_COLUMNS if self.n_columns is None else int(self.n_columns)
        return int(h[0]) * n_columns >> 64

    def _key(self) -> tuple[np.uint64, np.uint64]:
        return hash_key(int(self.seed), STREAM_NGRAM)

    def _buffer(self, strings: list) -> tuple[np.ndarray, np.ndarray]:
        """All strings end to end as UTF-8, and the offsets of each."""
        try:
            whole = "".join(strings)  # by far the fastest way, should all be ASCII
        except TypeError:
            whole = None
        if whole is not None and whole.isascii():
            lengths = map(len, strings)
            whole = (whole.lower() if self.lowercase else whole).encode()
        else:
            encoded = [self._bytes_of(string, row) for row, string in enumerate(strings)]
            lengths = map(len, encoded)
            whole = b"".join(encoded)
        offsets = np.zeros(len(strings) + 1, np.int64)
        np.cumsum(np.fromiter(lengths, np.int64, len(strings)), out=offsets[1:])
        return np.frombuffer(whole, np.uint8), offsets

    def _bytes_of(self, string, row: int) -> bytes:
        if self.analyzer == "byte" and isinstance(string, bytes):
            return string
        text = text_of(string, row)
        if self.lowercase:
            text = text.lower()
        return _encode(text, row)

    def _check(self) -> None:
        check_choice("analyzer", self.analyzer, _ANALYZERS)
        check_choice("norm", self.norm, _NORMS)
        check_ngram_range(self.ngram_range)
        n: Any = self.n_columns
        if n is not None and (not isinstance(n, Integral) or isinstance(n, bool) or not 1 <= int(n) <= MOST_COLUMNS):
            raise InputError(f"n_columns={n!r} is not possible; it is an integer from 1 to 2**63 - 1, or None")
        check_integer("seed", self.seed, 0, 2**64 - 1)
        if self.lowercase and self.analyzer == "byte":
            raise InputError("lowercase=True needs characters; analyzer='byte' takes bytes as they are")

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.requires_fit = False
        return tags


def rows_of_text(strings) -> list:
    """A list, from a list, an array, a Series or any other series of strings; the strings are not looked at."""
    if isinstance(strings, str | bytes):
        raise InputError(f"one {type(strings).__name__} was given; give a list of strings, one a row")
    ndim = getattr(strings, "ndim", 1)
    if ndim != 1:
        raise InputError(f"strings have {ndim} dimensions; they must have one, a string a row")
    try:
        return strings if isinstance(strings, list) else list(strings)
    except TypeError:
        raise InputError(f"a {type(strings).__name__} was given; give a list of strings, one a row") from None


def text_of(string, row: int) -> str:
    """One row as text; bytes must be UTF-8."""
    if isinstance(string, str):
        return string
    if not isinstance(string, bytes):
        raise InputError(f"row {row} is a {type(string).__name__}; allowed are str and bytes")
    try:
        return string.decode()
    except UnicodeDecodeError as error:
        where = f"row {row} is not UTF-8 at byte {error.start} (0x{string[error.start]:02x})"
        raise InputError(f"{where}; decode it first, or hash bytes") from None


def _encode(text: str, row: int) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        code = f"U+{ord(text[error.start]):04X}"
        raise InputError(f"row {row} has a lone surrogate, {code}, at character {error.start}; it is no text") from None


def check_ngram_range(ngram_range) -> None:
    try:
        low, high = ngram_range
        fits = isinstance(low, Integral) and isinstance(high, Integral) and 1 <= int(low) <= int(high) < 2**31
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise InputError(f"ngram_range={ngram_range!r} is not possible; it is (smallest n, largest n), from 1 up")


@lru_cache(maxsize=1)
def word_characters() -> np.ndarray:
    """For each code point, whether Python's \\w matches it."""
    table = np.zeros(0x110000, np.bool_)
    for run in re.finditer(r"\w+", "".join(map(chr, range(0x110000)))):
        table[slice(*run.span())] = True
    return table
