"""What is read with NumPy, scipy and the standard library alone: what answers are compared with."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from scipy import sparse

from tests.attack.world import COLUMNS


def csr(values, indices, indptr, shape) -> sparse.csr_matrix | None:
    """The matrix, or None where scipy says that these are none."""
    try:
        real = all(
            x.ndim == 1 and x.dtype.kind in kinds for x, kinds in ((values, "biuf"), (indices, "iu"), (indptr, "iu"))
        )
        if not real or len(indptr) != shape[0] + 1 or int(indptr[-1]) != len(indices):
            return None
        matrix = sparse.csr_matrix((values, indices.astype(np.int64), indptr.astype(np.int64)), shape=shape)
        matrix.check_format(full_check=True)
        return matrix
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def read_shards(folder: Path) -> sparse.csr_matrix | None:
    """The rows of a data set, or None where they are not such."""
    parts = []
    try:
        for shard in sorted(folder.glob("shard-*")):
            shape = json.loads((shard / "manifest.json").read_text())["shape"]
            arrays = [np.load(shard / f"{name}.npy") for name in ("values", "indices", "indptr")]
            parts.append(csr(*arrays, shape))
    except (OSError, ValueError, KeyError, TypeError, EOFError):
        return None
    if not parts or any(part is None for part in parts):
        return None
    width = json.loads((folder / "dataset.json").read_text())["columns"]
    parts = [sparse.csr_matrix((p.data, p.indices, p.indptr), shape=(p.shape[0], width)) for p in parts]
    return sparse.vstack(parts, "csr")


def read_labels(folder: Path) -> np.ndarray:
    """The numbers of a data set's labels, shard by shard."""
    files = [shard / "labels.npy" for shard in sorted(folder.glob("shard-*"))]
    return np.concatenate([np.load(file) if file.exists() else np.empty(0) for file in files])


def read_npz(path: Path) -> sparse.csr_matrix | None:
    """The matrix in an .npz file, or None where there is none that scipy takes."""
    try:
        with np.load(path) as file:
            layout = file["format"].item()
            shape = file["shape"]
            arrays = [file[name] for name in ("data", "indices", "indptr")]
    except Exception:  # it fails in many ways on damaged files
        return None
    if layout not in (b"csr", "csr") or shape.shape != (2,) or shape.dtype.kind not in "iu":
        return None
    return csr(*arrays, shape.tolist())


def project_plainly(rows: sparse.csr_matrix, scene) -> bool:
    """Whether out.npy has the rows, each multiplied by the matrix that `--scheme gaussian -k 4` stands for."""
    found = np.load(scene.here / "out.npy")
    if rows.shape[1] != COLUMNS:  # of another width, so another matrix
        return found.shape == (rows.shape[0], 4)
    with np.errstate(all="ignore"):
        wanted = rows.astype(np.float64) @ scene.world.gaussian.astype(np.float64)
        scale = abs(rows.astype(np.float64)) @ abs(scene.world.gaussian.astype(np.float64))
        near = abs(found - wanted) <= 1e-5 * scale + 1e-30
    return found.shape == wanted.shape and bool(np.all(near | ~np.isfinite(wanted.astype(np.float32))))
