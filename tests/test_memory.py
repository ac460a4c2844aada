import mmap
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context

import pytest
import torch

from sketchnet import memory
from sketchnet.errors import InputError
from sketchnet.memory import DEFAULT_BUDGET, PeakMemory, anonymous_memory, format_memory, pages_kept, parse_memory


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("2GiB", 2 * 2**30),
        ("500 MB", 500_000_000),
        ("1.5gib", 3 * 2**29),
        ("10", 10),
        (4096, 4096),
        (None, DEFAULT_BUDGET),
    ],
)
def test_sizes_are_read(given, expected):
    assert parse_memory(given) == expected


@pytest.mark.parametrize("given", ["lots", "-1GiB", "0", "2 GiB more", "", "GiB", 0])
def test_what_is_not_a_size_is_an_error(given):
    with pytest.raises(InputError, match="is not a size; give one such as"):
        parse_memory(given)


def test_sizes_are_written_for_people():
    assert [format_memory(x) for x in (12, 2048, 3 * 2**20, 2.5 * 2**30)] == ["12 B", "2 KiB", "3 MiB", "2.5 GiB"]


def test_peak_memory_sees_what_comes_and_goes():
    """Pages are the kernel's own: the allocator may hand out some that the process has had all along."""
    deadline = time.monotonic() + 60  # a busy machine lets the sampling thread wait
    with PeakMemory() as used, mmap.mmap(-1, 50_000_000, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as held:
        for place in range(0, len(held), mmap.PAGESIZE):
            held[place] = 1
        while used.peak < 45e6 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert 45e6 < used.peak < 80e6


_LITTLE = 2**23


def held_while_pages_are_kept() -> list[int]:
    """How many bytes the process has gained when a block of 64 MiB, twice what glibc keeps by itself, came and went:
    before, while and after pages are kept.
    """

    def after_a_block() -> int:
        torch.empty(2**26, dtype=torch.uint8).fill_(1)
        return anonymous_memory()

    start = after_a_block()  # torch has its threads now
    held = [after_a_block() - start]
    with pages_kept():
        with suppress(KeyError), pages_kept():
            raise KeyError
        held.append(after_a_block() - start)
    held.append(anonymous_memory() - start)
    held.append(after_a_block() - start)
    return held


def in_a_new_process(work: Callable[[], list[int]]) -> list[int]:
    """This one may have so much free memory already that a block more makes no difference."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        return processes.submit(work).result()


@pytest.mark.skipif(memory._glibc() is None, reason="only glibc is asked to keep pages")
def test_pages_are_kept_until_the_last_one_ends():
    before, meanwhile, *afterwards = in_a_new_process(held_while_pages_are_kept)
    assert meanwhile > 2**26 - _LITTLE
    assert max(before, *afterwards) < _LITTLE


@pytest.mark.parametrize(
    "setting", [("MALLOC_TRIM_THRESHOLD_", "1000000"), ("GLIBC_TUNABLES", "glibc.malloc.mmap_threshold=1000000")]
)
def test_thresholds_of_the_users_own_stay(setting, monkeypatch):
    monkeypatch.setenv(*setting)
    assert max(in_a_new_process(held_while_pages_are_kept)) < _LITTLE


def test_where_the_library_keeps_only_smaller_blocks_these_are_asked_for(monkeypatch):
    """Earlier versions of glibc take no more than 32 MiB; a refusal leaves what was set before."""
    thresholds = {}

    class Older:
        def mallopt(self, name: int, size: int) -> int:
            taken = name != memory._MAP or size <= 2**25
            if taken:
                thresholds[name] = size
            return taken

        def malloc_trim(self, pad) -> None:
            pass

    monkeypatch.setattr(memory, "_glibc", Older)
    with pages_kept():
        assert thresholds == {memory._MAP: 2**25, memory._TRIM: 2**30}
    assert thresholds == {memory._MAP: 2**25, memory._TRIM: 2**26}
