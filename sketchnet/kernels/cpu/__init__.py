"""Kernels for the processor, compiled by numba. Same functions as `kernels.reference`."""

from sketchnet.kernels.cpu.class_sums import add_by_class, chi_square, f_ratio
from sketchnet.kernels.cpu.columns import column_sums
from sketchnet.kernels.cpu.draw import draw_buckets, draw_normals, draw_signs, draw_skips, draw_states
from sketchnet.kernels.cpu.hadamard import fwht, hadamard_dense, hadamard_sparse
from sketchnet.kernels.cpu.learning import (
    adam_step,
    drop_entries,
    dropout_mask,
    gather,
    max_abs,
    momentum_read,
    momentum_step,
    multiply_table,
    multiply_transposed,
    number_columns,
    scatter_backward,
    scatter_forward,
    scatter_values,
)
from sketchnet.kernels.cpu.multiply import (
    compact_columns,
    count_sketch,
    first_bad_id,
    first_non_finite,
    multiply_panel,
    multiply_sparse,
)
from sketchnet.kernels.cpu.retrieval import add_gains, class_gains, set_gains, similarity_keys, sort_rows
from sketchnet.kernels.cpu.rows import gather_rows
from sketchnet.kernels.cpu.selection import (
    add_transposed,
    column_gain,
    count_columns,
    group_by_column,
    ordered,
)
