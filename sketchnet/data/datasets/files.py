"""Find the files of a data set on this machine, and read them, compressed or not."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from sketchnet.data.compression import SUFFIXES, open_reading
from sketchnet.errors import InputError, SketchnetError, StorageError
from sketchnet.storage import check_regular

# What the standard library raises on damaged archives; a gzip file with a bad checksum is an OSError without errno.
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, gzip.BadGzipFile)


def search_folders(name: str, folder: str | os.PathLike | None) -> list[Path]:
    """Where the files of data set `name` may be. A folder that the user names is the only one."""
    if folder is not None:
        return [Path(folder), Path(folder) / name]
    root = os.environ.get("SKETCHNET_DATA")
    return [*([Path(root) / name, Path(root)] if root else []), cache_folder(name)]


def cache_folder(name: str) -> Path:
    """Where downloads of data set `name` go."""
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "sketchnet" / name


def find(name: str, folders: list[Path], subfolders: tuple[str, ...] = ()) -> Path | None:
    """The first file or folder of that name, with or without the suffix of a compressed file."""
    for folder in folders:
        for place in (folder, *(folder / sub for sub in subfolders)):
            for suffix in ("", *SUFFIXES):
                path = place / (name + suffix)
                if path.exists():
                    return path
    return None


def find_layout(layout: tuple[str, ...], folders: list[Path], subfolders: tuple[str, ...]) -> dict[str, Path] | None:
    """The path of every name of a layout, or None if one is missing."""
    found = {}
    for name in layout:
        path = find(name, folders, subfolders)
        if path is None:
            return None
        found[name] = path
    return found


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Errors of the system and of damaged archives as ours, with the name of the file or folder."""
    try:
        yield
    except _DAMAGE as error:
        raise InputError(f"{path} is damaged or incomplete: {error}") from error
    except OSError as error:
        if isinstance(error, SketchnetError):
            raise
        # bz2 and gzip report damage as an OSError that no system call returned.
        if error.errno is None:
            raise InputError(f"{path} is damaged: {error}") from error
        raise StorageError(f"{path} cannot be read: {error.strerror}") from error


@contextmanager
def open_file(path: Path) -> Iterator[BinaryIO]:
    """The file's bytes, uncompressed."""
    # Buffered, because a plain file comes without: reading it by lines would be a system call a byte.
    with reading(path):
        check_regular(path)
        with io.BufferedReader(open_reading(path)) as file:
            yield file


def read_bytes(path: Path) -> bytes:
    """All of the file's bytes, uncompressed."""
    with open_file(path) as file:
        return file.read()


def members(archive: Path, wanted: Callable[[tuple[str, ...]], bool]) -> Iterator[tuple[tuple[str, ...], bytes]]:
    """The wanted plain files of a tar archive in their order, as (parts of the name, content).

    Nothing is unpacked to disk, so a name that points elsewhere does no harm.
    """
    with reading(archive):
        check_regular(archive)
        with tarfile.open(archive) as tar:
            for member in tar:
                parts = tuple(part for part in member.name.split("/") if part not in ("", "."))
                if member.isfile() and parts and wanted(parts):
                    with cast(BinaryIO, tar.extractfile(member)) as file:  # None is for members that are no files
                        yield parts, file.read()
