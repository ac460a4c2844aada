"""The history as TensorBoard scalars."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sketchnet.checks import import_extra


@contextmanager
def scalars(folder: Path) -> Iterator[Callable[[dict], None]]:
    """Gives a function that writes a record of the history."""
    import_extra("tensorboard", "tensorboard", "a log for TensorBoard")
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(folder)

    def write(record: dict) -> None:
        for name in ("loss", "valid_error", "valid_loss"):
            if name in record:
                writer.add_scalar(name, record[name], record["epoch"])

    try:
        yield write
    finally:
        writer.close()
