"""The whole network: sparse rows, a projection, hidden layers."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from sketchnet import random
from sketchnet.checks import check_choice, check_flag, check_integer, check_options, check_real
from sketchnet.data.csr import CsrBatch, as_csr, as_ids, check_values, converted, to_csr, without_repeats
from sketchnet.errors import InputError
from sketchnet.kernels import backend
from sketchnet.nn.dropout import Dropout
from sketchnet.nn.fixed import FixedProjection
from sketchnet.nn.learnable import LearnableProjection
from sketchnet.nn.norm import BatchNorm
from sketchnet.nn.numbering import Numbered, drop_entries, number_type, uncompiled
from sketchnet.nn.products import Linear
from sketchnet.normalisation import Moments
from sketchnet.projection import SCHEMES

ACTIVATIONS = {"linear": nn.Identity, "relu": nn.ReLU, "leaky_relu": nn.LeakyReLU, "sigmoid": nn.Sigmoid}
NORMALISATIONS = ("batch", "standard", "max_abs", "none")


@dataclass(frozen=True)
class NetworkConfig:
    """All that determines a network before training.

    scheme, n_components, options: the projection in front. learn: whether it learns (count_sketch and li can), and
    `eta`, with which probability a batch updates it. normalise: of the projected rows, by "batch" norm, by the
    "standard" moments or the "max_abs" of the training rows (for projections that do not learn), or "none".
    scale_input: "max_abs" divides each column of the data by its largest absolute value. hashed_columns: a table of
    that many columns into which ids are hashed, so that every id below 2**63 is allowed. hidden_norm: batch norm in the
    hidden layers.
    feature_dropout: how many of a row's non-zeros are left out in training; dropout: how many hidden units.
    """

    n_columns: int
    n_outputs: int
    scheme: str = "count_sketch"
    n_components: int = 1000
    options: dict = field(default_factory=dict)
    learn: bool = True
    eta: float = 1.0
    hashed_columns: int | None = None
    normalise: str = "batch"
    scale_input: str = "none"
    activation: str = "linear"
    hidden: tuple[int, ...] = (1000, 1000)
    hidden_norm: bool = False
    dropout: float = 0.0
    feature_dropout: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        def fix(name: str, value) -> None:
            object.__setattr__(self, name, value)

        most = 2**63
        fix("n_columns", check_integer("n_columns", self.n_columns, 0, most))
        fix("n_outputs", check_integer("n_outputs", self.n_outputs, 1, 2**24))
        fix("n_components", check_integer("n_components", self.n_components, 1, 2**31))
        fix("seed", check_integer("seed", self.seed, 0, 2**64 - 1))
        fix("eta", check_real("eta", self.eta, most=1.0))
        for name in ("dropout", "feature_dropout"):
            fix(name, check_real(name, getattr(self, name), below=1.0))
        for name in ("learn", "hidden_norm"):
            fix(name, check_flag(name, getattr(self, name)))
        if self.hashed_columns is not None:
            fix("hashed_columns", check_integer("hashed_columns", self.hashed_columns, 1, 2**31))
        check_choice("scheme", self.scheme, SCHEMES)
        check_choice("normalise", self.normalise, NORMALISATIONS)
        check_choice("scale_input", self.scale_input, ("max_abs", "none"))
        check_choice("activation", self.activation, ACTIVATIONS)
        fix("options", check_options("options", self.options))
        if not isinstance(self.hidden, list | tuple):
            raise InputError(f"hidden={self.hidden!r} is not possible; it is a list of widths, such as [1000, 1000]")
        fix("hidden", tuple(check_integer("hidden", width, 1, 2**24) for width in self.hidden))
        if self.learn and self.normalise in ("standard", "max_abs"):
            raise InputError(f"normalise={self.normalise!r} is not for learnt projections; they have 'batch' or 'none'")

    def to_dict(self) -> dict:
        return {**dataclasses.asdict(self), "hidden": list(self.hidden)}

    @property
    def width(self) -> int:
        """Columns that the layers see."""
        return self.hashed_columns or self.n_columns


class SketchNetwork(nn.Module):
    """projection → normalisation → activation → hidden ReLU layers → outputs.

    `forward` takes a CsrBatch. Weights that belong to columns stay on the processor; all else follows `.to(device)`,
    projections that do not learn included (training may take all of it to a GPU meanwhile: `training/captured.py`).
    With a projection that does not learn, `project` can be called once and `forward_projected` from then on.
    """

    input_scale: torch.Tensor
    shift: torch.Tensor
    scale: torch.Tensor

    def __init__(self, config: NetworkConfig):
        super().__init__()
        self.config = config
        d, k = config.width, config.n_components
        self.projection: Any  # a LearnableProjection or a FixedProjection
        if config.learn:
            self.projection = LearnableProjection(
                d, k, config.scheme, seed=config.seed, eta=config.eta, **config.options
            )
        else:
            self.projection = FixedProjection(d, k, config.scheme, seed=config.seed, **config.options)
        if config.scale_input == "max_abs":
            self.register_buffer("input_scale", torch.ones(d))
        if config.normalise == "batch":
            self.norm = BatchNorm(k)
        else:
            self.register_buffer("shift", torch.zeros(k))
            self.register_buffer("scale", torch.ones(k))
        with torch.random.fork_rng(devices=[]):  # the same start for the same seed, whatever was drawn before
            torch.manual_seed(config.seed)
            self.layers = nn.Sequential(*_hidden(config))
        self._table_key = random.hash_key(config.seed, random.STREAM_TABLE)

    @property
    def _last(self) -> Linear:
        return cast(Linear, self.layers[-1])

    @property
    def device(self) -> torch.device:
        return self._last.weight.device

    @property
    def _dtype(self) -> np.dtype:
        return number_type(self._last.weight)

    def in_double(self) -> SketchNetwork:
        """The same network computing in float64; the weights of columns are shared, not copied."""
        twin = copy.copy(self)
        twin._modules, twin._buffers = dict(self._modules), dict(self._buffers)
        for name in ("layers", "norm"):
            if (module := self._modules.get(name)) is not None:
                twin._modules[name] = copy.deepcopy(module).double()
        for name in ("shift", "scale"):
            if (buffer := self._buffers.get(name)) is not None:
                twin._buffers[name] = buffer.double()
        return twin

    def to(self, *args, **kwargs) -> SketchNetwork:
        """Move the dense part, as `nn.Module.to`; weights that belong to columns stay where the sparse rows are."""
        for child in self.children():
            if not isinstance(child, LearnableProjection | FixedProjection):
                child.to(*args, **kwargs)
        if self.config.normalise != "batch":
            self.shift, self.scale = self.shift.to(*args, **kwargs), self.scale.to(*args, **kwargs)
        return self

    # -- sparse rows

    @uncompiled
    def read(self, batch: CsrBatch, dropout_key=None, rows: slice | None = None) -> Numbered:
        """Check a batch, hash, scale and drop its entries as configured, and number the columns of `rows`."""
        config, batch = self.config, self.columns(batch)
        if dropout_key is not None and config.feature_dropout > 0:
            batch = drop_entries(batch, config.feature_dropout, dropout_key)
        if rows is not None:  # which are dropped as they are in the whole batch
            batch = batch.rows(rows)
        if not config.learn:
            return Numbered(batch, None, None)  # nobody asks for numbers
        return Numbered(batch, *backend().number_columns(batch.indices))

    def columns(self, batch: CsrBatch) -> CsrBatch:
        """The batch's entries as the layers see them: checked, hashed and scaled as configured."""
        config, batch = self.config, converted(self._checked(batch), self._dtype)
        if config.scale_input == "max_abs":
            values = batch.values / self.input_scale.numpy()[batch.indices]
            batch = dataclasses.replace(batch, values=values.astype(self._dtype))
        return batch

    def _checked(self, batch: CsrBatch) -> CsrBatch:
        if self.config.hashed_columns:
            batch = to_csr(batch)
            check_values(batch)  # here, where columns have the names that people know
            batch = hash_columns(batch, self.config.hashed_columns, self._table_key)
        elif isinstance(batch, CsrBatch) and batch.n_columns < self.config.n_columns:
            batch = dataclasses.replace(batch, n_columns=self.config.n_columns)  # its last columns happen to be empty
        return as_csr(batch, self.config.width)

    @uncompiled
    def project(self, batch: CsrBatch, out: np.ndarray | None = None) -> torch.Tensor:
        """What `forward_projected` takes, for a projection that does not learn."""
        return torch.from_numpy(self.projection.operator.apply(self.columns(batch), out=out))

    def forward(self, batch: CsrBatch | Numbered, values: torch.Tensor | None = None) -> torch.Tensor:
        rows = batch if isinstance(batch, Numbered) else self.read(batch)
        return self.forward_projected(self._projected(rows, values))

    def _projected(self, rows: Numbered, values: torch.Tensor | None) -> torch.Tensor:
        """By a fixed projection where the layers are, unless entries want gradients, or outputs are wanted in float64:
        kernels of CUDA devices have neither.
        """
        if self.config.learn or values is not None or self._dtype == np.float64:
            return self.projection(rows, values)
        return self.projection.near(rows.batch, self.device)

    def forward_projected(self, projected: torch.Tensor) -> torch.Tensor:
        projected = projected.to(self.device)
        if self.config.normalise == "batch":
            projected = self.norm(projected)
        elif self.config.normalise != "none":
            projected = (projected - self.shift) * self.scale
        return self.layers(projected)

    # -- what is learnt before training

    def set_moments(self, moments: Moments) -> None:
        """Normalise by these moments of the projected training rows. Columns that never vary become zero."""
        by = moments.deviation if self.config.normalise == "standard" else moments.max_abs
        if self.config.normalise == "standard":
            self.shift.copy_(torch.from_numpy(moments.mean))
        self.scale.copy_(torch.from_numpy(moments.inverse(by)))

    def see_input(self, batch: CsrBatch) -> None:
        """Take a batch of the training rows into the columns' largest absolute values, which are 0 at first."""
        batch = without_repeats(self._checked(batch))
        backend().max_abs(batch.indices, batch.values, self.input_scale.numpy())


def hash_columns(batch: CsrBatch, n_columns: int, key) -> CsrBatch:
    """The same rows with their ids hashed into `n_columns`."""
    ids = as_ids(batch.indices)
    if len(ids) and ids.min() < 0:
        raise InputError(f"column id {ids.min()} is negative; ids start at 0")
    hashed = random.bucket_of(random.hash64(ids.astype(np.uint64), *key), np.uint64(n_columns))
    return dataclasses.replace(batch, indices=hashed.astype(np.int64), n_columns=n_columns)


def _hidden(config: NetworkConfig) -> list[nn.Module]:
    layers, width = [ACTIVATIONS[config.activation]()], config.n_components
    for next_width in config.hidden:
        layer = Linear(width, next_width)
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        nn.init.zeros_(layer.bias)
        layers += [layer, BatchNorm(next_width), nn.ReLU()] if config.hidden_norm else [layer, nn.ReLU()]
        if config.dropout > 0:
            layers.append(Dropout(config.dropout))
        width = next_width
    last = Linear(width, config.n_outputs)
    nn.init.normal_(last.weight, std=0.01)
    nn.init.zeros_(last.bias)
    return [*layers, last]
