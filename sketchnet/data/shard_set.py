"""Many shards as one matrix of rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
from scipy import sparse

from sketchnet.data.csr import CsrBatch, as_csr
from sketchnet.data.gather import concatenate, kind_of, take_rows
from sketchnet.data.shards import map_shard, read_description, shard_folders
from sketchnet.errors import BadRows, InputError, MissingFile, Setting

_CHOICES = "rows are chosen by a slice, a mask of all rows or a one-dimensional array of integers"
_MOST_LABELS = 2**24  # that a row may choose from


def open_shards(*folders: str | Path, verify: bool = True) -> ShardSet:
    """Map one data set, or several one after the other. `verify` reads every byte once, to compare checksums."""
    for folder in folders:
        if not isinstance(folder, str | os.PathLike):
            raise InputError(f"{folder!r} is no folder; open_shards takes folders one by one: open_shards('a', 'b')")
    parts: list[CsrBatch] = []
    descriptions: list[dict] = []
    for folder in map(Path, folders):
        if not folder.is_dir():
            if folder.exists():
                raise InputError(
                    f"there is no folder {folder}; {folder} is a file: `sketchnet ingest` makes a folder of it"
                )
            raise MissingFile(f"there is no folder {folder}")
        description = read_description(folder / "dataset.json")
        paths = shard_folders(folder)
        if len(paths) != description.get("shards"):
            raise InputError(f"{folder} has {len(paths)} shards; its dataset.json says {description.get('shards')}")
        for key in ("classes", "hasher", "encoder", "base"):
            if _kept(description, key) != _kept(descriptions[0] if descriptions else description, key):
                like = Setting("like", str(folders[0]), "as the other was")
                raise InputError(f"{folder} does not fit {folders[0]}: their {key} differ; read it {like}", like)
        found = [map_shard(path, verify) for path in paths]
        _check_sums(folder, description, found)
        parts += found
        descriptions.append(description)
    if not descriptions:
        raise InputError("open_shards needs at least one folder")
    return ShardSet(parts, descriptions)


def check_rows(data: ShardSet, folders: Sequence[Path]) -> None:
    """Raise if an id or a value of the shards is none: an error that names their folder, before work begins."""
    first = 0
    for part in data.parts:
        try:
            as_csr(part, part.n_columns, first)
        except BadRows as error:
            raise InputError(f"{' '.join(map(str, folders))}: {error}") from None
        first += part.n_rows


def _check_sums(folder: Path, description: dict, parts: list[CsrBatch]) -> None:
    """What dataset.json says of all shards must be what they are; columns may be more than occur in any."""
    sums = {"rows": sum(part.n_rows for part in parts), "entries": sum(part.n_entries for part in parts)}
    columns, widest = description.get("columns"), max((part.n_columns for part in parts), default=0)
    for key, value in {**sums, "columns": max(columns, widest) if isinstance(columns, int) else widest}.items():
        if description.get(key) != value:
            raise InputError(
                f"{folder / 'dataset.json'} says {key} are {description.get(key)}; the shards have {value}"
            )


def _kept(description: dict, key: str):
    """What must be the same in data sets that go together; categories that none of them knows may differ."""
    value = description.get(key)
    return {k: v for k, v in value.items() if k != "unknown_"} if isinstance(value, dict) else value


class ShardSet:
    """Rows of several mapped shards, in order. Indexing gives CsrBatches; nothing is loaded before it is asked for."""

    def __init__(self, parts: list[CsrBatch], descriptions: list[dict]):
        self.parts = [part for part in parts if part.n_rows]
        self.descriptions = descriptions
        self.n_columns = max((description["columns"] for description in descriptions), default=0)
        self.starts = np.concatenate([[0], np.cumsum([part.n_rows for part in self.parts], dtype=np.int64)]).astype(int)
        self.n_rows = int(self.starts[-1])
        if len({kind_of(part) for part in self.parts}) > 1:
            raise InputError("the data sets do not fit together: some have labels or query ids that others lack")

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_rows, self.n_columns

    @property
    def n_entries(self) -> int:
        return sum(len(part.indices) for part in self.parts)

    def __len__(self) -> int:
        return self.n_rows

    def __iter__(self):
        # Without this, Python would ask for row 0, row 1, ... and the message would be about a number nobody gave.
        raise InputError("rows come in batches: sketchnet.data.iterate_batches(shards, 256), or slices shards[0:256]")

    def __getitem__(self, rows) -> CsrBatch:
        """Rows by a slice, or by an array of row numbers in any order."""
        if isinstance(rows, slice):
            start, stop, step = rows.indices(self.n_rows)
            if step == 1:
                return self.rows(slice(start, max(start, stop)))
            rows = np.arange(start, stop, step)
        rows = np.asarray(rows)
        if rows.ndim == 0:
            raise InputError(f"{rows} is no choice of rows; {_CHOICES}: [{rows}] for one row")
        if rows.dtype == bool and rows.shape == (self.n_rows,):
            rows = np.flatnonzero(rows)
        if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
            raise InputError(_CHOICES)
        rows = rows.astype(np.int64)
        rows = np.where(rows < 0, rows + self.n_rows, rows)
        if rows.size and (rows.min() < 0 or rows.max() >= self.n_rows):
            raise InputError(f"row numbers must lie within the {self.n_rows} rows")
        owner = np.searchsorted(self.starts, rows, side="right") - 1
        order = np.argsort(owner, kind="stable")  # shard by shard, then back into the order asked for
        pieces = [take_rows(self.parts[i], rows[owner == i] - self.starts[i]) for i in np.unique(owner)]
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return take_rows(concatenate(pieces, self.n_columns), back) if pieces else self.rows(slice(0, 0))

    def rows(self, span: slice) -> CsrBatch:
        """Consecutive rows: views if they lie in one shard, a copy otherwise."""
        if not self.parts:
            return CsrBatch(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), self.n_columns)
        first = min(int(np.searchsorted(self.starts, span.start, side="right")) - 1, len(self.parts) - 1)
        pieces = []
        for i in range(first, len(self.parts)):
            start, stop = max(span.start, self.starts[i]), min(span.stop, self.starts[i + 1])
            if start < stop or i == first:
                pieces.append(self.parts[i].rows(slice(int(start - self.starts[i]), int(stop - self.starts[i]))))
            if span.stop <= self.starts[i + 1]:
                break
        return concatenate(pieces, self.n_columns)

    @property
    def groups(self) -> np.ndarray | None:
        """The number of each row's group, such as a query's id, or None where rows have none."""
        if not self.parts or self.parts[0].groups is None:
            return None
        return np.concatenate([part.groups for part in self.parts])

    @property
    def labels(self) -> np.ndarray | sparse.csr_array | None:
        """All labels: an array, or for several a row a CSR array of 0 and 1."""
        if not self.parts or self.parts[0].labels is None:
            return None
        labels = np.concatenate([part.labels for part in self.parts])
        if self.parts[0].label_indptr is None:
            return labels
        lengths = np.concatenate([np.diff(cast(np.ndarray, part.label_indptr)) for part in self.parts])
        ids = labels.astype(np.int64)
        bad = np.flatnonzero((ids != labels) | (ids < 0) | (ids >= _MOST_LABELS))
        if len(bad):
            raise InputError(f"label {labels[bad[0]]:g} is not possible among several; allowed are 0 to 2**24 - 1")
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        shape = self.n_rows, int(ids.max(initial=-1)) + 1
        return sparse.csr_array((np.ones(len(ids), np.float32), ids, indptr), shape=shape)
