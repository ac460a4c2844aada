"""Processes that tests start find the package."""

import os
from pathlib import Path

# Spinning threads of OpenMP keep each other from work where several processes share two cores.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ["PYTHONPATH"] = str(Path(__file__).parents[1])
