"""Kernels for CUDA devices, compiled by Triton: products of CSR rows with matrices that are drawn on the fly.

They take torch tensors on the device: offsets int64, ids int32 or int64, values float32, results float32 or bfloat16,
and like the others a slice of a larger matrix, whose offsets count from indptr[0]. Ask `kernels.backend("gpu")` for
them: it says what is missing on a machine that cannot run them.
"""

from sketchnet.kernels.gpu.batch_norm import batch_norm, batch_norm_backward
from sketchnet.kernels.gpu.hadamard import hadamard_sparse
from sketchnet.kernels.gpu.learning import (
    adam_all,
    adam_rows,
    relu_dropout,
    relu_dropout_backward,
    sketch_backward,
    sketch_forward,
)
from sketchnet.kernels.gpu.moments import moments, normalise
from sketchnet.kernels.gpu.multiply import count_sketch, multiply_normals, multiply_signs, multiply_skips
