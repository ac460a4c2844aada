"""Deep autoencoders on sparse rows: word counts, or rows behind a fixed projection, to short codes and back."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from sketchnet.checks import check_choice, check_flag, check_integer, check_options, check_real
from sketchnet.data.csr import CsrBatch, as_csr, converted
from sketchnet.errors import InputError
from sketchnet.nn.fixed import FixedProjection
from sketchnet.nn.numbering import add_rows, number_type
from sketchnet.nn.products import Linear
from sketchnet.projection import SCHEMES

VISIBLE = ("counts", "real")
LOSSES = ("direction", "mse")
UNITS = {"binary": nn.Sigmoid, "relu": nn.ReLU}
_ROWS, _NUMBERS = 1024, 1 << 24  # looked at together: so many rows, if they have no more numbers than that


@dataclass(frozen=True)
class AutoencoderConfig:
    """All that determines an autoencoder before training.

    visible: "counts" of words, whose distribution is given back, or "real" numbers, whose direction is. Counts are
    encoded as if all documents had the same number of words; real rows, projected if they are, are brought to the
    same length, which gives their numbers the mean square 1. Columns are not standardised: those that vary most tell
    most (a projection makes them vary alike anyway).
    scheme, n_components, options: a fixed projection of real rows in front; None for none. hidden: widths of the layers
    between the rows and the `n_codes` units in the middle; the way back mirrors them. units: of the hidden layers,
    logistic ("binary") or "relu". binary_codes: logistic units in the middle too, whose inputs get Gaussian noise with
    the deviation `noise` in training, which drives them to 0 or 1 (Salakhutdinov and Hinton's semantic hashing, 2009).
    feature_dropout: the share of a row's non-zeros that is left out in training before the rest is projected and
    encoded; all of the row has to be given back. So codes must follow from what words have in common.
    loss: of real rows, the squared distance of directions, or the mean squared error of the numbers ("mse"). Counts
    have their cross-entropy.
    """

    n_columns: int
    visible: str = "counts"
    scheme: str | None = None
    n_components: int = 2000
    options: dict = field(default_factory=dict)
    hidden: tuple[int, ...] = (500, 250, 125)
    n_codes: int = 32
    units: str = "binary"
    binary_codes: bool = False
    noise: float = 4.0
    feature_dropout: float = 0.0
    loss: str = "direction"
    seed: int = 0

    def __post_init__(self) -> None:
        def fix(name: str, value) -> None:
            object.__setattr__(self, name, value)

        fix("n_columns", check_integer("n_columns", self.n_columns, 1, 2**63))
        fix("n_components", check_integer("n_components", self.n_components, 1, 2**24))
        fix("n_codes", check_integer("n_codes", self.n_codes, 1, 2**24))
        fix("seed", check_integer("seed", self.seed, 0, 2**64 - 1))
        fix("noise", check_real("noise", self.noise))
        fix("feature_dropout", check_real("feature_dropout", self.feature_dropout, below=1.0))
        fix("binary_codes", check_flag("binary_codes", self.binary_codes))
        check_choice("visible", self.visible, VISIBLE)
        check_choice("units", self.units, UNITS)
        check_choice("loss", self.loss, LOSSES)
        if self.loss == "mse" and self.visible == "counts":
            raise InputError("loss='mse' is not possible with visible='counts', which have their cross-entropy")
        fix("options", check_options("options", self.options))
        if not isinstance(self.hidden, list | tuple):
            raise InputError(f"hidden={self.hidden!r} is not possible; it is a list of widths, such as [500, 250]")
        fix("hidden", tuple(check_integer("hidden", width, 1, 2**24) for width in self.hidden))
        if self.scheme is not None:
            check_choice("scheme", self.scheme, SCHEMES)
            if self.visible == "counts":
                raise InputError("visible='counts' is not possible behind a projection: its outputs are not counts")
        if self.scheme is None and self.n_columns > 2**24:
            raise InputError(f"{self.n_columns:,} columns are too many to give back; choose a scheme to project them")

    def to_dict(self) -> dict:
        return {**dataclasses.asdict(self), "hidden": list(self.hidden)}

    @property
    def n_visible(self) -> int:
        return self.n_columns if self.scheme is None else self.n_components

    @property
    def n_outputs(self) -> int:
        return self.n_codes


class Autoencoder(nn.Module):
    """`forward` gives the codes of a CsrBatch; `losses` is what `encode` and `decode` lose of visible rows."""

    length: torch.Tensor
    encoder: Any  # lists of linear layers, as nn.ModuleList does not say
    decoder: Any

    def __init__(self, config: AutoencoderConfig):
        super().__init__()
        self.config = config
        self.projection = None
        if config.scheme is not None:
            d, k = config.n_columns, config.n_components
            self.projection = FixedProjection(d, k, config.scheme, seed=config.seed, **config.options)
        if config.visible == "counts":
            self.register_buffer("length", torch.ones(()))
        widths = [config.n_visible, *config.hidden, config.n_codes]
        with torch.random.fork_rng(devices=[]):  # the same start for the same seed, whatever was drawn before
            torch.manual_seed(config.seed)
            self.encoder = nn.ModuleList(_linear(a, b, config.units) for a, b in zip(widths, widths[1:]))
            back = widths[::-1]
            self.decoder = nn.ModuleList(_linear(a, b, config.units) for a, b in zip(back, back[1:]))
        self._unit = UNITS[config.units]()

    @property
    def device(self) -> torch.device:
        return self.encoder[0].weight.device

    @property
    def at_once(self) -> int:
        """How many rows to give back at a time, for they become dense."""
        return max(1, min(_ROWS, _NUMBERS // self.config.n_visible))

    def in_double(self) -> Autoencoder:
        return copy.deepcopy(self).double()

    # -- rows

    def visible(self, batch: CsrBatch) -> torch.Tensor:
        """Dense rows as the first layer takes them: checked; real rows are projected, if there is a projection, and
        brought to the square root of their width.
        """
        rows = self._dense(batch)
        if self.config.visible == "counts":
            return rows
        most = rows.abs().amax(dim=1, keepdim=True)  # comes out first: its square might vanish, or not be finite
        return functional.normalize(rows / torch.where(most > 0, most, 1)) * self.config.n_visible**0.5

    def _dense(self, batch: CsrBatch) -> torch.Tensor:
        if isinstance(batch, CsrBatch) and batch.n_columns < self.config.n_columns:
            batch = dataclasses.replace(batch, n_columns=self.config.n_columns)  # its last columns happen to be empty
        kind = self.encoder[0].weight.dtype
        batch = converted(as_csr(batch, self.config.n_columns), number_type(self.encoder[0].weight))
        if self.projection is not None:  # kernels of CUDA devices do not compute in float64
            rows = self.projection(batch) if kind == torch.float64 else self.projection.near(batch, self.device)
            return rows.to(self.device)
        if self.config.visible == "counts" and batch.n_entries and batch.values.min() < 0:
            raise InputError(f"a count is {batch.values.min():g}; counts of words are 0 or more")
        return add_rows(torch.zeros(batch.n_rows, batch.n_columns, dtype=kind, device=self.device), batch)

    def set_length(self, words: float) -> None:
        """The number of words that all documents are brought to."""
        self.length.fill_(max(1.0, words))

    def centre_codes(self, mean: torch.Tensor) -> None:
        """Move linear codes by -mean; what is given back stays the same."""
        with torch.no_grad():
            self.encoder[-1].bias -= mean
            self.decoder[0].bias += self.decoder[0].weight @ mean

    # -- there and back

    def forward(self, batch: CsrBatch) -> torch.Tensor:
        return self.encode(self.visible(batch))

    def encode(self, rows: torch.Tensor, noise: torch.Tensor | None = None) -> torch.Tensor:
        if self.config.visible == "counts":
            rows = rows * (self.length / rows.sum(dim=1, keepdim=True).clamp(min=1))
        for layer in self.encoder[:-1]:
            rows = self._unit(layer(rows))
        codes = self.encoder[-1](rows)
        if not self.config.binary_codes:
            return codes
        return torch.sigmoid(codes if noise is None else codes + noise)

    def decode(self, codes: torch.Tensor) -> torch.Tensor:
        """The direction of real rows, or for counts the logits of the words' distribution."""
        for layer in self.decoder[:-1]:
            codes = self._unit(layer(codes))
        return self.decoder[-1](codes)

    def losses(self, rows: torch.Tensor, seen: torch.Tensor | None = None, mine: slice = slice(None)) -> torch.Tensor:
        """Of some rows of a batch, of which the encoder sees `seen`, or all there is: the mean cross-entropy of each
        one's words, zero for an empty document; or of real rows the squared distance, both brought to the length 1, or
        the mean squared error. The noise of training is drawn for the whole batch.
        """
        config, noise = self.config, None
        if self.training and config.binary_codes and config.noise > 0:
            noise = config.noise * torch.randn(len(rows), config.n_codes, dtype=rows.dtype, device=rows.device)[mine]
        rows, seen = rows[mine], (rows if seen is None else seen)[mine]
        back = self.decode(self.encode(seen, noise))
        if config.visible == "counts":
            lengths = rows.sum(dim=1).clamp(min=1)
            return -(rows * functional.log_softmax(back, dim=1)).sum(dim=1) / lengths
        if config.loss == "mse":
            return (back - rows).square().mean(dim=1)
        return (functional.normalize(back) - functional.normalize(rows)).square().sum(dim=1)


def _linear(a: int, b: int, units: str) -> Linear:
    layer = Linear(a, b)
    if units == "relu":
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    else:
        nn.init.xavier_normal_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
