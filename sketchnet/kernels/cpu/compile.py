"""How kernels are compiled, said once."""

from functools import partial

from numba import njit, types
from numba.extending import intrinsic

# The on-disk cache makes the second process start fast. `nogil` lets threads.py run pieces side by side. Division by
# zero follows IEEE, as in NumPy. No fast-math: reordered sums would make results depend on the slicing.
kernel = partial(njit, cache=True, nogil=True, error_model="numpy")
inlined = partial(njit, inline="always")


@intrinsic
def popcount(typing_context, x):
    """Number of one bits, as one machine instruction where there is one."""

    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return (x(x), codegen) if isinstance(x, types.Integer) else None
