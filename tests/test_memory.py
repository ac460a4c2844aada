import mmap
import resource
import time

import pytest
import torch

from sketchnet.errors import InputError
from sketchnet.memory import (
    DEFAULT_BUDGET,
    PeakMemory,
    _glibc,
    format_memory,
    pages_kept,
    parse_memory,
)


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


_BLOCK = 2**26  # bytes: twice what glibc keeps by itself


def new_pages() -> int:
    """How many pages of a block that was asked for and freed before the system makes anew, at best. A block may not fit
    into the same place at once: glibc asks for some bytes more than it then uses.
    """
    made = []
    for _ in range(12):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        torch.empty(_BLOCK, dtype=torch.uint8).fill_(1)
        made.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    return min(made)


@pytest.mark.skipif(_glibc() is None, reason="only glibc is asked to keep pages")
def test_pages_are_kept_until_the_last_one_ends():
    few = _BLOCK // mmap.PAGESIZE // 10
    with pytest.raises(KeyError), pages_kept():
        raise KeyError
    with pages_kept():
        with pages_kept():
            assert new_pages() < few
        assert new_pages() < few
