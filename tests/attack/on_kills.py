"""Kills at every moment of every verb that writes; the same command again must end as if nothing had been."""

from __future__ import annotations

from functools import partial

from tests.attack.attack import Scene, attack
from tests.attack.command import Child, run
from tests.attack.judge import changes
from tests.attack.killed import kill_at
from tests.attack.works import WORKS, undisturbed, what_is_left


def _killed(scene: Scene, name: str) -> None:
    """Once or more; just before a change of names, or at any time."""
    work, whole = WORKS[name], undisturbed(scene, name)
    work.prepare(scene)
    for _ in range(scene.rng.choice((1, 1, 2, 3))):
        if scene.rng.random() < 0.8:
            number = scene.rng.randrange(1, len(whole.changes) + 1)
            if scene.rng.random() < 0.5:  # the last are the most delicate
                number = max(1, len(whole.changes) - scene.rng.randrange(8))
            child = Child(work.words(), scene.here, partial(kill_at, number, str(scene.here)))
            how = f"killed before change {number} of {len(whole.changes)}: {' '.join(whole.changes[number - 1])}"
        else:
            child = Child(work.words(), scene.here, kill_after=scene.rng.random() * whole.seconds)
            how = f"killed after {child.kill_after:.3f} s"
        run(child)
        scene.commands.append([*work.words(), "#", how])
    # A verb that refuses to replace may say so of a run that had said that all is done: its record is gone, the last.
    ended = not (scene.here / ".out.npy.sketchnet" / "job.json").exists() and (scene.here / "out.npy").exists()
    codes = (0, 2) if ended and name.startswith("project") else (0,)
    own = (*work.writes, *(path for path in what_is_left(scene.here) if path not in work.takes))
    scene.run(*work.words(), codes=codes, own=own, tidied=(".out.npy.sketchnet",))
    for wrong in changes(whole.left, what_is_left(scene.here)):
        kind = "beside" if wrong.kind == "left" else "answer"
        scene.check(False, kind, f"after {how}: {wrong.seen}")


for _name in WORKS:
    attack(f"kill-{_name}", share=2)(partial(_killed, name=_name))
