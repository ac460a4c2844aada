"""`python -m tests.attack --seconds 600 --seed 1`: attacks one after the other; ends with 1 where one found something.

A finding is had again by its seed: `python -m tests.attack --seed SEED --count 1`.
"""

from __future__ import annotations

import os

# Before torch and numba come in: one thread, so that children can be forked off.
os.environ.update(SKETCHNET_THREADS="1", OMP_NUM_THREADS="1", OMP_WAIT_POLICY="passive", ARROW_NUM_THREADS="1")

import argparse
import json
import select
import shlex
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from pathlib import Path

from tests.attack import (  # noqa: F401 (they register their attacks)
    on_disks,
    on_kills,
    on_models,
    on_names,
    on_npz,
    on_packed,
    on_parquet,
    on_places,
    on_shards,
    on_text,
)
from tests.attack.attack import ATTACKS, Finding, order, perform
from tests.attack.judge import Wrong
from tests.attack.on_disks import unmount_below
from tests.attack.world import World

_TOLD = 30.0  # seconds between two lines of progress


def main() -> int:
    options = _options()
    keep = options.keep
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that what is below is cleared away
    folder = Path(tempfile.mkdtemp(prefix="attack-"))
    try:
        (folder / "world").mkdir()
        (folder / "scratch").mkdir()
        tempfile.tempdir = str(
            folder / "scratch"
        )  # of the verbs, too: those that are killed leave what they have there
        begun = time.monotonic()
        world = World(folder / "world").make()
        print(f"world made in {time.monotonic() - begun:.1f} s", flush=True)
        counts, findings = _all(options, world, keep)
    finally:
        unmount_below(folder)
        shutil.rmtree(folder, ignore_errors=True)
    _tell(counts, findings, options.show)
    return 1 if findings else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="when to begin no other attack")
    parser.add_argument("--seed", type=int, default=0, help="of the first attack; others follow it, one by one")
    parser.add_argument("--count", type=int, help="make so many attacks, however long they take")
    parser.add_argument("--only", metavar="NAME", help="only attacks whose names begin so")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the files of findings here")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--show", type=int, default=3, help="so many findings of an attack and a kind, in full")
    parser.add_argument("--list", action="store_true", help="list the attacks, and end")
    options = parser.parse_args()
    if options.list:
        for name, (function, share) in ATTACKS.items():
            print(f"{name:<28}{share:>3}  {' '.join((getattr(function, 'func', function).__doc__ or '').split())}")
        sys.exit(0)
    if not _names(options.only):
        parser.error(f"no attack has a name that begins with {options.only}")
    return options


def _names(only: str | None) -> list[str]:
    if only in ATTACKS:
        return [only]
    return [name for name in order() if only is None or name.startswith(only)]


def _all(options: argparse.Namespace, world: World, keep: Path | None) -> tuple[Counter, list[Finding]]:
    """Have workers, forked off this process, make the attacks; each says in lines of JSON what it did."""
    counts, findings, broken = Counter(), [], 0
    begun = told = time.monotonic()
    workers = dict(_started(number, options, world, keep) for number in range(options.workers))
    rests = dict.fromkeys(workers, b"")
    try:
        while workers:
            for read in select.select(list(workers), [], [], 1.0)[0]:
                piece = os.read(read, 1 << 20)
                *lines, rests[read] = (rests[read] + piece).split(b"\n")
                for line in lines:
                    name, seed, commands, wrongs = json.loads(line)
                    counts[name] += 1
                    if wrongs:
                        findings.append(Finding(name, seed, commands, [Wrong(*wrong) for wrong in wrongs]))
                if not piece:
                    os.close(read)
                    broken += os.waitpid(workers.pop(read), 0)[1] != 0
            if time.monotonic() - told > _TOLD:
                told = time.monotonic()
                print(f"{told - begun:.0f} s: {sum(counts.values())} attacks, {len(findings)} findings", flush=True)
    finally:
        for pid in workers.values():  # where this process was interrupted
            os.kill(pid, signal.SIGINT)
            os.waitpid(pid, 0)
    if broken:
        findings.append(Finding("worker", options.seed, [], [Wrong("crash", "a worker ended before its time")]))
    return counts, findings


def _started(number: int, options: argparse.Namespace, world: World, keep: Path | None) -> tuple[int, int]:
    """What a worker's answers are read from, and the worker."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        code = 1
        try:
            _work(number, options, world, keep, write)
            code = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(write)
    return read, pid


def _work(number: int, options: argparse.Namespace, world: World, keep: Path | None, write: int) -> None:
    names, done, until = _names(options.only), number, time.monotonic() + options.seconds
    while done < options.count if options.count is not None else time.monotonic() < until:
        seed = options.seed + done
        name = names[seed % len(names)]
        finding = perform(name, seed, world, keep)
        said = [name, seed, finding.commands, finding.wrongs] if finding else [name, seed, [], []]
        data = json.dumps(said).encode() + b"\n"
        while data:
            data = data[os.write(write, data) :]
        done += options.workers


def _tell(counts: Counter, findings: list[Finding], shown: int) -> None:
    """Counts, and findings of a kind together."""
    found = Counter(finding.attack for finding in findings)
    for name, n in sorted(counts.items()):
        print(f"{name:<28}{n:>7} attacks{found[name]:>7} findings")
    print(f"{'in all':<28}{sum(counts.values()):>7} attacks{len(findings):>7} findings")
    groups = defaultdict(list)
    for finding in findings:
        for kind in sorted({wrong.kind for wrong in finding.wrongs}):
            groups[finding.attack, kind].append(finding)
    for (name, kind), group in sorted(groups.items()):
        print(f"\n== {name}: {kind}, {len(group)} times; seeds {' '.join(str(f.seed) for f in group[:20])}")
        for finding in group[:shown]:
            print(f"  --only {name} --seed {finding.seed} --count 1")
            for command in finding.commands:
                print(f"    {ascii(shlex.join(['sketchnet', *command]))[1:-1]}")
            for wrong in finding.wrongs:
                if wrong.kind == kind:
                    print(f"    {kind}: {ascii(wrong.seen)[1:-1][:500]}")


if __name__ == "__main__":
    sys.exit(main())
