"""Processes that tests start find the package."""

import os
from pathlib import Path

os.environ["PYTHONPATH"] = str(Path(__file__).parents[1])
