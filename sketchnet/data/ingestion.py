"""Any source of sparse rows to shards on disk, in bounded memory, resumable after a kill at any point.

A source gives chunks of rows and, with each, the position behind it. Every shard's manifest records the position behind
its last row, so a run that was cut off goes on after its last whole shard, with the same chunks and so the same shards.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import numpy as np

from sketchnet.data.csr import CsrBatch
from sketchnet.data.gather import concatenate
from sketchnet.data.shards import finish, read_description, read_manifest, shard_folders, write_shard
from sketchnet.errors import InputError
from sketchnet.storage import locked, write_json, writing

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
    each chunk.
    """
    output = Path(output)
    job = {**source.job(), "columns": n_columns, "shard_entries": shard_entries}
    with locked(output):
        if not overwrite and _is_done(output, job):
            return read_description(output / "dataset.json")
        state, number, rows = _begin(output, job, overwrite)
        buffer, entries = [], 0
        for batch, state in source.chunks(state):  # noqa: B020 (the state moves on with the chunks)
            _check_width(batch, n_columns, rows)
            buffer.append(batch)
            entries += len(batch.indices)
            rows += batch.n_rows
            if entries >= shard_entries or sum(b.n_rows for b in buffer) >= shard_entries:
                _flush(output, number, buffer, n_columns, state)
                buffer, entries, number = [], 0, number + 1
            progress(source.done(state), rows)
        if buffer or number == 0:
            _flush(output, number, buffer, n_columns, state)
        finish(output, {"job": job, **source.description(state)})
        (output / "ingest.json").unlink(missing_ok=True)
    return read_description(output / "dataset.json")


def _is_done(output: Path, job: dict) -> bool:
    finished = output / "dataset.json"
    return finished.exists() and read_description(finished).get("job") == job


def _begin(output: Path, job: dict, overwrite: bool) -> tuple[dict | None, int, int]:
    """(state, number of the next shard, rows so far): from the beginning, or where an earlier run was cut off."""
    record = output / "ingest.json"
    if overwrite and ((output / "dataset.json").exists() or record.exists()):
        shutil.rmtree(output)
    if (output / "dataset.json").exists():
        raise InputError(f"{output} is another data set; choose another name or ask to overwrite it")
    if output.exists() and not record.exists() and any(output.iterdir()):
        raise InputError(f"{output} has files that no ingest wrote; choose an empty or a new folder")
    if record.exists():
        found = read_description(record).get("job")
        different = [key for key in job if not isinstance(found, dict) or found.get(key) != job[key]]
        if different:
            raise InputError(
                f"{output} holds an unfinished run of another job: its {different[0]} is "
                f"{(found or {}).get(different[0])}, this one's is {job[different[0]]}; ask to overwrite it"
            )
    else:
        with writing(output):
            output.mkdir(parents=True, exist_ok=True)
            write_json(record, {"format": 1, "job": job})
    manifests = [read_manifest(path) for path in shard_folders(output)]
    state = manifests[-1]["state"] if manifests else None
    return state, len(manifests), sum(manifest["shape"][0] for manifest in manifests)


def _check_width(batch: CsrBatch, n_columns: int | None, rows_before: int) -> None:
    if n_columns is None or batch.n_columns <= n_columns:
        return
    for row in range(batch.n_rows):  # the chunk has one: find the first
        ids = batch.rows(slice(row, row + 1)).indices
        if len(ids) and int(ids.max()) >= n_columns:
            raise InputError(f"row {rows_before + row} has column id {ids.max()}; allowed are 0 to {n_columns - 1}")


def _flush(output: Path, number: int, buffer: list[CsrBatch], n_columns: int | None, state: dict | None) -> None:
    width = n_columns if n_columns is not None else max((batch.n_columns for batch in buffer), default=0)
    if not buffer:  # a data set without rows
        buffer = [CsrBatch(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), width)]
    write_shard(output, number, concatenate(buffer, width), state)
