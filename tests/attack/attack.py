"""What an attack is: a function of a scene, known by its name."""

from __future__ import annotations

import random
import shutil
import tempfile
import traceback
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.attack.command import Bounds, Child, Outcome, run
from tests.attack.judge import Wrong, changes, judge, listing
from tests.attack.world import World

ATTACKS: dict[str, tuple[Callable[[Scene], None], int]] = {}


def attack(name: str, share: int = 1):
    """Register an attack. One with a share of 5 is made five times as often as one with a share of 1."""

    def register(function: Callable[[Scene], None]):
        ATTACKS[name] = function, share
        return function

    return register


@dataclass
class Scene:
    """A folder to put files into, a random generator, command lines, and what was wrong with them."""

    world: World
    here: Path
    rng: random.Random
    commands: list[Sequence[str]] = field(default_factory=list)
    wrongs: list[Wrong] = field(default_factory=list)

    def take(self, *names: str) -> None:
        """Copy files or folders of the world into the folder, with their times, which records tell."""
        for name in names:
            copy = shutil.copytree if (self.world.folder / name).is_dir() else shutil.copy2
            copy(self.world.folder / name, self.here / name)

    def put(self, name: str, content: bytes) -> Path:
        (self.here / name).write_bytes(content)
        return self.here / name

    def run(
        self,
        *command: object,
        codes: Sequence[int] = (0, 2),
        blames: str = "",
        own: Sequence[str] = (),
        tidied: Sequence[str] = (),
        memory: int = Bounds.memory,
        before: Callable[[], None] = lambda: None,
    ) -> Outcome:
        """Run a command line and judge it. It may change what is its `own`, but where the input is bad (2) only what
        may be `tidied` away.
        """
        child = Child([str(word) for word in command], self.here, before, Bounds(memory=memory))
        found = listing(self.here)
        (outcome,) = run(child)
        self.commands.append(outcome.command)
        self.wrongs += judge(outcome, codes, child.bounds, blames)
        self.wrongs += changes(found, listing(self.here), tidied if outcome.code == 2 else own)
        return outcome

    def check(self, right: bool, kind: str, seen: str) -> None:
        """Note something else that must be so."""
        if not right:
            self.wrongs.append(Wrong(kind, seen))


@dataclass
class Finding:
    """What was wrong in one attack, and how to have it again."""

    attack: str
    seed: int
    commands: list[Sequence[str]]
    wrongs: list[Wrong]


def order() -> list[str]:
    """Names of attacks by seed, as often as their shares say, those of a kind as far apart as can be. A kind is a
    name's first word; first comes one of each.
    """
    kinds = defaultdict(list)
    for turn in range(max(share for _, share in ATTACKS.values())):
        for name, (_, share) in ATTACKS.items():
            if share > turn:
                kinds[name.split("-")[0]].append(name)
    places = [(i / len(names), kind, name) for kind, names in kinds.items() for i, name in enumerate(names)]
    return [name for _, _, name in sorted(places)]


def perform(name: str, seed: int, world: World, keep: Path | None = None) -> Finding | None:
    """Make one attack in a folder of its own, which is removed, or kept where there is a finding."""
    parent = keep if keep is not None else world.folder.parent
    here = Path(tempfile.mkdtemp(prefix=f"{name}-{seed}-", dir=parent))
    scene = Scene(world, here, random.Random(f"{name} {seed}"))
    try:
        ATTACKS[name][0](scene)
    except Exception:  # the attack's own mistake, which must be told as well
        scene.wrongs.append(Wrong("attack", " | ".join(traceback.format_exc().strip().splitlines()[-5:])))
    if keep is None or not scene.wrongs:
        shutil.rmtree(here, ignore_errors=True)
    return Finding(name, seed, scene.commands, scene.wrongs) if scene.wrongs else None
