"""Another writer of an output, as its own process would be."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from sketchnet.storage import workspace


@contextmanager
def held_by_another(output, inside: bool = False) -> Iterator[None]:
    """Hold the workspace of an output in another thread, which keeps this one off it."""
    held = workspace(output, inside, keep=True)
    with ThreadPoolExecutor(1) as thread:
        thread.submit(held.__enter__).result()
        try:
            yield
        finally:
            thread.submit(held.__exit__, None, None, None).result()
