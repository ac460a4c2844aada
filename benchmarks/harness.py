"""What the benchmark scripts share: timing, memory of a fresh process, and the table."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable

from sketchnet.memory import anonymous_memory

_PAUSE = 0.1  # seconds


def best_time(work: Callable[[], object], repeats: int = 3) -> float:
    """Seconds of the fastest of `repeats` runs, after one that compiles and touches memory."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def in_turn(rounds: int, *works: Callable[[], object], clock=time.perf_counter) -> list[list[float]]:
    """Seconds of each run of each work after a warm-up, one work after the other: what else the machine does hits all
    alike. Each begins on idle cores: threads of BLAS and OpenMP spin for some time after their work.
    """
    times = [[] for _ in works]
    for turn in range(rounds + 1):
        for work, taken in zip(works, times):
            time.sleep(_PAUSE)
            start = clock()
            work()
            if turn:
                taken.append(clock() - start)
    return times


def race(ours: Callable[[], object], peer: Callable[[], object], repeats: int = 3) -> tuple[float, float]:
    """Seconds of both by the same rule: one warm-up, then the fastest of `repeats` runs in a row."""
    return best_time(ours, repeats), best_time(peer, repeats)


def peak_memory(make: Callable[..., Callable[[], object]], *args) -> float:
    """MiB of anonymous memory, above the start, of the work that `make(*args)` returns, run in a process of its own.

    The parent samples the child every millisecond, so that nothing the child does can hide its peak.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    child = context.Process(target=_child, args=(there, make, args))
    child.start()
    there.close()
    here.recv()  # ready: inputs made, kernels compiled
    start, peak, done = anonymous_memory(child.pid), 0, threading.Event()
    here.send("go")
    threading.Thread(target=lambda: (here.recv(), done.set()), daemon=True).start()
    while not done.wait(0.001):
        peak = max(peak, anonymous_memory(child.pid))
    peak = max(peak, anonymous_memory(child.pid))
    here.send("end")
    child.join()
    return (peak - start) / 2**20


def _child(pipe, make, args) -> None:
    work = make(*args)
    pipe.send("ready")
    pipe.recv()
    result = work()
    pipe.send("done")
    pipe.recv()
    del result


def name_device() -> None:
    """On standard error; where there is no CUDA device, that is the end."""
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("this benchmark needs a CUDA device, and torch finds none")
    print(torch.cuda.get_device_name(), file=sys.stderr)


def row(case: str, ours: float, peer: float, peer_name: str, unit: str, at_least: float | None = None) -> dict:
    """One line of the table: `ratio` says how many times less of `unit` we take than the peer."""
    return {
        "case": case,
        "ours": ours,
        "peer": peer,
        "peer_name": peer_name,
        "unit": unit,
        "ratio": peer / ours if ours > 0 else float("inf"),
        "at_least": at_least,
    }


def main(description: str, cases: Callable[[bool], Iterable[dict]]) -> None:
    """Run a script's cases and print them as they finish."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="fewer runs or smaller sizes, under a minute")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    args = parser.parse_args()
    if not args.json:
        print(f"{os.cpu_count()} cores{', quick' if args.quick else ''}\n")
        print(f"{'case':<58}{'ours':>10}{'peer':>10}  {'unit':<5}{'ratio':>9}{'wanted':>8}  peer")
    for result in cases(args.quick):
        if args.json:
            print(json.dumps({key: value for key, value in result.items() if key != "at_least"}), flush=True)
            continue
        wanted = f"{result['at_least']:g}" if result["at_least"] else ""
        print(
            f"{result['case']:<58}{result['ours']:>10.4g}{result['peer']:>10.4g}  {result['unit']:<5}"
            f"{result['ratio']:>9.1f}{wanted:>8}  {result['peer_name']}",
            flush=True,
        )
