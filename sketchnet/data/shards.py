"""Sparse data on disk: folders of plain .npy arrays that memory-map, each described by a manifest.

A data set is a folder of shards, `shard-00000`, `shard-00001`, ..., and `dataset.json`, which is written last: a folder
without it is unfinished. A shard is a folder with `manifest.json` and one .npy file per array of a CsrBatch. It is
written under another name, synced and renamed, so that it is whole or absent.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Collection
from pathlib import Path

import numpy as np

from sketchnet.data.csr import CsrBatch
from sketchnet.errors import InputError
from sketchnet.storage import replacing, write_json, writing

FORMAT_VERSION = 1
_ARRAYS = ("indptr", "indices", "values", "labels", "label_indptr", "groups")
_MANIFEST = "manifest.json"
_PIECE = 1 << 24  # bytes read at a time for checksums


def shard_name(number: int) -> str:
    return f"shard-{number:05d}"


def write_shard(folder: Path, number: int, batch: CsrBatch, state: dict) -> None:
    """Write one shard of a data set; `state` is whatever its writer needs to go on after it."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / shard_name(number)) as new:
        new.mkdir()
        files = {}
        for name in _ARRAYS:
            array = getattr(batch, name)
            if array is not None:
                files[name] = _write_array(new / f"{name}.npy", _stored(name, array, batch))
        manifest = {
            "format": FORMAT_VERSION,
            "shape": [batch.n_rows, batch.n_columns],
            "entries": int(batch.indptr[-1]) - int(batch.indptr[0]),
            "labels": _label_kind(files),
            "files": files,
            "state": state,
        }
        write_json(new / _MANIFEST, manifest)
    _sync_folder(folder)


def is_shard(path: Path) -> bool:
    """Whether a folder has the name and the content of a shard, whole or being written, and nothing else."""
    if re.fullmatch(r"\.shard-\d{5,}\.sketchnet", path.name):
        return True
    names = {_MANIFEST, *(f"{name}.npy" for name in _ARRAYS)}
    is_folder = re.fullmatch(r"shard-\d{5,}", path.name) and path.is_dir() and not path.is_symlink()
    return bool(is_folder) and {entry.name for entry in path.iterdir()} <= names


def finish(folder: Path, description: dict) -> None:
    """Mark a folder of shards as a whole data set."""
    shards = [read_manifest(path) for path in shard_folders(folder)]
    content = {
        "format": FORMAT_VERSION,
        "rows": sum(manifest["shape"][0] for manifest in shards),
        "columns": max((manifest["shape"][1] for manifest in shards), default=0),
        "entries": sum(manifest["entries"] for manifest in shards),
        "shards": len(shards),
    }
    write_json(folder / "dataset.json", {**content, **description})


def shard_folders(folder: Path) -> list[Path]:
    """The shards of a data set in order; a gap in their numbers is an error."""
    paths = sorted(folder.glob("shard-*"))
    for number, path in enumerate(paths):
        if path.name != shard_name(number):
            raise InputError(f"{folder} has {path.name} where {shard_name(number)} should be")
    return paths


def read_manifest(path: Path) -> dict:
    """A shard's manifest, if this version can read it."""
    manifest = read_description(path / _MANIFEST)
    try:
        n_rows, n_columns = (int(x) for x in manifest["shape"])
        known = set(manifest["files"]) <= set(_ARRAYS) and {"indptr", "indices", "values"} <= set(manifest["files"])
        known &= all({"length", "dtype", "crc32"} <= set(file) for file in manifest["files"].values())
        if n_rows < 0 or n_columns < 0 or not known or int(manifest["entries"]) < 0:
            raise ValueError
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError(f"{path / _MANIFEST} is damaged") from None
    return manifest


def read_description(path: Path) -> dict:
    """A JSON file of this format: of this version, or an error that says so."""
    try:
        content = json.loads(path.read_text())
        version = content["format"]
    except FileNotFoundError:
        raise InputError(f"there is no {path}: {path.parent} is not a data set, or its ingest is unfinished") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path} is damaged") from None
    if version != FORMAT_VERSION:
        raise InputError(f"{path} has format version {version}; this sketchnet reads version {FORMAT_VERSION}")
    return content


def map_shard(path: Path, verify: bool) -> CsrBatch:
    """A shard's arrays, mapped read-only; with `verify`, every byte is checked against the manifest."""
    manifest = read_manifest(path)
    arrays: dict[str, np.ndarray] = {}
    for name, expected in manifest["files"].items():
        file = path / f"{name}.npy"
        if not file.exists():
            raise InputError(f"there is no {file}, which the manifest names")
        if verify and _checksum(file) != expected["crc32"]:
            raise InputError(f"{file} is not what was written: its checksum differs from the manifest's")
        try:
            arrays[name] = np.load(file, mmap_mode="r" if expected["length"] else None, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise InputError(f"{file} cannot be read: {error}") from None
        if arrays[name].shape != (expected["length"],) or arrays[name].dtype.str != expected["dtype"]:
            found = f"{arrays[name].shape} of {arrays[name].dtype.str}"
            raise InputError(f"{file} holds {found}, the manifest says ({expected['length']},) of {expected['dtype']}")
    found = _label_kind(arrays)
    said = manifest.get("labels", found)  # which older manifests do not say
    if said != found:
        raise InputError(f"{path / _MANIFEST} says labels are {said!r}; by its files they are {found!r}")
    n_rows, n_columns = manifest["shape"]
    per_row = [name for name in ("labels", "groups") if name in arrays and f"{name[:-1]}_indptr" not in arrays]
    fits = (
        len(arrays["indptr"]) == n_rows + 1
        and len(arrays["indices"]) == len(arrays["values"]) == int(arrays["indptr"][-1]) == manifest["entries"]
        and all(len(arrays[name]) == n_rows for name in per_row)
        and ("label_indptr" not in arrays or len(arrays["labels"]) == int(arrays["label_indptr"][-1]))
    )
    if not fits:
        raise InputError(f"{path}: the arrays do not fit each other")
    return CsrBatch(n_columns=n_columns, **arrays)


def _label_kind(arrays: Collection[str]) -> str:
    """How many labels a row has, by the names of a shard's arrays."""
    return "none" if "labels" not in arrays else "multi" if "label_indptr" in arrays else "single"


def _stored(name: str, array: np.ndarray, batch: CsrBatch) -> np.ndarray:
    """As it is stored: offsets from zero, ids as narrow as they can be."""
    if name.endswith("indptr"):
        return array.astype(np.int64) - int(array[0])
    if name == "indices":
        return array.astype(np.int32 if batch.n_columns <= 2**31 else np.int64, copy=False)
    return array


def _write_array(path: Path, array: np.ndarray) -> dict:
    with open(path, "wb") as file:
        array = np.ascontiguousarray(array)
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
        file.write(array)  # NumPy's own writing tells of a full disk without the system's reason
        file.flush()
        os.fsync(file.fileno())
    return {"length": len(array), "dtype": array.dtype.str, "crc32": _checksum(path)}


def _checksum(path: Path) -> int:
    crc = 0
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            crc = zlib.crc32(piece, crc)
    return crc


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
