"""How fast are dense layers on the processor, beside torch's own?

    python benchmarks/dense.py [--quick] [--json]

Milliseconds of forward and backward in float32, the fastest of nine runs in turn. Ours differ from torch's only where
MKL leaves vector units of the processor alone (`sketchnet/nn/products.py`). The last row: layers with freed
memory kept from step to step, as in training (`sketchnet.memory.pages_kept`), and given back each time; with batch norm
and dropout between them, as networks have.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

import torch
from harness import in_turn, main, row
from torch import nn

from sketchnet.memory import pages_kept
from sketchnet.nn.dropout import Dropout
from sketchnet.nn.norm import BatchNorm
from sketchnet.nn.products import Linear

_ROUNDS = 9
_KEPT_STEPS = 10
_CASES = ((256, (1000, 1000)), (100, (784, 1000)), (4096, (1000, 3000)), (256, (1000, 1000, 1000, 20)))


def cases(quick: bool):
    for rows, widths in _CASES:
        products = rows * sum(n * m for n, m in zip(widths, widths[1:]))
        steps = max(1, int((1e9 if quick else 1e10) / products))
        works = [learning(layer, rows, widths, steps) for layer in (ours, torchs)]
        fast, slow = map(min, in_turn(_ROUNDS, *works))
        case = f"{rows} rows through {'-'.join(map(str, widths))}"
        yield row(case, 1000 * fast / steps, 1000 * slow / steps, "torch.nn.Linear", "ms")
    work = learning(normalised, 4096, (1000, 3000, 3000, 1), _KEPT_STEPS)
    kept, given_back = map(min, in_turn(3 if quick else _ROUNDS, pages_kept()(work), work))
    case = "4096 rows through 1000-3000-3000-1, memory kept"
    yield row(case, 1000 * kept / _KEPT_STEPS, 1000 * given_back / _KEPT_STEPS, "given back", "ms")


def ours(n: int, m: int) -> list[nn.Module]:
    return [Linear(n, m), nn.ReLU()]


def torchs(n: int, m: int) -> list[nn.Module]:
    return [nn.Linear(n, m), nn.ReLU()]


def normalised(n: int, m: int) -> list[nn.Module]:
    return [Linear(n, m), BatchNorm(m), nn.ReLU(), Dropout(0.5)]


def learning(layer: Callable[[int, int], list[nn.Module]], rows: int, widths: tuple[int, ...], steps: int):
    network = nn.Sequential(*chain.from_iterable(map(layer, widths, widths[1:])))
    x = torch.rand(rows, widths[0], requires_grad=True)

    def work() -> None:
        for _ in range(steps):
            network(x).sum().backward()

    return work


if __name__ == "__main__":
    main(__doc__.splitlines()[0], cases)
