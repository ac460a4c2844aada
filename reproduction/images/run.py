"""A residual network with stochastic depth in training on small images.

All that chance decides in an epoch (order, flips, shifts, gates) is drawn before it on the processor. Batches are made
for some steps at a time, into tensors from which each step reads its own part. On a GPU a step can so be captured once
as a graph and replayed, and several networks can be trained in turn, each on a stream of its own: one alone is too
small to fill a GPU.

The gates multiply residuals, also on the processor, instead of leaving blocks out: gradients are the same, but running
statistics of batch normalisation see the batches in which their block takes no part, other than in the authors' code.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional

from reproduction.images.augment import draw_moves, move
from reproduction.images.config import ImageConfig
from reproduction.images.data import ImagesOnDevice
from reproduction.images.norm import can_fuse, fused_norm_and_relu
from reproduction.images.resnet import StochasticDepthResNet
from sketchnet.nn import init

_AT_ONCE = 2000  # test images
_WINDOW = 32  # batches that are made at a time
_WARM_UP = 3  # steps before a capture, in which cuDNN tries its algorithms


class _Flat:
    """All parameters of a network as parts of one tensor, those of convolutions first, with channels last.

    Its optimiser is then a handful of kernels, and so is bringing the convolutions to a GPU's bfloat16.
    """

    def __init__(self, net: nn.Module, dtype: torch.dtype):
        self._dtype = dtype
        parameters = sorted(net.named_parameters(), key=lambda pair: pair[1].ndim != 4)  # stable
        self._shapes = {name: p.shape for name, p in parameters}
        self._n_first = sum(p.numel() for _, p in parameters if p.ndim == 4)
        ordered = [p.detach().movedim(1, -1) if p.ndim == 4 else p.detach() for _, p in parameters]
        self.all = torch.cat([p.flatten() for p in ordered]).requires_grad_()
        self.velocity = torch.zeros_like(self.all, requires_grad=False)
        parts = self._named(self.all.detach().split([shape.numel() for shape in self._shapes.values()]))
        for name, p in parameters:
            p.data = parts[name]

    def _named(self, parts) -> dict[str, torch.Tensor]:
        named = {}
        for (name, shape), part in zip(self._shapes.items(), parts):
            if len(shape) == 4:
                outputs, inputs, *window = shape
                named[name] = part.view(outputs, *window, inputs).movedim(-1, 1)
            else:
                named[name] = part.view(shape)
        return named

    def named(self) -> dict[str, torch.Tensor]:
        """The parameters by name, for `functional_call`; gradients go to `all`."""
        sizes = [shape.numel() for shape in self._shapes.values()]
        n_convolutions = sum(len(shape) == 4 for shape in self._shapes.values())
        first, others = self.all.split([self._n_first, self.all.numel() - self._n_first])
        first, others = first.to(self._dtype).split(sizes[:n_convolutions]), others.split(sizes[n_convolutions:])
        return self._named([*first, *others])

    @torch.no_grad()
    def descend(self, rate: torch.Tensor, config: ImageConfig) -> None:
        """g = gradient + l2 * w; v = momentum * v + g; w -= rate * (g + momentum * v).

        torch's SGD with the rate in a tensor would wait for the GPU to read it.
        """
        g = self.all.grad.add_(self.all, alpha=config.l2)
        self.velocity.mul_(config.momentum).add_(g)
        self.all.addcmul_(g.add_(self.velocity, alpha=config.momentum), rate, value=-1)


class ImageRun:
    """A network in training. `fused`: see `train_together`."""

    def __init__(self, config: ImageConfig, data: ImagesOnDevice, fused: bool = True):
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
        if data.on_gpu and fused and can_fuse():
            net.join = fused_norm_and_relu
        self._weights = _Flat(net, data.dtype)
        where = {"device": data.device}
        shape = (self.n_batches, self._batch)
        self._plan = [torch.zeros(shape, dtype=t, **where) for t in (torch.int64, torch.bool, torch.int64, torch.int64)]
        self._plan.append(torch.zeros(self.n_batches, len(net.blocks), **where))
        # A graph reads the very tensors that it was captured with, so all that changes is copied into these.
        channels, *size = data.train[0].shape[1:]
        window = min(_WINDOW, self.n_batches)
        self._images = torch.zeros(window, self._batch, *size, channels, dtype=data.dtype, **where)
        self._labels = torch.zeros(window, self._batch, dtype=torch.int64, **where)
        self._gates = torch.zeros(window, len(net.blocks), **where)
        self._at = torch.zeros(1, dtype=torch.int64, **where)  # in the window
        self._wrong = torch.zeros((), dtype=torch.int64, **where)
        self._rate, self._loss = torch.zeros((), **where), torch.zeros((), **where)
        self._steps = 0  # done in the epoch
        self._stream = torch.cuda.Stream(data.device) if data.on_gpu else None
        self._graph = self._capture() if data.on_gpu else None

    def _draw(self) -> list[torch.Tensor]:
        """An epoch's plan, a row for each batch: images, flips, shifts down and right, gates."""
        n, shape = self.n_batches * self._batch, (self.n_batches, self._batch)
        order = torch.randperm(self._data.n_train, generator=self._numbers)[:n]
        flips, down, right = draw_moves(n, self.config.pad, generator=self._numbers)
        gates = self._net.draw_gates(self._numbers, self.n_batches)
        return [*(x.view(shape) for x in (order, flips, down, right)), gates]

    def _fill(self) -> None:
        """Make the next batches."""
        part = slice(self._steps, self._steps + _WINDOW)
        rows, *moves = (x[part].flatten() for x in self._plan[:4])
        pixels, labels = (x.index_select(0, rows) for x in self._data.train)
        n = self._plan[4][part].shape[0]
        images = move(self._data.normalised(pixels), *moves, self.config.pad)
        self._images[:n].flatten(0, 1).copy_(images.movedim(1, -1))
        self._labels[:n].copy_(labels.view(n, -1))
        self._gates[:n].copy_(self._plan[4][part])
        self._at.zero_()

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
        for tensor in (self._weights.velocity, self._at, self._loss):
            tensor.zero_()
        torch.cuda.synchronize()  # what follows is on other streams
        return graph

    def _step(self) -> None:
        """Of the batch that `_at` points to. No shape depends on values, and nothing is read back."""
        images, labels, gates = (x.index_select(0, self._at)[0] for x in (self._images, self._labels, self._gates))
        self._weights.all.grad = None
        loss = functional.cross_entropy(self._scores(images.movedim(-1, 1), gates), labels)
        loss.backward()
        self._weights.descend(self._rate, self.config)
        self._loss += loss.detach()
        self._at += 1

    def _scores(self, x: torch.Tensor, gates: torch.Tensor) -> torch.Tensor:
        """On a GPU by products in bfloat16, channels last as its units for these take them."""
        # Casts of the weights must not outlive a captured step, so that autocast may not keep them.
        with torch.autocast("cuda", torch.bfloat16, enabled=self._data.on_gpu, cache_enabled=False):
            return functional_call(self._net, self._weights.named(), (x, gates)).float()

    # -- what `train_together` calls

    def begin(self, epoch: int) -> None:
        self._net.train()
        self._steps = 0
        with torch.cuda.stream(self._stream):
            for tensor, drawn in zip(self._plan, self._draw()):
                tensor.copy_(drawn)
            self._rate.fill_(self.config.rate_at(epoch))
            self._loss.zero_()

    def advance(self) -> None:
        with torch.cuda.stream(self._stream):
            if self._steps % _WINDOW == 0:
                self._fill()
            if self._graph is None:
                self._step()
            else:
                self._graph.replay()
        self._steps += 1

    @torch.no_grad()
    def evaluate(self) -> None:
        """Count the errors on the test images; a GPU is not waited for."""
        self._net.eval()
        with torch.cuda.stream(self._stream):
            self._wrong.zero_()
            for pixels, labels in zip(*(x.split(_AT_ONCE) for x in self._data.test)):
                x = self._data.normalised(pixels).to(self._data.dtype)
                scores = self._scores(x.contiguous(memory_format=torch.channels_last), self._net.survival)
                self._wrong += (scores.argmax(1) != labels).sum()

    def result(self) -> tuple[float, float]:
        """The test error and the epoch's mean loss."""
        if self._stream is not None:
            self._stream.synchronize()  # reading a tensor waits for the current stream alone
        return int(self._wrong) / len(self._data.test[1]), float(self._loss) / self.n_batches
