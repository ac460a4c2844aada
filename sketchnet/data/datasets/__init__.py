"""Named data sets: the twelve of the dissertation's appendix A, and `urls` and `reuters`.

Files are read in their publishers' formats. Each loader's docstring states its split and its preprocessing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from sketchnet.checks import check_integer
from sketchnet.data.compression import SUFFIXES
from sketchnet.data.datasets import digits, documents, fetch, images, norb, wide
from sketchnet.data.datasets.dataset import Dataset, DatasetInfo, Split
from sketchnet.data.datasets.files import cache_folder, find, find_layout, search_folders
from sketchnet.data.datasets.recipe import Recipe
from sketchnet.errors import InputError, StorageError

__all__ = ["Dataset", "DatasetInfo", "Split", "list_datasets", "load_dataset"]

# Nearly in the order of the dissertation's table.
_MODULES = (digits, norb, images, documents, wide)
REGISTRY: dict[str, Recipe] = {recipe.info.name: recipe for module in _MODULES for recipe in module.RECIPES}


def load_dataset(
    name: str,
    *,
    folder: str | os.PathLike | None = None,
    download: bool = True,
    random_state: int = 0,
    progress: Callable[[int, int], None] | None = None,
    **options,
) -> Dataset:
    """A data set by name, with the dissertation's split, preprocessing and validation part. Case, hyphens, underscores
    and spaces of the name do not matter.

    Its files are looked for in `folder`, or without one in `$SKETCHNET_DATA/NAME`, in `$SKETCHNET_DATA` and then in the
    cache folder (`$XDG_CACHE_HOME/sketchnet/NAME`, else `~/.cache/sketchnet/NAME`). Missing ones are downloaded from
    their publisher into `folder` or the cache folder, unless `download` is False. `progress(done, total)` is told about
    bytes.

    `random_state` draws the random parts; the same one gives the same parts everywhere. `synthetic` takes `n`, `d`,
    `density` and `significant`, `cifar10` takes `raw`.
    """
    recipe = next((REGISTRY[known] for known in REGISTRY if _folded(known) == _folded(name)), None)
    if recipe is None:
        raise InputError(f"there is no data set {name!r}; there are {', '.join(REGISTRY)}")
    wrong = sorted(set(options) - set(recipe.options))
    if wrong:
        allowed = f"it takes {', '.join(recipe.options)}" if recipe.options else "it takes none"
        raise InputError(f"{', '.join(wrong)}: no such option of data set {recipe.info.name}; {allowed}")
    seed = check_integer("random_state", random_state, 0, 2**64 - 1)
    if folder is not None and not Path(folder).is_dir():
        raise InputError(f"folder {folder} is not there; it must hold the files of data set {recipe.info.name}")
    folders = search_folders(recipe.info.name, folder)
    files = _locate(recipe, folders)
    if files is None:
        target = Path(folder) if folder is not None else cache_folder(recipe.info.name)
        _complete(recipe, folders, target, download, progress)
        files = _locate(recipe, folders)
    return recipe.load(files, seed, **options)


def list_datasets() -> list[DatasetInfo]:
    """What there is, with the figures of the dissertation's table, and which of it is on this machine."""
    listed = []
    for name, recipe in REGISTRY.items():
        files = _locate(recipe, search_folders(name, None))
        path = next(iter(files.values())).parent if files else None
        listed.append(replace(recipe.info, present=files is not None, path=path))
    return listed


def _folded(name) -> str:
    """A name as it is compared."""
    return re.sub("[-_ ]", "", str(name)).lower()


def _locate(recipe: Recipe, folders: list[Path]) -> dict[str, Path] | None:
    """The files of the first layout that is complete. An empty layout needs none."""
    for layout in recipe.layouts:
        files = find_layout(layout, folders, recipe.subfolders)
        if files is not None:
            return files
    return None


def _complete(recipe: Recipe, folders: list[Path], target: Path, may_download: bool, progress) -> None:
    """Download what is missing, or say which files to put where."""
    name = recipe.info.name
    if not recipe.remotes:
        needed = " or ".join(", ".join(layout) for layout in recipe.layouts)
        raise StorageError(f"data set {name}: {needed} is in none of {_listed(folders)}; {recipe.advice}")
    missing = [remote for remote in recipe.remotes if find(_plain(remote), folders, recipe.subfolders) is None]
    for number, remote in enumerate(missing):
        reason = "nothing was downloaded, as download=False asks"
        if may_download:
            try:
                fetch.download(remote, target, progress)
                continue
            except StorageError as error:
                reason = f"downloading failed ({error})"
        todo = missing[number:]
        places = "; ".join(f"{remote.name} from {remote.urls[0]}" for remote in todo[:6])
        more = f"; and {len(todo) - 6} more, to {todo[-1].name}, from the same place" if len(todo) > 6 else ""
        raise StorageError(
            f"data set {name} is not complete in {_listed(folders)}: {reason}. Put into {target}: {places}{more}"
        )


def _plain(remote: fetch.Remote) -> str:
    """The name in the layouts: without the suffix of a compressed file, unless it is an archive."""
    name = Path(remote.name)
    return name.stem if name.suffix in SUFFIXES and not name.stem.endswith(".tar") else remote.name


def _listed(folders: list[Path]) -> str:
    return ", ".join(str(folder) for folder in folders)
