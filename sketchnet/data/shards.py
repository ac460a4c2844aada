"""Sparse data on disk: folders of plain .npy arrays that memory-map, each described by a manifest.

A data set is a folder of shards, `shard-00000`, `shard-00001`, ..., and `dataset.json`, which is written last: a folder
without it is unfinished. A shard is a folder with `manifest.json` and one .npy file per array of a CsrBatch. It is
written under another name, synced and renamed, so that it is whole or absent.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Collection
from pathlib import Path

import numpy as np

from sketchnet.data.arrays import map_npy
from sketchnet.data.csr import CsrBatch, first_fall
from sketchnet.errors import InputError
from sketchnet.storage import check_regular, make_folder, read_json, replacing, write_json

FORMAT_VERSION = 1
_ARRAYS = ("indptr", "indices", "values", "labels", "label_indptr", "groups")
_MANIFEST = "manifest.json"
_KINDS = {"indptr": "i", "indices": "i", "label_indptr": "i", "groups": "i"}  # of their dtypes; others are numbers
_PIECE = 1 << 24  # bytes read at a time for checksums


def shard_name(number: int) -> str:
    return f"shard-{number:05d}"


def write_shard(folder: Path, number: int, batch: CsrBatch, state: dict) -> None:
    """Write one shard of a data set; `state` is whatever its writer needs to go on after it."""
    make_folder(folder)
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
        files = manifest["files"]
        known = set(files) <= set(_ARRAYS) and {"indptr", "indices", "values"} <= set(files)
        sizes = [*manifest["shape"], manifest["entries"], *(file["length"] for file in files.values())]
        dtypes = all(np.dtype(file["dtype"]).kind in _KINDS.get(name, "biuf") for name, file in files.items())
        if not known or not dtypes or len(manifest["shape"]) != 2 or not all(map(_is_size, sizes)):
            raise ValueError
        if not all(type(file["crc32"]) is int for file in files.values()):
            raise ValueError
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError(f"{path / _MANIFEST} is damaged") from None
    return manifest


def _is_size(n: object) -> bool:
    return type(n) is int and 0 <= n <= 2**63


def read_description(path: Path) -> dict:
    """A JSON file of this format: of this version, or an error that says so."""
    try:
        content = read_json(path)
        version = content["format"]
    except FileNotFoundError:
        raise InputError(f"there is no {path}: {path.parent} is not a data set, or its ingest is unfinished") from None
    except (KeyError, TypeError):
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
        check_regular(file)
        if verify and _checksum(file) != expected["crc32"]:
            raise InputError(f"{file} is not what was written: its checksum differs from the manifest's")
        array = arrays[name] = map_npy(file)
        if array.shape != (expected["length"],) or array.dtype.str != expected["dtype"]:
            said = f"({expected['length']},) of {expected['dtype']}"
            raise InputError(f"{file} holds {array.shape} of {array.dtype.str}, the manifest says {said}")
        if not array.dtype.isnative:  # kernels read the machine's byte order alone
            arrays[name] = array.astype(array.dtype.newbyteorder("="))
    kind = _label_kind(arrays)
    said = manifest.get("labels", kind)  # which older manifests do not say
    if said != kind:
        raise InputError(f"{path / _MANIFEST} says labels are {said!r}; by its files they are {kind!r}")
    n_rows, n_columns = manifest["shape"]
    ends = {"indptr": manifest["entries"], "label_indptr": len(arrays.get("labels", ()))}  # of offsets
    ends = {name: end for name, end in ends.items() if name in arrays}
    per_row = [name for name in ("labels", "groups") if name in arrays and f"{name[:-1]}_indptr" not in arrays]
    fits = (
        len(arrays["indices"]) == len(arrays["values"]) == manifest["entries"]
        and all(len(arrays[name]) == n_rows + 1 for name in ends)
        and all((int(arrays[name][0]), int(arrays[name][-1])) == (0, end) for name, end in ends.items())
        and all(len(arrays[name]) == n_rows for name in per_row)
    )
    if not fits:
        raise InputError(f"{path}: the arrays do not fit each other")
    for name in ends if verify else ():
        row = first_fall(arrays[name])
        if row >= 0:
            raise InputError(f"{path / name}.npy: row {row} ends before it begins; offsets must not fall")
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
        file.write(array.data)  # NumPy's own writing tells of a full disk without the system's reason
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
