"""A table, and its features as plainly as can be: what the encoder is compared with."""

from hashlib import blake2b

import numpy as np

from sketchnet.data.csr import CsrBatch

TABLE = """colour,size,weight,class
red,10,0.5,cat
blue,0,,dog
,7,-1e3,cat
red,3,2,bird
"""


def write(tmp_path, content, name="a.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def joined(batches) -> CsrBatch:
    """One batch of several, by plain loops."""
    batches = list(batches)
    lengths = np.concatenate([np.diff(b.indptr) for b in batches])
    labels = None if batches[0].labels is None else np.concatenate([b.labels for b in batches])
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    ids, values = (np.concatenate([getattr(b, name) for b in batches]) for name in ("indices", "values"))
    return CsrBatch(indptr, ids, values, batches[0].n_columns, labels)


def same(a: CsrBatch, b: CsrBatch) -> bool:
    pairs = zip((*a.arrays, a.labels), (*b.arrays, b.labels))
    return a.n_columns == b.n_columns and all(x is y or (x.dtype == y.dtype and np.array_equal(x, y)) for x, y in pairs)


def rows_of(batch: CsrBatch) -> list[list[tuple[int, float]]]:
    spans = zip(batch.indptr[:-1], batch.indptr[1:])
    return [list(zip(batch.indices[a:b].tolist(), batch.values[a:b].tolist())) for a, b in spans]


def oracle(names, rows, kinds, feature_id):
    """Features of each row, cell by cell."""
    out = []
    for row in rows:
        entries = []
        for name, cell in zip(names, row):
            if cell == "" or name not in kinds:
                continue
            if kinds[name] == "numeric":
                value = float(np.float32(cell))
                if value != 0:
                    entries.append((feature_id(name), value))
            elif feature_id(f"{name}={cell}") is not None:
                entries.append((feature_id(f"{name}={cell}"), 1.0))
        out.append(entries)
    return out


def plain_hash(name, n_columns, seed=0):
    digest = blake2b(name.encode(), digest_size=8, salt=seed.to_bytes(8, "little")).digest()
    return int.from_bytes(digest, "little") % n_columns
