"""A small dense network: batch norm, hidden layers of rectified units with dropout, and a linear output.

In NumPy, because its steps are too small for torch, whose overhead and dropout would take two thirds of the time. All
weights lie in one array, so that one pass makes a step of AdamW.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache

import numpy as np

from sketchnet.kernels.cpu import mlp as kernels

_EPSILON, _MOMENTUM = np.float32(1e-5), np.float32(0.1)  # of batch norm, as usual
_LEAST = np.float32(-np.inf)


@cache
def _blas():
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


_lock, _limit, _users = threading.Lock(), ExitStack(), 0


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS use one thread meanwhile: small products gain nothing from more, and sums might round otherwise.

    The limit is that of the whole process, so the last of those who ask for it at the same time lifts it.
    """
    global _users
    with _lock:
        if _users == 0:
            _limit.enter_context(_blas().limit(limits=1, user_api="blas"))
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limit.close()


class MLP:
    """widths[0] inputs, hidden layers, widths[-1] outputs.

    Batch norm is on the inputs, or with `deep` on each hidden layer's products. `drop` is the share of hidden units
    that a step leaves out, `drop_input` that of inputs, `decay` AdamW's.
    """

    def __init__(
        self,
        widths: list[int],
        deep: bool = False,
        drop: float = 0.0,
        drop_input: float = 0.0,
        decay: float = 0.0,
        seed: int = 0,
    ):
        self._decay, self._steps = decay, 0
        self._rng = np.random.Generator(np.random.SFC64(seed))
        self._layers: list = [] if deep else [_Norm(widths[0])]
        if drop_input:
            self._layers.append(_Dropout(drop_input, _LEAST, self._rng))
        for n_in, n_out in zip(widths[:-2], widths[1:-1]):
            self._layers += [_Linear(n_in, n_out), *([_Norm(n_out)] if deep else [])]
            self._layers.append(_Dropout(drop, np.float32(0), self._rng))
        self._layers.append(_Linear(*widths[-2:]))
        sizes = [layer.size for layer in self._layers]
        self.weights = np.zeros(sum(sizes), np.float32)
        self._slopes, self._moments = np.zeros_like(self.weights), np.zeros((2, sum(sizes)), np.float32)
        for layer, size, end in zip(self._layers, sizes, np.cumsum(sizes)):
            layer.begin(self.weights[end - size : end], self._slopes[end - size : end], self._rng)

    @property
    def moments(self) -> list[np.ndarray]:
        """The running mean and variance of each batch norm, in place."""
        return [layer.moments for layer in self._layers if isinstance(layer, _Norm)]

    @property
    def first(self) -> np.ndarray:
        """Weights of the first layer, (inputs, units), in place."""
        return next(layer.weights for layer in self._layers if isinstance(layer, _Linear))

    @property
    def bias(self) -> np.ndarray:
        """The outputs' constants, in place."""
        return self._layers[-1].bias

    def forward(self, x: np.ndarray, training: bool = False) -> np.ndarray:
        for layer in self._layers:
            x = layer.forward(x, training)
        return x

    def backward(self, slopes: np.ndarray, inputs: bool = True) -> np.ndarray:
        """Return the slopes by the inputs of the last forward call, or without `inputs` nothing of use."""
        for layer in reversed(self._layers[1:]):
            slopes = layer.backward(slopes, True)
        return self._layers[0].backward(slopes, inputs)

    def step(self, rate: float) -> None:
        self._steps += 1
        kernels.step_adamw(self.weights, self._slopes, self._moments, rate, self._decay, self._steps)


class _Linear:
    def __init__(self, n_in: int, n_out: int):
        self._shape, self.size = (n_in, n_out), (n_in + 1) * n_out

    def begin(self, weights: np.ndarray, slopes: np.ndarray, rng: np.random.Generator) -> None:
        n_in, n_out = self._shape
        self.weights, self.bias = weights[:-n_out].reshape(self._shape), weights[-n_out:]
        self._slopes, self._bias_slopes = slopes[:-n_out].reshape(self._shape), slopes[-n_out:]
        bound = np.float32(n_in**-0.5)
        self.weights[:] = (rng.random(self._shape, np.float32) * 2 - 1) * bound

    def forward(self, x: np.ndarray, training: bool) -> np.ndarray:
        self._x = x
        out = x @ self.weights
        out += self.bias
        return out

    def backward(self, slopes: np.ndarray, inputs: bool) -> np.ndarray:
        np.matmul(self._x.T, slopes, out=self._slopes)
        slopes.sum(axis=0, out=self._bias_slopes)
        return slopes @ self.weights.T if inputs else slopes


class _Norm:
    def __init__(self, width: int):
        self.size = 2 * width
        self.moments = np.stack([np.zeros(width, np.float32), np.ones(width, np.float32)])

    def begin(self, weights: np.ndarray, slopes: np.ndarray, rng: np.random.Generator) -> None:
        self._gain, self._shift = np.split(weights, 2)
        self._gain_slopes, self._shift_slopes = np.split(slopes, 2)
        self._gain[:] = 1

    def forward(self, x: np.ndarray, training: bool) -> np.ndarray:
        self._of_batch = training and len(x) > 1  # a single row has no variance
        moments = self.moments
        if self._of_batch:
            moments = np.empty_like(self.moments)
            kernels.measure_columns(x, *moments)
            self.moments += _MOMENTUM * (moments - self.moments)
        inverse, scaled, out = 1 / np.sqrt(moments[1] + _EPSILON), np.empty_like(x), np.empty_like(x)
        kernels.normalise(x, moments[0], inverse, self._gain, self._shift, scaled, out)
        self._inverse, self._scaled = inverse, scaled  # of this call's, whatever other threads do meanwhile
        return out

    def backward(self, slopes: np.ndarray, inputs: bool) -> np.ndarray:
        out = np.empty_like(slopes)
        kernels.normalise_back(
            slopes,
            self._scaled,
            self._inverse,
            self._gain,
            self._gain_slopes,
            self._shift_slopes,
            self._of_batch,
            out,
        )
        return out


class _Dropout:
    """Of rectified units, whose least value is 0, or of inputs, which have none."""

    size = 0

    def __init__(self, share: float, least: np.float32, rng: np.random.Generator):
        self._limit, self._least, self._rng = np.uint32(share * 2**32), least, rng

    def begin(self, weights: np.ndarray, slopes: np.ndarray, rng: np.random.Generator) -> None:
        pass

    def forward(self, x: np.ndarray, training: bool) -> np.ndarray:
        limit = self._limit if training else np.uint32(0)
        if limit or self._least == 0:
            kernels.drop(x, self._least, limit, self._rng.integers(2**32, dtype=np.uint32) if limit else np.uint32(0))
        self._out, self._grow = x, np.float32(1 / (1 - limit / 2**32))
        return x

    def backward(self, slopes: np.ndarray, inputs: bool) -> np.ndarray:
        if self._least == 0:
            kernels.rectify_back(slopes, self._out, self._grow)
        return slopes  # by inputs nobody asks: they are dropped in training only
