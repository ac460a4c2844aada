"""Processes that tests start find the package. Where there is no GPU, its kernels are interpreted."""

import os
from pathlib import Path

# Spinning threads of OpenMP keep each other from work where several processes share two cores.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ["PYTHONPATH"] = str(Path(__file__).parents[1])

from sketchnet.kernels.registry import gpu_missing  # loads torch, which reads the above

if gpu_missing():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # Triton reads it when it is first imported, whoever does that
