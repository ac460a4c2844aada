"""Tables of categorical and numeric columns to sparse features.

A categorical cell becomes the feature `column=value` with value 1, a numeric cell the feature `column` with its number
as value. Missing cells and zeros give no entry. Work is done once per distinct value of a column and chunk, not once
per cell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from copy import deepcopy
from hashlib import blake2b
from itertools import chain
from typing import Any

import numpy as np

from sketchnet.checks import check_choice, check_integer
from sketchnet.data.csr import CsrBatch
from sketchnet.data.table_chunks import SHORT, NotANumber, TableChunk, shortened, some_of
from sketchnet.errors import BadRows, InputError, Setting

FORMAT_VERSION = 1  # of TableEncoder.to_dict, and of the hash
# The texts that pandas.read_csv takes for "no value", so that a file means the same here and there.
MISSING = ("", "NA", "N/A", "n/a", "<NA>", "#NA", "#N/A", "#N/A N/A", "null", "NULL", "None", "nan", "NaN")
MISSING += ("-nan", "-NaN", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN")  # as C libraries write NaN
_EXACT = 2.0**53  # from where on float64 does not tell whole numbers apart
_SETTINGS = ("label", "numeric", "categorical", "ignore", "missing", "n_columns", "seed", "dtype", "classes", "group")
_STATE = ("label_", "label_kind_", "kinds_", "categories_", "classes_", "classes_fixed_", "unknown_")


def hash_features(features: Iterable[str], n_columns: int, seed: int = 0) -> np.ndarray:
    """Column ids in [0, n_columns) of named features.

    An id is BLAKE2b of the name's UTF-8 bytes, with a digest of 8 bytes and the seed (8 bytes) as salt, both little
    endian, modulo n_columns. A name is `column` or `column=value`; it is not escaped, so that anyone can repeat it.
    """
    salt = seed.to_bytes(8, "little")
    digests = b"".join(blake2b(name.encode(), digest_size=8, salt=salt).digest() for name in features)
    return (np.frombuffer(digests, "<u8") % np.uint64(n_columns)).astype(np.int64)


class TableEncoder:
    """Turns rows of named columns into sparse rows.

    label: name of the label column, or its place (-1 is the last), or None.
    numeric: "auto" takes a column for numeric if the present cells of the first 1000 rows all are finite numbers, and
        refuses one where nearly all are; a list names the numeric columns, and all other features are categorical.
    categorical: columns that are categorical whatever their cells look like. `ignore`: columns to leave out.
    missing: texts of cells that mean "no value", instead of the usual ones, which are `MISSING` of this module: [""]
        where NA is a category, [*MISSING, "?"] for one more. NaN in Parquet columns is missing where "nan" is listed.
    n_columns: None for one-hot: `fit` learns one feature per category; later unknown categories are left out and
        counted in `unknown_`. Else features are hashed into so many columns, up to 2**63, and `fit` is not needed;
        colliding ids may then occur twice in a row, which adds them up.
    classes: label names, for labels 0, 1, ... in this order. Without it, `fit` takes the sorted names it sees; without
        `fit`, names are numbered by first appearance. `classes_` has them. Numeric labels stay numbers.
    group: a column that tells which rows belong together (`CsrBatch.groups`). It is no feature, and later rows may lack
        it.
    """

    def __init__(
        self,
        label: str | int | None = None,
        *,
        numeric: str | Sequence[str] = "auto",
        categorical: Sequence[str] = (),
        ignore: Sequence[str] = (),
        missing: Sequence[str] = MISSING,
        n_columns: int | None = None,
        seed: int = 0,
        dtype: str = "float32",
        classes: Sequence[str] | None = None,
        group: str | None = None,
    ):
        lists = {"categorical": categorical, "ignore": ignore, "missing": missing, "classes": classes or ()}
        if numeric != "auto":
            lists["numeric"] = numeric
        for name, given in lists.items():
            if isinstance(given, str) or not all(isinstance(text, str) for text in given):
                auto = ' or "auto"' if name == "numeric" else ""
                raise InputError(f"{name}={given!r} is not allowed; give a list of texts{auto}")
        twice = [x for x, n in Counter(chain(categorical, ignore, lists.get("numeric", ()))).items() if n > 1]
        twice += [x for x, n in Counter(classes or ()).items() if n > 1]
        if twice:
            raise InputError(f"{twice[0]!r} is named twice among numeric, categorical and ignore, or among classes")
        self.label, self.numeric = label, numeric if numeric == "auto" else list(numeric)
        self.categorical, self.ignore, self.missing = list(categorical), list(ignore), list(missing)
        # None: a column for each category; else categories are hashed into so many.
        self.n_columns = None if n_columns is None else check_integer("n_columns", n_columns, 1, 2**63)
        self.seed = check_integer("seed", seed, 0, 2**64 - 1)
        self.dtype = check_choice("dtype", dtype, ("float32", "float64"))
        self.classes = None if classes is None else list(classes)
        self.group = group
        self._forget()

    def _forget(self) -> None:
        self.label_: Any = None  # a name, if there is one
        self.label_kind_: str | None = None
        self.kinds_: Any = None  # of the features, by name in the order of the table, once they are known
        self.categories_: Any = None  # lists of texts, by the feature's name
        self.classes_ = list(self.classes or ())
        self.classes_fixed_ = self.classes is not None
        self.unknown_: dict[str, int] = {}
        self._prepare()

    def to_dict(self) -> dict:
        """Settings and all that was learned, as plain JSON types. Categories are not copied: once learnt they stay, and
        there may be millions.
        """
        kept = {"categories_": self.categories_}
        others = (name for name in _SETTINGS + _STATE if name not in kept)
        return {"format": FORMAT_VERSION, **{name: deepcopy(getattr(self, name)) for name in others}, **kept}

    @classmethod
    def from_dict(cls, content: dict) -> TableEncoder:
        if content.get("format") != FORMAT_VERSION or not set(_SETTINGS + _STATE) <= set(content):
            raise InputError(f"this is no table encoder of format {FORMAT_VERSION}: format={content.get('format')!r}")
        encoder = cls(**{name: content[name] for name in _SETTINGS})
        for name in _STATE:
            setattr(encoder, name, deepcopy(content[name]))
        encoder._prepare()
        return encoder

    @property
    def width(self) -> int:
        """Number of columns of the sparse rows."""
        if self.n_columns is None and self.categories_ is None:
            raise InputError("the one-hot encoder has not seen a table: call fit, or give n_columns to hash")
        return self._width if self.n_columns is None else self.n_columns

    def feature_names(self) -> list[str]:
        """Names of the one-hot columns; hashed columns have none."""
        if self.n_columns is not None:
            raise InputError("hashed columns have no names")
        _ = self.width  # not fitted is an error
        names = ([f"{c}={v}" for v in self.categories_[c]] if c in self.categories_ else [c] for c in self.kinds_)
        return list(chain.from_iterable(names))

    def _prepare(self) -> None:
        """Ids of one-hot features: column by column in the order of the table, categories sorted."""
        self._missing, self._ids, self._width = frozenset(self.missing), {}, 0
        if self.categories_ is not None:
            for name in self.kinds_:
                values = self.categories_.get(name, [None])
                self._ids[name] = {value: self._width + i for i, value in enumerate(values)}
                self._width += len(values)

    def learn_kinds(self, chunk: TableChunk) -> None:
        """Find the label and the columns' kinds from the first rows of a table, if they are not known yet."""
        if self.kinds_ is not None:
            return
        names = list(chunk.columns)
        label: Any = self.label
        if isinstance(label, int) and -len(names) <= label < len(names):
            label = names[label]
        if label in self.ignore:
            raise InputError(f"{chunk.where(0)}: the label {label!r} is also in ignore")
        given = [] if isinstance(self.numeric, str) else self.numeric
        for name in [*given, *self.categorical, *self.ignore, *(x for x in (label, self.group) if x is not None)]:
            if name not in chunk.columns:
                raise InputError(f"{chunk.where(0)}: there is no column {name!r}; columns are {some_of(names)}")
        kinds = {}
        for name in names:
            if name == self.group and name != label:
                continue
            if name in self.categorical or (self.numeric != "auto" and name not in given and name != label):
                kinds[name] = "categorical"
            elif name not in self.ignore:
                kinds[name] = "numeric" if name in given or self._looks_numeric(chunk, name) else "categorical"
        if label is not None:
            self.label_, self.label_kind_ = label, kinds.pop(label)
            self.label_kind_ = "categorical" if self.classes_fixed_ else self.label_kind_
        self.kinds_ = kinds

    def _looks_numeric(self, chunk: TableChunk, name: str) -> bool:
        try:
            return chunk.columns[name].looks_numeric(self._missing)
        except NotANumber as bad:
            raise self._no_number(chunk, name, bad, "nearly all others of the column are") from None

    def fit(self, chunks: Iterable[TableChunk]) -> TableEncoder:
        """Learn from a whole table: kinds, classes and, for one-hot features, the categories."""
        self._forget()
        found: dict[str, set[str]] = {}
        classes: set[str] = set()
        n_rows = 0
        for chunk in chunks:
            self.learn_kinds(chunk)
            self._check_columns(chunk, labels=True)
            n_rows += chunk.n_rows
            for name, kind in self.kinds_.items():
                if kind == "categorical" and self.n_columns is None:
                    found.setdefault(name, set()).update(chunk.columns[name].coded()[0])
            if self.label_kind_ == "categorical":
                classes.update(chunk.columns[self.label_].coded()[0])
        if n_rows == 0:
            raise BadRows("the table has no rows, so there is nothing to fit")
        if self.numbers_classes:
            self.classes_, self.classes_fixed_ = sorted(classes - self._missing), True
        if self.n_columns is None:
            self.categories_ = {name: sorted(values - self._missing) for name, values in found.items()}
            self._prepare()
        return self

    def transform(self, chunk: TableChunk, labels: bool = True) -> CsrBatch:
        """Sparse rows of a chunk. Without `labels`, the label column may be absent and is not looked at."""
        width = self.width
        self.learn_kinds(chunk)
        self._check_columns(chunk, labels)
        y = self._labels(chunk) if labels and self.label_ is not None else None
        encode = {"categorical": self._categorical, "numeric": self._numeric}
        parts = [encode[kind](chunk, name) for name, kind in self.kinds_.items()]
        indptr = np.zeros(chunk.n_rows + 1, np.int64)
        for rows, _, _ in parts:
            indptr[1:][rows] += 1
        np.cumsum(indptr, out=indptr)
        indices, values = np.empty(indptr[-1], np.int64), np.empty(indptr[-1], self.dtype)
        free = indptr[:-1].copy()  # the next free place of each row: entries stand in the order of the columns
        for rows, ids, x in parts:
            places = free[rows]
            indices[places], values[places] = ids, x
            free[rows] += 1
        return CsrBatch(indptr, indices, values, width, y, groups=self._groups(chunk))

    def _groups(self, chunk: TableChunk) -> np.ndarray | None:
        """Return a number for each row, the same for the same text in the group's column."""
        if self.group is None or self.group not in chunk.columns:
            return None
        values, codes = chunk.columns[self.group].coded()
        return np.append(hash_features(values, 2**63, self.seed), -1)[codes]

    @property
    def numbers_classes(self) -> bool:
        """Whether labels are numbered by first appearance, so that skipped rows matter."""
        return self.label_kind_ == "categorical" and not self.classes_fixed_

    def see_classes(self, chunk: TableChunk) -> None:
        """Number the classes of rows that are skipped, so that a resumed run numbers them as the first run did."""
        if self.numbers_classes:
            self._check_columns(chunk, labels=True)
            self._labels(chunk)

    def _check_columns(self, chunk: TableChunk, labels: bool) -> None:
        needed = [*self.kinds_, *([self.label_] if labels and self.label_ is not None else [])]
        absent = [name for name in needed if name not in chunk.columns]
        if absent:
            label = "label " if absent[0] == self.label_ else ""
            raise InputError(
                f"{chunk.where(0)}: {label}column {absent[0]!r} is missing; columns are {some_of(chunk.columns)}"
            )
        known = {*self.kinds_, *self.ignore, self.label_, self.group}
        extra = [name for name in chunk.columns if name not in known]
        if extra:
            ignoring = Setting("ignore", extra[:1])
            raise InputError(
                f"{chunk.where(0)}: column {extra[0]!r} was not in the first table; {ignoring} leaves it out", ignoring
            )

    def _categorical(self, chunk: TableChunk, name: str):
        values, codes = chunk.columns[name].coded()
        ids = np.full(len(values) + 1, -1, np.int64)  # code -1, a null, finds the last
        known = [place for place, value in enumerate(values) if value not in self._missing]
        if self.n_columns is None:
            ids[known] = [self._ids[name].get(values[place], -2) for place in known]
        else:
            ids[known] = hash_features((f"{name}={values[place]}" for place in known), self.n_columns, self.seed)
        ids = ids[codes]
        n_unknown = int(np.count_nonzero(ids == -2))
        if n_unknown:
            self.unknown_[name] = self.unknown_.get(name, 0) + n_unknown
        rows = np.flatnonzero(ids >= 0)
        return rows, ids[rows], 1

    def _numeric(self, chunk: TableChunk, name: str):
        wide, _ = self._numbers(chunk, name)
        with np.errstate(over="ignore", under="ignore"):
            values = wide.astype(self.dtype)
        too_large = np.flatnonzero(np.isinf(values))
        if len(too_large):
            where = f"{chunk.where(too_large[0])}, column {name!r}"
            raise InputError(
                f"{where}: {wide[too_large[0]]} is too large for {self.dtype}; dtype='float64' of "
                "sketchnet.data.TableEncoder takes it"
            )
        n = self.n_columns
        feature = self._ids[name][None] if n is None else hash_features([name], n, self.seed)[0]
        rows = np.flatnonzero(values)
        return rows, feature, values[rows]

    def _numbers(self, chunk: TableChunk, name: str):
        try:
            values, present = chunk.columns[name].numbers(self._missing)
        except NotANumber as bad:
            raise self._no_number(chunk, name, bad, "the column is numeric") from None
        long = np.flatnonzero(np.abs(values) >= _EXACT) if self.numeric == "auto" else np.empty(0, np.int64)
        if len(long) and (text := chunk.columns[name].whole(int(long[0]))) is not None:
            ignoring, coded = Setting("ignore", [name]), Setting("categorical", [name])
            raise InputError(
                f"{chunk.where(int(long[0]))}, column {name!r}: {text} has more digits than a number keeps, as ids "
                f"do; {ignoring} leaves the column out, {coded} takes each for a category",
                ignoring,
                coded,
            )
        return values, present

    def _no_number(self, chunk: TableChunk, name: str, bad: NotANumber, but: str) -> InputError:
        coded = Setting("categorical", [name])
        missing = Setting("missing", [bad.text], f"missing=[*MISSING, {bad.text!r}]")
        absent = f", or {missing} if that means no value" if len(bad.text) <= SHORT else ""
        return InputError(
            f"{chunk.where(bad.row)}, column {name!r}: {shortened(bad.text)} is not a finite number, but {but}; mend "
            f"the cell, or give {coded} if the column has codes{absent}",
            coded,
            missing,
        )

    def _labels(self, chunk: TableChunk) -> np.ndarray:
        name = self.label_
        if self.label_kind_ == "numeric":
            y, present = self._numbers(chunk, name)
            self._refuse(chunk, ~present, "the label is missing")
            return y
        values, codes = chunk.columns[name].coded()
        absent = np.array([value in self._missing for value in values] + [True])[codes]
        text = [*values, ""][codes[np.argmax(absent)]] if absent.any() else ""
        hint = f": {text!r} says so; missing=[...] of sketchnet.data.TableEncoder can make it a class"  # such as None
        self._refuse(chunk, absent, "the label is missing" + (hint if text else ""))
        places = {value: place for place, value in enumerate(self.classes_)}
        if not self.classes_fixed_:
            _, first = np.unique(codes, return_index=True)
            for row in np.sort(first):
                places.setdefault(values[codes[row]], len(places))
            self.classes_ = list(places)
        y = np.array([places.get(value, -1) for value in values], np.int64)[codes]
        self._refuse(chunk, y < 0, f"the label is none of the classes {some_of(self.classes_)}")
        return y

    def _refuse(self, chunk: TableChunk, bad: np.ndarray, what: str) -> None:
        if bad.any():
            raise InputError(f"{chunk.where(int(np.argmax(bad)))}, column {self.label_!r}: {what}")
