"""How a named data set comes about: its figures, the files it needs, where they are published, who reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sketchnet.data.datasets.dataset import Dataset, DatasetInfo
from sketchnet.data.datasets.fetch import Remote


@dataclass(frozen=True)
class Recipe:
    """`layouts` are alternatives, each a set of files that is enough; the first that is complete is read.

    Names are without the suffix of a compressed file (`.gz`, `.bz2`, `.xz` or `.zst` will do); the files may lie in one
    of the `subfolders`. `load(files, random_state, **options)` gets the path found for each name of the layout.
    `remotes` are the files to download, a complete layout. Where there are none, `advice` says how to get them.
    """

    info: DatasetInfo
    layouts: tuple[tuple[str, ...], ...]
    load: Callable[..., Dataset]
    remotes: tuple[Remote, ...] = ()
    subfolders: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    advice: str = ""
