"""READ: from files and arrays to checked sparse rows, on disk and in batches."""

from sketchnet.lazy import load_on_use

# Loaded on first use: a projection of a matrix in memory need not load readers of files.
_WHERE = {
    "BagOfWords": "bag_of_words",
    "CsrBatch": "csr",
    "Dataset": "datasets",
    "NgramHasher": "ngrams",
    "ShardSet": "shard_set",
    "Split": "datasets",
    "SvmlightReader": "svmlight",
    "Synthetic": "synthetic",
    "TableEncoder": "tables",
    "as_csr": "csr",
    "ingest": "ingestion",
    "iterate_batches": "batches",
    "list_datasets": "datasets",
    "load_dataset": "datasets",
    "make_synthetic": "synthetic",
    "open_shards": "shard_set",
    "read_svmlight": "svmlight",
    "sparse_rows": "csr",
    "write_svmlight": "svmlight_writing",
}

__all__ = [*_WHERE]
__getattr__, __dir__ = load_on_use(__name__, _WHERE)
