"""What does a fit cost alone, and when two processes share the cores? From which size on do steps gain by threads?

    python benchmarks/threads.py [--quick] [--json]

A fit of `SketchClassifier` on 3,000 rows x 5,000 columns with 20 non-zeros each, in processes of their own that have
made a small fit before: the least seconds by the clock, and of processor time (with all threads), over some rounds in
which fits alone and pairs of fits take turns. Of a pair, the slower one counts. Limits are those of two idle cores: on
a busy machine only processor time says something. Steps are those of training, with as many threads as there are cores
beside one thread, the fastest tenth of several hundred.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import time
from contextlib import ExitStack

import numpy as np
from harness import main, row
from scipy import sparse

VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OMP_NUM_THREADS", "SKETCHNET_THREADS")


def cases(quick: bool):
    yield from fits(quick)
    yield from steps(quick)


# -- fits that share the cores


def fits(quick: bool):
    for name in VARIABLES:
        os.environ.pop(name, None)
    ways = {"": {}, ", as on the command line": {"OMP_WAIT_POLICY": "PASSIVE"}}
    for name, variables in ways.items():
        os.environ.update(variables)
        rounds = [(at_once(1), at_once(2)) for _ in range(1 if quick else 3)]
        wall, cpu = np.min([alone for alone, _ in rounds], axis=0)
        pair_wall, pair_cpu = np.min([pair for _, pair in rounds], axis=0)
        yield row(f"fit of 3,000 x 5,000, alone{name}", wall, 4.6, "limit", "s", 1)
        yield row("  processor time", cpu, cpu, "the same", "s")
        yield row("  each of two at once", pair_wall, 9.0, "limit", "s", 1)
        yield row("  processor time of each", pair_cpu, 1.2 * cpu, "limit: 1.2 x alone", "s", 1)


def at_once(n: int) -> tuple[float, float]:
    """Seconds by the clock and of the processor, of the slowest of n fits that begin together."""
    context = multiprocessing.get_context("spawn")
    with ExitStack() as ending:
        pipes = []
        for _ in range(n):
            here, there = context.Pipe()
            child = context.Process(target=_fit, args=(there,))
            child.start()
            ending.callback(child.join)
            pipes.append(here)
        for pipe in pipes:
            pipe.recv()  # ready
        for pipe in pipes:
            pipe.send("go")
        return tuple(np.max([pipe.recv() for pipe in pipes], axis=0))


def _fit(pipe) -> None:
    from sketchnet import SketchClassifier

    X, y = few_rows()
    SketchClassifier(epochs=1).fit(X[:600], y[:600])
    pipe.send("ready")
    pipe.recv()
    begun, used = time.perf_counter(), processor_time()
    SketchClassifier().fit(X, y)
    pipe.send((time.perf_counter() - begun, processor_time() - used))


def processor_time() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def few_rows(n: int = 3000, d: int = 5000, non_zeros: int = 20):
    rng = np.random.default_rng(0)
    values, ids = rng.random(n * non_zeros, np.float32), rng.integers(0, d, n * non_zeros)
    X = sparse.csr_array((values, ids, np.arange(n + 1) * non_zeros), shape=(n, d))
    return X, (X @ rng.standard_normal(d) > 0).astype(int)


# -- steps of several sizes


def steps(quick: bool):
    from sketchnet.kernels.cpu.threads import cores
    from sketchnet.training.threads import _WORTH, step_work

    for batch_size, hidden in [(16, (100,)), (64, (100,)), (16, (300, 300)), (16, (1000, 1000)), (128, (1000, 1000))]:
        network, one = step_times(batch_size, hidden, 1, quick)
        _, all_of_them = step_times(batch_size, hidden, cores(), quick)
        work = step_work(network, batch_size) / _WORTH
        widths = "-".join(map(str, (1000, *hidden, 1)))
        case = f"step of {batch_size} rows, {widths}: worth {max(1, int(work))} threads"
        yield row(case, 1e3 * all_of_them, 1e3 * one, "one thread", "ms")


def step_times(batch_size: int, hidden: tuple[int, ...], threads: int, quick: bool):
    """(network, seconds of a step) with so many of torch's threads."""
    import torch

    from sketchnet.data.csr import as_csr
    from sketchnet.training.captured import make_steps
    from sketchnet.training.defaults import build_model
    from sketchnet.training.examples import Examples
    from sketchnet.training.processes import Processes
    from sketchnet.training.task import Task

    X, y = few_rows()
    data, epochs = as_csr(X, X.shape[1]), 2 if quick else 4
    settings = {"hidden": hidden, "batch_size": batch_size, "epochs": epochs, "sparse_rate": 0.01}
    model, examples, times = build_model(Task("binary", (0, 1)), data, settings, seed=0), Examples(data, y), []
    torch.set_num_threads(threads)
    work = make_steps(model.network, model.task, examples, model.training, 2**30, lambda record: None, Processes())
    for epoch in range(epochs):
        begun = time.perf_counter()
        for _ in work.epoch(epoch, 0):
            times.append(time.perf_counter() - begun)
            begun = time.perf_counter()
    return model.network, float(np.quantile(times, 0.1))


if __name__ == "__main__":
    main(__doc__, cases)
