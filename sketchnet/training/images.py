"""Training of residual networks with stochastic depth on small images, which lie on the device as bytes.

All that chance decides in an epoch (order, flips, shifts, gates) is drawn before it on the processor and written into
tensors from which each step reads its own part. On a card a step can so be captured once as a graph and replayed, and
several networks can be trained in turn, each on a stream of its own: one alone is too small to fill a card.

The gates multiply residuals, also on the processor, instead of leaving blocks out: gradients are the same, but running
statistics of batch normalisation see the batches in which their block takes no part, other than in the authors' code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from sketchnet.checks import check_integer, check_real
from sketchnet.errors import InputError
from sketchnet.nn import StochasticDepthResNet, init
from sketchnet.nn.augment import draw_moves, move

_AT_ONCE = 1000  # test images
_WARM_UP = 3  # steps before a capture, in which cuDNN tries its algorithms


class Images(NamedTuple):
    """`pixels` are bytes (n, channels, height, width), `labels` the classes from 0 on."""

    pixels: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True)
class ImageConfig:
    """Settings of a run; by default the published ones for CIFAR, but with fewer layers and epochs.

    Huang et al. (2016) take 500 epochs in batches of 128, Nesterov's momentum 0.9, and a rate of 0.1 that falls to a
    tenth at half and at three quarters of the epochs. `l2` holds for all parameters, as in their code.
    Convolutions begin by `scheme` with `options`, as in `sketchnet.nn.init.apply_`.
    """

    depth: int = 20
    width: int = 16
    survival: float = 0.5
    epochs: int = 30
    batch_size: int = 128
    rate: float = 0.1
    milestones: tuple[float, ...] = (0.5, 0.75)  # shares of the epochs
    factor: float = 0.1
    momentum: float = 0.9
    nesterov: bool = True
    l2: float = 1e-4
    pad: int = 4  # pixels that images are shifted by, at most
    flip: bool = True  # mirror half of the images; digits are none any more then
    scheme: str = "he"
    options: dict = field(default_factory=dict)
    seed: int = 0

    def __post_init__(self):
        check_integer("epochs", self.epochs, 1, 2**20)
        check_integer("batch_size", self.batch_size, 2, 2**20)
        check_integer("pad", self.pad, 0, 2**10)
        check_integer("seed", self.seed, 0, 2**63 - 1)
        check_real("momentum", self.momentum, 0.0, 1.0)
        for name in ("rate", "factor", "l2"):
            check_real(name, getattr(self, name))

    def rate_at(self, epoch: int) -> float:
        """Of an epoch, counted from 0."""
        return self.rate * self.factor ** sum(epoch >= share * self.epochs for share in self.milestones)


def train_images(
    config: ImageConfig,
    train: Images,
    test: Images,
    device: str | torch.device = "cpu",
    report: Callable[[dict], None] | None = None,
    tick: Callable[[int, int, str], None] | None = None,
) -> list[float]:
    """Train a network; the test error (a share) after each epoch.

    On the processor the seed decides everything; on a card results also depend on the order of its sums. Images that
    fill no batch at an epoch's end are left out of it. `report` gets a record after each epoch, `tick` the number of
    steps done and to do.
    """
    return train_together([config], train, test, device, report, tick)[0]


def train_together(
    configs: Sequence[ImageConfig],
    train: Images,
    test: Images,
    device: str | torch.device = "cpu",
    report: Callable[[dict], None] | None = None,
    tick: Callable[[int, int, str], None] | None = None,
) -> list[list[float]]:
    """The same for several networks, a step each in turn. They must agree in the epochs and the size of batches."""
    if not configs or len({(config.epochs, config.batch_size) for config in configs}) != 1:
        raise InputError("networks that are trained together must have the same epochs and batch_size")
    device = torch.device(device)
    data, epochs = _OnDevice(train, test, device), configs[0].epochs
    with _card(device) if data.on_card else nullcontext():
        runs = [_Run(config, data) for config in configs]
        errors, steps = [[] for _ in runs], runs[0].n_batches
        for epoch in range(epochs):
            for run in runs:
                run.begin(epoch)
            for step in range(steps):
                for run in runs:
                    run.advance()
                if tick is not None:
                    tick(epoch * steps + step + 1, epochs * steps, f"epoch {epoch + 1}")
            for run in runs:
                run.evaluate()
            for run, of_run in zip(runs, errors):
                error, loss = run.result()
                of_run.append(error)
                if report is not None:
                    rate, how = run.config.rate_at(epoch), {"scheme": run.config.scheme, "seed": run.config.seed}
                    report({**how, "epoch": epoch, "rate": rate, "loss": loss, "test_error": error})
    return errors


@contextmanager
def _card(device: torch.device):
    """The current one, with cuDNN allowed to try which of its algorithms are fastest: shapes never change."""
    before, torch.backends.cudnn.benchmark = torch.backends.cudnn.benchmark, True
    try:
        with torch.cuda.device(device):
            yield
    finally:
        torch.backends.cudnn.benchmark = before


class _OnDevice:
    """Both sets of images as bytes, and the training images' mean and deviation of each channel."""

    def __init__(self, train: Images, test: Images, device: torch.device):
        for name, (pixels, labels) in {"train": train, "test": test}.items():
            if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[1:] != train.pixels.shape[1:]:
                raise InputError(
                    f"{name} has {pixels.dtype} pixels of shape {pixels.shape}; they must be uint8, images x channels "
                    "x height x width, the same for both sets"
                )
            if labels.shape != (len(pixels),) or labels.dtype.kind not in "iu" or len(labels) == 0 or labels.min() < 0:
                raise InputError(f"{name} has labels of shape {labels.shape}; there must be one for each image, from 0")
        # Counts of the 256 values give the moments exactly, and without a copy of the images as floats.
        channels, values = train.pixels.shape[1], np.arange(256)
        counts = [np.bincount(train.pixels[:, c].ravel(), minlength=256) for c in range(channels)]
        shares = np.stack(counts) / (train.pixels.size / channels)
        mean = shares @ values
        deviation = np.sqrt(np.maximum(shares @ values**2 - mean**2, 0))
        scale = 1 / np.where(deviation > 0, deviation, 1)
        self.device, self.on_card = device, device.type == "cuda"
        self.n_train, self.n_classes, self.channels = len(train.pixels), int(train.labels.max()) + 1, channels
        self.train, self.test = (
            tuple(torch.from_numpy(np.ascontiguousarray(x)).to(device) for x in (s.pixels, s.labels.astype(np.int64)))
            for s in (train, test)
        )
        self._mean, self._scale = (
            torch.tensor(x, dtype=torch.float32, device=device).view(-1, 1, 1) for x in (mean, scale)
        )

    def normalised(self, pixels: torch.Tensor) -> torch.Tensor:
        return (pixels.float() - self._mean) * self._scale

    def scores(self, net: nn.Module, x: torch.Tensor, gates: torch.Tensor | None = None) -> torch.Tensor:
        """On a card by products in bfloat16, channels last as its units for these take them."""
        if not self.on_card:
            return net(x, gates)
        # Casts of the weights must not outlive a captured step, so that autocast may not keep them.
        with torch.autocast("cuda", torch.bfloat16, cache_enabled=False):
            return net(x.contiguous(memory_format=torch.channels_last), gates).float()


class _Run:
    """A network in training."""

    def __init__(self, config: ImageConfig, data: _OnDevice):
        self.config, self._data = config, data
        self._batch = min(config.batch_size, data.n_train)
        self.n_batches = data.n_train // self._batch
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(config.seed)
            net = StochasticDepthResNet(config.depth, data.n_classes, config.survival, data.channels, config.width)
            # Onward from the numbers that the last layer took.
            self._numbers = torch.Generator().manual_seed(int(torch.randint(2**62, ())))
        init.apply_(net, config.scheme, where=nn.Conv2d, seed=config.seed, **config.options)
        self._net = net.to(data.device)
        if data.on_card:
            self._net = self._net.to(memory_format=torch.channels_last)
        self._parameters = list(self._net.parameters())
        self._velocities = [torch.zeros_like(p) for p in self._parameters]
        # A graph reads the very tensors that it was captured with, so all that changes is copied into these.
        shape, where = (self.n_batches, self._batch), {"device": data.device}
        self._plan = [torch.zeros(shape, dtype=t, **where) for t in (torch.int64, torch.bool, torch.int64, torch.int64)]
        self._plan.append(torch.zeros(self.n_batches, len(net.blocks), **where))
        self._at = torch.zeros(1, dtype=torch.int64, **where)
        self._wrong = torch.zeros((), dtype=torch.int64, **where)
        self._rate, self._loss = torch.zeros((), **where), torch.zeros((), **where)
        self._stream = torch.cuda.Stream(data.device) if data.on_card else None
        self._graph = self._capture() if data.on_card else None

    def _draw(self) -> list[torch.Tensor]:
        """An epoch's plan, a row for each batch: images, flips, shifts down and right, gates."""
        n, shape = self.n_batches * self._batch, (self.n_batches, self._batch)
        order = torch.randperm(self._data.n_train, generator=self._numbers)[:n]
        flips, down, right = draw_moves(n, self.config.pad, generator=self._numbers)
        gates = torch.stack([self._net.draw_gates(self._numbers) for _ in range(self.n_batches)])
        return [*(x.view(shape) for x in (order, flips & self.config.flip, down, right)), gates]

    def _capture(self) -> torch.cuda.CUDAGraph:
        """The step as a graph. What trying it changed is put back."""
        before = {name: tensor.clone() for name, tensor in self._net.state_dict().items()}
        self._net.train()
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            for _ in range(_WARM_UP):
                self._step()
                self._at.zero_()
        torch.cuda.current_stream().wait_stream(self._stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._step()
        self._net.load_state_dict(before)
        for tensor in (*self._velocities, self._at, self._loss):
            tensor.zero_()
        torch.cuda.synchronize()  # what follows is on other streams
        return graph

    def _step(self) -> None:
        """Of the batch that `_at` points to. No shape depends on values, and nothing is read back."""
        rows, flips, down, right, gates = (x.index_select(0, self._at)[0] for x in self._plan)
        pixels, labels = (x.index_select(0, rows) for x in self._data.train)
        x = move(self._data.normalised(pixels), flips, down, right, self.config.pad)
        for p in self._parameters:
            p.grad = None
        loss = functional.cross_entropy(self._data.scores(self._net, x, gates), labels)
        loss.backward()
        self._descend()
        self._loss += loss.detach()
        self._at += 1

    @torch.no_grad()
    def _descend(self) -> None:
        """g = gradient + l2 * w; v = momentum * v + g; w -= rate * (g + momentum * v), or rate * v if not Nesterov's.

        torch's SGD with the rate in a tensor would wait for the card to read it.
        """
        momentum, gradients = self.config.momentum, [p.grad for p in self._parameters]
        torch._foreach_add_(gradients, self._parameters, alpha=self.config.l2)
        torch._foreach_mul_(self._velocities, momentum)
        torch._foreach_add_(self._velocities, gradients)
        if self.config.nesterov:
            torch._foreach_add_(gradients, self._velocities, alpha=momentum)
            moves = torch._foreach_mul(gradients, self._rate)
        else:
            moves = torch._foreach_mul(self._velocities, self._rate)
        torch._foreach_sub_(self._parameters, moves)

    # -- what `train_together` calls

    def begin(self, epoch: int) -> None:
        self._net.train()
        with torch.cuda.stream(self._stream):
            for tensor, drawn in zip(self._plan, self._draw()):
                tensor.copy_(drawn)
            self._rate.fill_(self.config.rate_at(epoch))
            self._at.zero_()
            self._loss.zero_()

    def advance(self) -> None:
        if self._graph is None:
            self._step()
            return
        with torch.cuda.stream(self._stream):
            self._graph.replay()

    @torch.no_grad()
    def evaluate(self) -> None:
        """Count the errors on the test images; a card is not waited for."""
        self._net.eval()
        with torch.cuda.stream(self._stream):
            self._wrong.zero_()
            for pixels, labels in zip(*(x.split(_AT_ONCE) for x in self._data.test)):
                scores = self._data.scores(self._net, self._data.normalised(pixels))
                self._wrong += (scores.argmax(1) != labels).sum()

    def result(self) -> tuple[float, float]:
        """The test error and the epoch's mean loss."""
        if self._stream is not None:
            self._stream.synchronize()  # reading a tensor waits for the current stream alone
        return int(self._wrong) / len(self._data.test[1]), float(self._loss) / self.n_batches
