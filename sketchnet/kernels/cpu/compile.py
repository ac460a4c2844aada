"""How kernels are compiled, said once."""

import hashlib
from pathlib import Path

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

_PACKAGE = Path(__file__).parents[2]
_SOURCES = [_PACKAGE / "random.py", *sorted(Path(__file__).parent.glob("*.py"))]
_STAMP = hashlib.sha256(b"".join(path.read_bytes() for path in _SOURCES)).hexdigest()


def kernel(function):
    """Compile a kernel.

    The on-disk cache makes the second process start fast. `nogil` lets threads.py run pieces side by side. Division by
    zero follows IEEE, as in NumPy. No fast-math: reordered sums would make results depend on the slicing.
    """
    compiled = njit(function, cache=True, nogil=True, error_model="numpy")
    # Numba takes a cached kernel for fresh while its own file is unchanged, though what it calls may have changed: an
    # old generator would go on drawing old matrices. So the stamp covers all sources that kernels are made of.
    compiled._cache._cache_file._source_stamp = _STAMP
    return compiled


def inlined(function):
    """Compile a function that kernels call, into each of them."""
    return njit(function, inline="always")


@intrinsic
def popcount(typing_context, x):
    """Number of one bits, as one machine instruction where there is one."""

    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return (x(x), codegen) if isinstance(x, types.Integer) else None


@intrinsic
def high_product(typing_context, x, y):
    """floor(x * y / 2**64) of unsigned 64-bit numbers, as one machine instruction where there is one."""

    def codegen(context, builder, signature, args):
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), codegen


@intrinsic
def prefetch(typing_context, array, row):
    """Ask for a row of a C-contiguous two-dimensional array that will be written soon."""

    def codegen(context, builder, signature, args):
        view = context.make_array(signature.args[0])(context, builder, args[0])
        length = builder.extract_value(view.shape, 1)
        bytes_, i32 = ir.IntType(8).as_pointer(), ir.IntType(32)
        hint = ir.FunctionType(ir.VoidType(), [bytes_, i32, i32, i32])
        call = builder.module.declare_intrinsic("llvm.prefetch", [bytes_], hint)
        place = builder.bitcast(builder.gep(view.data, [builder.mul(args[1], length)]), bytes_)
        builder.call(call, [place, *(ir.Constant(i32, x) for x in (1, 3, 1))])  # to write, keep, data
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen
