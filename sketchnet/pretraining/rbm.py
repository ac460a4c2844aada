"""The restricted Boltzmann machine: two layers of units that depend on each other only."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from sketchnet.checks import check_choice, check_integer
from sketchnet.data.csr import CsrBatch, as_csr, without_repeats
from sketchnet.errors import InputError
from sketchnet.kernels import backend
from sketchnet.nn.numbering import add_rows
from sketchnet.nn.products import add_product, affine
from sketchnet.nn.rbm_init import RBM_SCHEMES, init_rbm_
from sketchnet.pretraining.units import HIDDEN, UNITS, VISIBLE

_SPARSE_BELOW = 1 / 32  # share of non-zeros from which on BLAS on dense rows is faster than our kernels


@dataclass(frozen=True)
class RBMConfig:
    """All that determines an RBM before training. The kinds of units are those of `units.py`; init: the scheme of
    random projection that the weights start as (`nn/rbm_init.py`), None for small normal ones.
    """

    n_visible: int
    n_hidden: int
    visible: str = "binary"
    hidden: str = "binary"
    seed: int = 0
    init: str | None = None

    def __post_init__(self) -> None:
        for name in ("n_visible", "n_hidden"):
            object.__setattr__(self, name, check_integer(name, getattr(self, name), 1, 2**31))
        object.__setattr__(self, "seed", check_integer("seed", self.seed, 0, 2**64 - 1))
        check_choice("visible", self.visible, VISIBLE)
        check_choice("hidden", self.hidden, HIDDEN)
        if self.init is not None:
            check_choice("init", self.init, RBM_SCHEMES)

    def to_dict(self) -> dict:
        return dataclasses.asdict(self)


class RBM(nn.Module):
    """Visible units v and hidden units h with weights W, of shape (n_hidden, n_visible) as in `nn.Linear`.

    Given v, hidden unit j has the input hidden_bias[j] + (W v)[j]; given h, visible unit i has visible_bias[i] +
    (W' h)[i]. What a unit does with its input is the law of its kind. Where neither side is relu, the two conditional
    laws belong to one joint law, p(v, h) proportional to exp(-E) with the energy

        E = V(v) - h' W v - c' h  [+ |h|**2 / 2 for gaussian h],  V = -b' v,  or |v - b|**2 / 2 for gaussian v

    (for poisson, over documents of the same length, as sequences of words). In the constrained Poisson model hidden
    biases do not grow with the length of the document.

    Weights start as N(0, 0.01**2), or as a random projection's, and biases as zero; training then sets the visible
    biases by the data's means.
    Rows are tensors (n, n_visible) on the RBM's device, or CsrBatch. Nothing here is learnt by backpropagation, so
    the parameters ask for no gradients.
    """

    def __init__(self, config: RBMConfig):
        super().__init__()
        self.config = config
        self.history: list[dict] = []
        # In memory the weights of a visible unit lie together: sparse rows read and write whole lines of them.
        weight = torch.empty(config.n_visible, config.n_hidden).t()
        self.weight = nn.Parameter(init_rbm_(weight, config.init, config.seed), requires_grad=False)
        self.hidden_bias = nn.Parameter(torch.zeros(config.n_hidden), requires_grad=False)
        self.visible_bias = nn.Parameter(torch.zeros(config.n_visible), requires_grad=False)
        self._visible, self._hidden = UNITS[config.visible], UNITS[config.hidden]

    @property
    def device(self) -> torch.device:
        return self.weight.device

    # -- the rows

    def read(self, v: torch.Tensor | CsrBatch) -> torch.Tensor | CsrBatch:
        """Rows as the other methods take them: dense on the device, or, if few are non-zero, checked sparse rows."""
        width = self.config.n_visible
        if isinstance(v, CsrBatch):
            if v.n_columns > width:
                raise InputError(f"rows have {v.n_columns} columns, but there are {width} visible units")
            batch = as_csr(dataclasses.replace(v, n_columns=width), width)  # the last columns happen to be empty
            if self.device.type == "cpu" and batch.n_entries < _SPARSE_BELOW * batch.n_rows * width:
                kind = np.float64 if self.weight.dtype == torch.float64 else np.float32
                indptr = batch.indptr - batch.indptr[0]
                values = batch.values.astype(kind, copy=False)[: indptr[-1]]
                return CsrBatch(indptr, batch.indices[: indptr[-1]], values, width)
            return add_rows(torch.zeros(batch.n_rows, width, dtype=self.weight.dtype, device=self.device), batch)
        if v.ndim != 2 or v.shape[1] != width:
            raise InputError(f"rows have the shape {tuple(v.shape)}, but there are {width} visible units")
        return v.to(self.weight.device, self.weight.dtype)

    def dense(self, v: torch.Tensor | CsrBatch) -> torch.Tensor:
        """The rows as a dense tensor."""
        v = self.read(v)
        return add_rows(self.weight.new_zeros(v.n_rows, v.n_columns), v) if isinstance(v, CsrBatch) else v

    def check_visible(self, v: torch.Tensor | CsrBatch) -> None:
        """Raise if rows hold values that the visible units cannot have. It waits for the device."""
        v = self.read(v)
        self._visible.check(torch.as_tensor(without_repeats(v).values) if isinstance(v, CsrBatch) else v)

    def length(self, v: torch.Tensor | CsrBatch) -> torch.Tensor | None:
        """Words in each document, for poisson units."""
        return self._length(self.read(v))

    def _length(self, v: torch.Tensor | CsrBatch) -> torch.Tensor | None:
        if self.config.visible != "poisson":
            return None
        if isinstance(v, torch.Tensor):
            return v.sum(1)
        owner = np.repeat(np.arange(v.n_rows), np.diff(v.indptr))
        return torch.from_numpy(np.bincount(owner, v.values, v.n_rows)).to(self.weight.dtype)

    # -- the conditional laws

    def hidden_input(self, v: torch.Tensor | CsrBatch) -> torch.Tensor:
        """c + W v."""
        return self._hidden_input(self.read(v))

    def _hidden_input(self, v: torch.Tensor | CsrBatch) -> torch.Tensor:
        if isinstance(v, torch.Tensor):
            return affine(v, self.weight.t(), self.hidden_bias)
        out = torch.empty(v.n_rows, self.config.n_hidden, dtype=self.weight.dtype)
        backend().multiply_table(*v.arrays, self.weight.t().numpy(), out.numpy())
        return out.add_(self.hidden_bias)

    def visible_input(self, h: torch.Tensor) -> torch.Tensor:
        """b + W' h."""
        return affine(h, self.weight, self.visible_bias)

    def hidden_mean(self, v: torch.Tensor | CsrBatch) -> torch.Tensor:
        """What the hidden units pass on to a layer above: sigmoid(x), x, or max(0, x)."""
        return self._hidden.mean(self.hidden_input(v))

    def sample_hidden(self, v: torch.Tensor | CsrBatch, generator: torch.Generator) -> torch.Tensor:
        x = self.hidden_input(v)
        return self._hidden.sample(x, self._hidden.expected(x), generator)

    def visible_mean(self, h: torch.Tensor, length: torch.Tensor | None = None) -> torch.Tensor:
        """The reconstruction without noise. Poisson units need the documents' lengths, which it keeps."""
        return self._visible.mean(self.visible_input(h), self._given(length))

    def sample_visible(self, h: torch.Tensor, generator: torch.Generator, length: torch.Tensor | None = None):
        x, length = self.visible_input(h), self._given(length)
        return self._visible.sample(x, self._visible.expected(x, length), generator, length)

    def _given(self, length):
        if length is None and self.config.visible == "poisson":
            raise InputError("poisson units need the documents' lengths: give length, a number of words for each row")
        return length

    def free_energy(self, v: torch.Tensor | CsrBatch) -> torch.Tensor:
        """F(v) = -log of the sum (integral) of exp(-E(v, h)) over h, without constants, for each row.

        For poisson units exp(-F) is the weight of a sequence of words; compare documents of the same length only.
        """
        if not self.has_free_energy:
            kinds = f"{self.config.visible} visible and {self.config.hidden} hidden units"
            raise InputError(f"there is no free energy for {kinds}; noisy rectified units have no energy")
        v = self.dense(v)
        return self._visible.free_energy(v, self.visible_bias) + self._hidden.free_energy_hidden(self._hidden_input(v))

    @property
    def has_free_energy(self) -> bool:
        return "relu" not in (self.config.visible, self.config.hidden)

    # -- learning

    def chain(self, v, steps: int, generator: torch.Generator, sample_visible: bool = True) -> Chain:
        """Gibbs sampling from rows: h given v, then `steps` times v given h and h given v.

        With `sample_visible=False` visible units are set to their means instead of being sampled. Where an expectation
        can stand for a sample at the end of the chain it does: the same gradient with less noise.
        """
        visible, hidden = self._visible, self._hidden
        v = self.read(v)
        length, x = self._length(v), self._hidden_input(v)
        first = expected = hidden.expected(x)
        error: Any = None
        for _ in range(steps):
            state = hidden.sample(x, expected, generator)
            x = self.visible_input(state)
            means = visible.expected(x, length) if sample_visible else visible.mean(x, length)
            sample = visible.sample(x, means, generator, length) if sample_visible else means
            if error is None:
                difference = self._difference(v, means)
                error = difference.square().sum()
            x = self._hidden_input(sample)
            expected = hidden.expected(x)
        if steps > 1:
            difference = self._difference(v, means)
        return Chain(v, first, sample, expected, difference, error)

    def _difference(self, v, means: torch.Tensor) -> torch.Tensor:
        return add_rows(-means, v) if isinstance(v, CsrBatch) else v - means


@dataclass(frozen=True)
class Chain:
    """Both ends of a Gibbs chain, and the sums over rows that learning takes from them."""

    data: torch.Tensor | CsrBatch
    data_hidden: torch.Tensor  # expected, given the data
    visible: torch.Tensor  # at the end
    hidden: torch.Tensor  # expected, given those
    difference: torch.Tensor  # data minus expected visible units at the end
    error: torch.Tensor  # squared, of the first reconstruction, summed over the rows

    def add_gradient(self, target: torch.Tensor, beta: float, alpha: float) -> torch.Tensor:
        """target = beta * target + alpha * (sum of h v' at the data minus the same at the end), in place."""
        by_column = target.t()
        add_product(by_column, self.visible.t(), self.hidden, beta, -alpha)
        if isinstance(self.data, CsrBatch):
            columns, local = backend().number_columns(self.data.indices)
            hidden = self.data_hidden.numpy()
            sums = backend().multiply_transposed(self.data.indptr, local, self.data.values, len(columns), hidden)
            by_column.index_add_(0, torch.from_numpy(columns), torch.from_numpy(sums), alpha=alpha)
        else:
            add_product(by_column, self.data.t(), self.data_hidden, 1.0, alpha)
        return target

    def hidden_gradient(self) -> torch.Tensor:
        return (self.data_hidden - self.hidden).sum(0)

    def visible_gradient(self) -> torch.Tensor:
        return self.difference.sum(0)
