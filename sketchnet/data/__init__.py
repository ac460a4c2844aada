"""READ: from files and arrays to checked sparse rows."""

from sketchnet.data.csr import CsrBatch
from sketchnet.data.synthetic import make_synthetic

__all__ = ["CsrBatch", "make_synthetic"]
