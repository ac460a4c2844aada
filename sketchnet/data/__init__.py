"""READ: from files and arrays to checked sparse rows."""

from sketchnet.data.batches import iterate_batches
from sketchnet.data.csr import CsrBatch
from sketchnet.data.ingest import ingest
from sketchnet.data.shard_set import ShardSet, open_shards
from sketchnet.data.synthetic import Synthetic, make_synthetic

__all__ = ["CsrBatch", "ShardSet", "Synthetic", "ingest", "iterate_batches", "make_synthetic", "open_shards"]
