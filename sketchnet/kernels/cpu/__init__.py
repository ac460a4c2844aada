"""Kernels for the processor, compiled by numba. Same functions as `kernels.reference`."""

from sketchnet.kernels.cpu.draw import draw_buckets, draw_normals, draw_signs, draw_skips
from sketchnet.kernels.cpu.hadamard import fwht, hadamard_dense, hadamard_sparse
from sketchnet.kernels.cpu.multiply import (
    compact_columns,
    count_sketch,
    first_bad_id,
    first_non_finite,
    multiply_panel,
    multiply_sparse,
)
from sketchnet.kernels.cpu.rows import gather_rows

__all__ = [
    "compact_columns",
    "count_sketch",
    "draw_buckets",
    "draw_normals",
    "draw_signs",
    "draw_skips",
    "first_bad_id",
    "first_non_finite",
    "fwht",
    "gather_rows",
    "hadamard_dense",
    "hadamard_sparse",
    "multiply_panel",
    "multiply_sparse",
]
