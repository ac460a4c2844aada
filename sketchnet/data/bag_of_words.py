"""Documents to counts of the most frequent words, as the dissertation's retrieval experiments take them."""

from __future__ import annotations

import hashlib
import json
import re
from array import array
from collections import Counter
from collections.abc import Collection
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.utils.validation import check_is_fitted

from sketchnet.checks import import_extra
from sketchnet.data.ngrams import check_ngram_range, rows_of_text, text_of
from sketchnet.errors import InputError, MissingFile
from sketchnet.storage import read_json, replacing

_FORMAT, _VERSION = "sketchnet bag of words", 1
_LETTERS = re.compile(r"[^\W\d_]{2,}")
# What is left of "don't", "I've", "they'll" and their like once they are cut at the apostrophe.
_CONTRACTIONS = re.findall(
    r"\w+",
    "ain aren couldn didn doesn don hadn hasn haven isn ll mightn mustn needn shan shouldn ve wasn weren won wouldn",
)


class BagOfWords(TransformerMixin, BaseEstimator):
    """Count the words of documents, for the most frequent words of the training documents.

    A document is put in lower case and cut into tokens, runs of at least two letters of any script; digits,
    underscores and apostrophes divide. Stop-words are taken out, the rest is stemmed, and n-grams are made of what is
    left, so that a bigram may reach over a stop-word. Of these, `fit` keeps the `n_words` with the highest total count.

    Stems are Porter's, whose algorithm is frozen: a saved vocabulary never meets other stems. The stemmer comes with
    the extra "text".

    Parameters
    ----------
    n_words : int or None, default=2000
        Words (or n-grams) to keep, by total count; of equally frequent ones, the first in the alphabet. None keeps all.
    stop_words : "english", None or a collection of str, default="english"
        Tokens to leave out. "english" is scikit-learn's list and what contractions leave ("don", "ve").
    stem : bool, default=True
        Reduce tokens to their stems.
    ngram_range : (int, int), default=(1, 1)
        Smallest and largest number of tokens in a word; (1, 3) adds bigrams and trigrams. They are joined by a space.
    tfidf : bool, default=False
        Instead of counts f, give (1 + log(1 + f)) * log(N / df) for words that occur, where df of the N training
        documents have the word.

    Attributes
    ----------
    words_ : array of str, the words by column, the most frequent first.
    vocabulary_ : dict from word to column.
    document_frequency_ : int64 array, by column the number of training documents that have the word.
    n_documents_ : number of training documents.
    stop_words_ : frozenset of the stop-words in use.

    Examples
    --------
    >>> from sketchnet.data.bag_of_words import BagOfWords
    >>> BagOfWords(n_words=2, stem=False).fit(["red fish, blue fish", "blue sky"]).words_.tolist()
    ['blue', 'fish']
    """

    def __init__(self, n_words=2000, *, stop_words="english", stem=True, ngram_range=(1, 1), tfidf=False):
        self.n_words = n_words
        self.stop_words = stop_words
        self.stem = stem
        self.ngram_range = ngram_range
        self.tfidf = tfidf

    def fit(self, strings, y=None):
        """Learn the words of the training documents."""
        self._check()
        strings = rows_of_text(strings)
        if not strings:
            raise InputError("there are no documents; at least one is needed to learn words from")
        stop_words = _stop_words(self.stop_words)
        words_of = self._analyzer(stop_words)
        totals: Counter = Counter()
        documents: Counter = Counter()
        for row, string in enumerate(strings):
            counts = Counter(words_of(text_of(string, row)))
            totals.update(counts)
            documents.update(counts.keys())
        words = sorted(totals, key=lambda word: (-totals[word], word))[: self.n_words]
        if not words:
            raise InputError("no words were found; documents may be empty, or hold nothing but stop-words")
        self._learn(words, [documents[word] for word in words], len(strings), stop_words)
        return self

    def transform(self, strings):
        """A CSR array (len(strings), len(words_)) of float32: counts, or TF-IDF."""
        check_is_fitted(self)
        words_of, columns = self._analyzer(self.stop_words_), self.vocabulary_
        indptr, indices, counts = array("q", [0]), array("q"), array("q")
        for row, string in enumerate(rows_of_text(strings)):
            known: Counter = Counter(map(columns.get, words_of(text_of(string, row))))
            known.pop(None, None)
            for column in sorted(known):
                indices.append(column)
                counts.append(known[column])
            indptr.append(len(indices))
        indptr, indices, counts = np.array(indptr), np.array(indices), np.array(counts)
        if self.tfidf:
            counts = (1 + np.log1p(counts)) * np.log(self.n_documents_ / self.document_frequency_)[indices]
        shape = len(indptr) - 1, len(self.words_)
        X = sparse.csr_array((counts.astype(np.float32), indices, indptr), shape=shape)
        X.eliminate_zeros()  # words that all training documents have weigh nothing
        return X

    def fit_transform(self, strings, y=None):
        """Learn the words, then count them."""
        strings = rows_of_text(strings)  # a generator can be read but once
        return self.fit(strings).transform(strings)

    def get_feature_names_out(self, input_features=None):
        """The words by column."""
        check_is_fitted(self)
        return self.words_.astype(object)

    def save(self, path: str | Path) -> None:
        """Write parameters and vocabulary to a JSON file; it appears whole or not at all."""
        check_is_fitted(self)
        params = self.get_params()
        if not isinstance(params["stop_words"], str | None):
            params["stop_words"] = sorted(params["stop_words"])
        params |= {"n_words": None if self.n_words is None else int(self.n_words)}
        params |= {"ngram_range": [int(n) for n in self.ngram_range]}
        params |= {"stem": bool(self.stem), "tfidf": bool(self.tfidf)}
        content = {
            "params": params,
            "words": self.words_.tolist(),
            "document_frequency": self.document_frequency_.tolist(),
            "n_documents": self.n_documents_,
            "stop_words": sorted(self.stop_words_),  # scikit-learn's list may change; the fitted one may not
        }
        file = {"format": _FORMAT, "version": _VERSION, "checksum": _checksum(content), "content": content}
        text = json.dumps(file, ensure_ascii=False)
        with replacing(Path(path)) as new:
            new.write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> BagOfWords:
        """Read what `save` wrote. A damaged file is an error."""
        try:
            file = read_json(Path(path))
        except FileNotFoundError:
            raise MissingFile(f"there is no file {path}") from None
        if not isinstance(file, dict) or file.get("format") != _FORMAT:
            raise InputError(f"{path} is not a saved bag of words")
        if file.get("version") != _VERSION:
            raise InputError(f"{path} has version {file.get('version')!r}; this sketchnet reads version {_VERSION}")
        content: Any = file.get("content")
        if file.get("checksum") != _checksum(content):
            raise InputError(f"{path} is damaged: its checksum does not fit its content")
        try:
            params = content["params"] | {"ngram_range": tuple(content["params"]["ngram_range"])}
            bag = cls(**params)
            bag._check()
            bag._learn(*_checked(content))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path} is damaged: {error}") from None
        return bag

    def _learn(self, words: list[str], documents: list[int], n_documents: int, stop_words: frozenset) -> None:
        self.words_ = np.array(words, dtype=np.str_)
        self.vocabulary_ = {word: column for column, word in enumerate(words)}
        self.document_frequency_ = np.array(documents, np.int64)
        self.n_documents_ = n_documents
        self.stop_words_ = stop_words

    def _analyzer(self, stop_words: frozenset):
        """A function from a document to its words. Each distinct token is stemmed once."""
        stems = _Stems(stop_words, _stemmer() if self.stem else str)
        low, high = self.ngram_range

        def words_of(text: str) -> list[str]:
            tokens = [stem for stem in map(stems.__getitem__, _LETTERS.findall(text.lower())) if stem]
            if (low, high) == (1, 1):
                return tokens
            starts = ((n, i) for n in range(low, high + 1) for i in range(len(tokens) - n + 1))
            return [" ".join(tokens[i : i + n]) for n, i in starts]

        return words_of

    def _check(self) -> None:
        n = self.n_words
        if n is not None and (not isinstance(n, Integral) or isinstance(n, bool) or n < 1):
            raise InputError(f"n_words={n!r} is not possible; it is a positive integer, or None for all words")
        check_ngram_range(self.ngram_range)
        _stop_words(self.stop_words)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


class _Stems(dict):
    """From tokens to stems, "" for stop-words; grows as it is asked."""

    def __init__(self, stop_words: frozenset, stem):
        super().__init__(dict.fromkeys(stop_words, ""))
        self._stem = stem

    def __missing__(self, token: str) -> str:
        stem = self[token] = self._stem(token)
        return stem


def _stemmer():
    library = import_extra("Stemmer", "text", "BagOfWords with stemming")
    return library.Stemmer("porter", 0).stemWord  # 0: no cache of its own


def _stop_words(given) -> frozenset[str]:
    if given is None:
        return frozenset()
    if isinstance(given, str) and given == "english":
        return ENGLISH_STOP_WORDS.union(_CONTRACTIONS)
    if isinstance(given, str) or not isinstance(given, Collection) or not all(isinstance(w, str) for w in given):
        raise InputError(f"stop_words={given!r} is not possible; allowed are 'english', None or a list of words")
    return frozenset(word.lower() for word in given)


def _checksum(content) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _checked(content: dict) -> tuple[list[str], list[int], int, frozenset[str]]:
    words, documents, n = content["words"], content["document_frequency"], content["n_documents"]
    if not isinstance(words, list) or not words or not all(isinstance(word, str) and word for word in words):
        raise InputError("its words are not a list of strings")
    if len(set(words)) < len(words) or not isinstance(documents, list) or len(documents) != len(words):
        raise InputError("its words are not distinct, or do not all have a document frequency")
    if type(n) is not int or not all(type(count) is int and 1 <= count <= n for count in documents):
        raise InputError("its document frequencies are not all integers from 1 to the number of documents")
    return words, documents, n, _stop_words(content["stop_words"])
