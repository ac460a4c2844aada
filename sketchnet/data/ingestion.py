"""Any source of sparse rows to shards on disk, in bounded memory, resumable after a kill at any point.

A source gives chunks of rows and, with each, the position behind it. Every shard's manifest records the position behind
its last row, so a run that was cut off goes on after its last whole shard, with the same chunks and so the same shards.
While it runs, `ingest.json` in the folder says which job it is.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from sketchnet.data.csr import CsrBatch, as_ids
from sketchnet.data.gather import concatenate, kind_of
from sketchnet.data.shards import (
    finish,
    is_shard,
    map_shard,
    read_description,
    read_manifest,
    shard_folders,
    write_shard,
)
from sketchnet.errors import BeyondColumns, Contradiction, InputError, Setting
from sketchnet.storage import make_folder, remove, tidy, workspace, workspace_of, write_json, writing

_DATASET, _RECORD = "dataset.json", "ingest.json"
SHARD_ENTRIES = 1 << 22  # non-zeros of a shard, about 32 to 64 megabytes


class Source(Protocol):
    """Where rows come from. Positions and states are plain JSON values."""

    def job(self) -> dict:
        """What is read and how: a run is continued only if this is the same."""

    def chunks(self, state: dict | None) -> Iterator[tuple[CsrBatch, dict]]:
        """Rows in order, from the beginning or from behind the chunk that came with `state`."""

    def description(self, state: dict | None) -> dict:
        """What readers of the data set should know (names of classes, how strings were hashed, ...)."""

    def done(self, state: dict) -> float | None:
        """The fraction of the input that lies behind `state`, if it can be told."""

    def where(self, state: dict) -> str:
        """How a message about a chunk that came with `state` begins: with its file, if there is one."""


def ingest(
    source: Source,
    output: str | Path,
    *,
    n_columns: int | None = None,
    shard_entries: int = SHARD_ENTRIES,
    overwrite: bool = False,
    progress: Callable[[float | None, int], None] = lambda fraction, rows: None,
) -> dict:
    """Write a source's rows as a data set in the folder `output`; returns the content of its dataset.json.

    An unfinished run of the same job is continued, a finished one left as it is. `n_columns` fixes the width, and ids
    beyond it are an error; without it the width is the largest id plus one. `progress(fraction, rows)` is called after
    each chunk. What is overwritten stays until the new data set is whole.
    """
    output, job = Path(output), _job(source, n_columns, shard_entries)
    make_folder(output.absolute().parent)
    name, output = output, _resolve_folder(output)
    with workspace(output) as work:
        old, new = work / "replaced", work / "replacing"
        if os.path.lexists(old) and not output.exists() and _is_whole(new):
            _move(new, output)  # where a run was cut off between the two renames below
        remove(old)
        if _is_done(output, job) and not overwrite:
            return read_description(output / _DATASET)
        _check_ours(output, name)
        # What is mounted cannot be moved: it is cleared first.
        replaces = overwrite and _is_whole(output) and not os.path.ismount(output)
        if not (replaces and _is_done(new, job)):
            try:
                _fill(source, new if replaces else output, job, overwrite, progress)
            except InputError:
                if replaces:  # read again, the input will be another
                    remove(new)
                raise
        if replaces:
            _move(output, old)
            _move(new, output)
    return read_description(output / _DATASET)


def is_ingested(
    source: Source, output: Path, *, n_columns: int | None = None, shard_entries: int = SHARD_ENTRIES
) -> bool:
    """Whether the folder has just what `ingest` would write into it, whole."""
    return _is_done(output, _job(source, n_columns, shard_entries))


def _job(source: Source, n_columns: int | None, shard_entries: int) -> dict:
    try:
        return json.loads(json.dumps({**source.job(), "columns": n_columns, "shard_entries": shard_entries}))
    except TypeError as error:
        raise InputError(f"the options of an ingest must be plain numbers, texts and lists: {error}") from None


def _move(source: Path, target: Path) -> None:
    with writing(target):
        source.rename(target)


def _is_whole(output: Path) -> bool:
    return (output / _DATASET).exists() and not (output / _RECORD).exists()


def _fill(source: Source, output: Path, job: dict, overwrite: bool, progress: Callable) -> None:
    """Write the source's rows into a folder, from the beginning or where an earlier run of the same job stopped."""
    made = not output.exists()
    state, number, rows, kind = _begin(output, job, overwrite)
    try:
        while True:
            try:
                state = _write(source, output, job, progress, state, number, rows, kind)
                break
            except Contradiction as error:
                if error.learnt is None:
                    raise
                _clear(output, job)
                state, number, rows, kind = {"file": 0, "at": None, "learnt": error.learnt}, 0, 0, None
        finish(output, {"job": job, **source.description(state)})
        (output / _RECORD).unlink(missing_ok=True)
    except InputError:
        if not shard_folders(output):  # nothing to go on with, so nothing should stand in the way of another try
            (output / _RECORD).unlink(missing_ok=True)
            if made:
                shutil.rmtree(output, ignore_errors=True)
        raise


def _write(source: Source, output: Path, job: dict, progress: Callable, state, number: int, rows: int, kind) -> dict:
    """Write the shards from `number` on; returns the state behind the last row."""
    n_columns, shard_entries, buffer, entries = job["columns"], job["shard_entries"], [], 0
    for batch, state in source.chunks(state):  # noqa: B020 (the state moves on with the chunks)
        progress(source.done(state), rows + batch.n_rows)
        if batch.n_rows == 0:
            continue
        kind = _checked_kind(kind, batch, rows, source.where(state))
        _check_width(batch, n_columns, rows, state.get("learnt", {}).get("base", 0), source.where(state))
        groups = None if batch.groups is None else as_ids(batch.groups)
        buffer.append(replace(batch, indices=as_ids(batch.indices), groups=groups))
        entries, rows = entries + len(batch.indices), rows + batch.n_rows
        if entries >= shard_entries or sum(b.n_rows for b in buffer) >= shard_entries:
            _flush(output, number, buffer, n_columns, state)
            buffer, entries, number = [], 0, number + 1
    if buffer or number == 0:
        _flush(output, number, buffer, n_columns, state)
    return state


def _is_done(output: Path, job: dict) -> bool:
    if not _is_whole(output):
        return False
    found = read_description(output / _DATASET)
    return found.get("job") == job and found.get("shards") == len(shard_folders(output))


def _begin(output: Path, job: dict, overwrite: bool) -> tuple[dict | None, int, int, str | None]:
    """(state, number of the next shard, rows so far, kind of labels): from the beginning, or after an earlier run."""
    record, finished = output / _RECORD, output / _DATASET
    found = read_description(record) if record.exists() else {}
    clear = bool(found.get("clearing"))
    if finished.exists() or (record.exists() and not clear):
        # A finished data set beside a record of the same job was cut off while it was tidied up.
        theirs = (found or read_description(finished)).get("job") or {}
        different = [key for key in job if theirs.get(key) != job[key]]
        if not overwrite and (different or not record.exists()):
            key = (different or ["job"])[0]
            old, new = _differing(key, theirs.get(key), job.get(key))
            anew, size = Setting("overwrite", True), Setting(key, theirs.get(key))
            way_out = f"choose another name or give {anew} to replace it"
            if old == new and key == "files":
                raise InputError(f"{output} was read from {old} as it was earlier; {way_out}", anew)
            what = f"its {key} is {old}, this one's is {new}"
            if key in ("chunk_bytes", "shard_entries"):
                what = f"it was read in pieces of another size ({size})"
            raise InputError(f"{output} is another data set, or an unfinished one: {what}; {way_out}", anew, size)
        clear = overwrite and (bool(different) or not record.exists())
    make_folder(output)
    with writing(output):
        _tidy_folder(output)
        if clear:
            _clear(output, job)
        write_json(record, {"format": 1, "job": job})
    folders = shard_folders(output)
    manifests = [read_manifest(path) for path in folders]
    rows = sum(manifest["shape"][0] for manifest in manifests)
    kind = kind_of(map_shard(folders[0], verify=False)) if rows else None
    return manifests[-1]["state"] if manifests else None, len(manifests), rows, kind


def _clear(output: Path, job: dict) -> None:
    """Remove what is there. Said first: if this is cut off, the next run clears on."""
    with writing(output):
        write_json(output / _RECORD, {"format": 1, "job": job, "clearing": True})
        (output / _DATASET).unlink(missing_ok=True)
        for path in output.glob("*shard-*"):
            shutil.rmtree(path)
        write_json(output / _RECORD, {"format": 1, "job": job})


def _differing(key: str, *values) -> list:
    """Values as people need them: of files the names, of options those that differ."""
    if key == "files":
        return [", ".join(str(name) for name, *_ in value) if value else value for value in values]
    if all(isinstance(value, dict) for value in values):
        names = [name for name in {**values[0], **values[1]} if values[0].get(name) != values[1].get(name)]
        return [", ".join(f"{name}={value.get(name)!r}" for name in names) for value in values]
    return list(values)


def check_folder(output: Path) -> None:
    """Raise if what lies where a data set is to be written, or beside it, is none of ours."""
    folder = _resolve_folder(output)
    if folder.parent.is_dir():
        with workspace(folder, keep=True):
            _check_ours(folder, output)
            _tidy_folder(folder)


def _resolve_folder(output: Path) -> Path:
    """Return what a link leads to: that is replaced, not the link."""
    if output.exists() and not output.is_dir():
        raise InputError(f"{output} is no folder; choose another name for the data set")
    if not output.is_symlink():
        return output
    if not output.exists():
        raise InputError(f"{output} is a link that leads nowhere; it must be a folder, or a name that is free")
    return output.resolve()


def _tidy_folder(output: Path) -> None:
    """Remove what a run that was killed has left beside the files of a data set."""
    for work in output.glob(".*.sketchnet"):
        tidy(output / work.name[1:].removesuffix(work.suffix))


def _check_ours(output: Path, name: Path) -> None:
    foreign = [path.name for path in output.glob("*") if not _is_ours(path)] if output.exists() else []
    if foreign:
        raise InputError(f"{name} has files that no ingest wrote ({foreign[0]}, ...); choose an empty or new folder")


def _is_ours(path: Path) -> bool:
    if path.name in (_DATASET, _RECORD):
        read_description(path)  # an error if it is somebody else's
        return True
    return is_shard(path) or path.name in (workspace_of(path.with_name(name)).name for name in (_DATASET, _RECORD))


def _checked_kind(kind: str | None, batch: CsrBatch, rows_before: int, where: str) -> str:
    found = kind_of(batch)
    if kind is not None and found != kind:
        here = f"{where}rows from {rows_before} on have {found}"
        raise InputError(f"{here}, those before have {kind}; all must have the same")
    return found


def _check_width(batch: CsrBatch, n_columns: int | None, rows_before: int, base: int, where: str) -> None:
    if n_columns is None or batch.n_columns <= n_columns:
        return
    for row in range(batch.n_rows):  # the chunk has one: find the first
        ids = batch.rows(slice(row, row + 1)).indices
        if len(ids) and int(ids.max()) >= n_columns:
            column, allowed = int(ids.max()), f"{base} to {n_columns - 1 + base}"  # as the file calls them
            message = f"{where}row {rows_before + row} has column id {column + base}; allowed are {allowed}"
            raise BeyondColumns(message, column + 1)


def _flush(output: Path, number: int, buffer: list[CsrBatch], n_columns: int | None, state: Any) -> None:
    width = n_columns if n_columns is not None else max((batch.n_columns for batch in buffer), default=0)
    if not buffer:  # a data set without rows
        buffer = [CsrBatch(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), width)]
    write_shard(output, number, concatenate(buffer, width), state)
