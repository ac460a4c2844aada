"""Sources that `ingest` reads: each names its job and gives chunks of rows with the position behind them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sketchnet.data.csr import CsrBatch
from sketchnet.data.synthetic import Synthetic


class SyntheticSource:
    """A part of the dissertation's synthetic data."""

    def __init__(self, data: Synthetic, part: str, rows_per_chunk: int = 1 << 16):
        self._data, self._part, self._rows_per_chunk = data, part, rows_per_chunk
        self._span = slice(0, data.n_train) if part == "train" else slice(data.n_train, data.n)

    def job(self) -> dict:
        names = ("n", "d", "density", "significant", "seed")
        return {"synthetic": {name: getattr(self._data, name) for name in names}, "part": self._part}

    def chunks(self, state: dict | None) -> Iterator[tuple[CsrBatch, dict]]:
        start = self._span.start if state is None else state["row"]
        for batch in self._data.chunks(slice(start, self._span.stop), self._rows_per_chunk):
            start += batch.n_rows
            yield batch, {"row": start}

    def description(self, state: dict | None) -> dict:
        return {"classes": ["0", "1"]}

    def done(self, state: dict) -> float:
        return (state["row"] - self._span.start) / max(1, self._span.stop - self._span.start)


def fingerprint(path: Path) -> dict:
    """What tells a file from another, without reading it."""
    found = path.stat()
    return {"path": str(path), "size": found.st_size, "modified": found.st_mtime_ns}
