"""Processes that tests start find the package, and kernels are cached in a folder that is named after the sources.

Numba looks only at the file of a kernel, not at those it calls, to tell whether a cached one is stale.
"""

import hashlib
import os
import tempfile
from pathlib import Path

_root = Path(__file__).parents[1]
os.environ["PYTHONPATH"] = str(_root)
_sources = sorted((_root / "sketchnet").rglob("*.py"))
_digest = hashlib.sha256(b"".join(path.read_bytes() for path in _sources)).hexdigest()[:16]
os.environ["NUMBA_CACHE_DIR"] = str(Path(tempfile.gettempdir()) / f"sketchnet-numba-{os.getuid()}-{_digest}")
