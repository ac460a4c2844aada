"""Names in the data and of files that a terminal would obey: what is printed has none of them as they are."""

from __future__ import annotations

from tests.attack.attack import Scene, attack
from tests.attack.damage import HOSTILE
from tests.attack.judge import control_characters

_SHORT = ("--components", "8", "--hidden", "4", "--epochs", "1", "--batch-size", "64")

_ANSWERS = [("predict", "--proba"), ("predict",), ("predict", "--json"), ("evaluate",), ("evaluate", "--json")]
_ANSWERS += [("explain",), ("explain", "--json")]


def _hostile(scene: Scene) -> str:
    return "".join(c for c in scene.rng.choice(HOSTILE) if c not in "\0/")


@attack("name-of-file", share=4)
def name_of_file(scene: Scene) -> None:
    """A file of such a name: damaged, absent, or sound; read, and written."""
    name, other, rng = f"a{_hostile(scene)}", f"b{_hostile(scene)}", scene.rng
    content = rng.choice((b"1 1:x\n", (scene.world.folder / "rows.svm").read_bytes(), b""))
    if rng.random() < 0.8:
        scene.put(f"{name}.svm", content)
    scene.take("rows")
    commands = [
        (("ingest", f"{name}.svm", other), (other,)),
        (("ingest", f"{name}.csv", other), (other,)),
        (("project", f"{name}.svm", f"{other}.npy", "-k", "4"), (f"{other}.npy",)),
        (("project", f"{name}.npz", f"{other}.npy"), ()),
        (("predict", "rows", f"{name}.svm", "--output", other), (other,)),
        (("predict", name, f"{name}.svm"), ()),
        (("evaluate", "rows", f"{name}.svm"), ()),
        (("explain", "rows", f"{name}.svm"), ()),
        (("report", "rows", "--data", f"{name}.svm", "--out", f"{other}.html"), (f"{other}.html",)),
        (("train", f"{name}.svm", "--out", other, *_SHORT), (other,)),
        (("synth", other, "-n", "50", "-d", "100", "--density", "0.1"), (other,)),
        (("ingest", f"{name}.svm", other, "--base", name), (other,)),
        (("ingest", "--columns", name, other), ()),
        (("reproduction", name), ()),
        ((name, other), ()),
        (("project", f"{name}.svm", f"{other}.npy", "--option", name), ()),
    ]
    command, own = rng.choice(commands)
    scene.run(*command, codes=(0, 1, 2), own=own)
    for path in scene.here.glob("*.html"):
        bad = control_characters(path.read_text(encoding="utf-8"))
        scene.check(not bad, "control", f"the page has {bad}")


@attack("name-in-table", share=3)
def name_in_table(scene: Scene) -> None:
    """Columns, categories and classes of such names, from reading to the last page."""
    colour, red, yes = (f"{word}{_hostile(scene)}" for word in ("colour", "red", "yes"))
    lines = [f"{_cell(colour)},size,answer"]
    for i in range(80):
        lines.append(f"{_cell(red) if i % 2 else 'blue'},{i % 7},{_cell(yes) if i % 2 else 'no'}")
    scene.put("a.csv", "\n".join(lines).encode() + b"\n")
    label = ("--label", "answer")
    scene.run("train", "a.csv", "--out", "model", *label, *_SHORT, codes=(0, 2), own=("model",))
    if scene.rng.random() < 0.3:
        scene.run("ingest", "a.csv", "set", *label, own=("set",))
        scene.run("train", "a.csv", "--out", "other", "--label", _hostile(scene), *_SHORT, codes=(2,))
    if not (scene.here / "model").exists():
        return
    if scene.rng.random() < 0.3:  # others than the model knows
        scene.put("a.csv", "\n".join(lines).replace("yes", f"maybe{_hostile(scene)}").encode())
    for verb, *more in scene.rng.sample(_ANSWERS, 3):
        scene.run(verb, "model", "a.csv", *more)
    scene.run("report", "model", "--data", "a.csv", "--out", "o.html", "--markdown", "o.md", own=("o.html", "o.md"))
    for path in scene.here.glob("o.*"):
        bad = control_characters(path.read_text(encoding="utf-8"))
        scene.check(not bad, "control", f"{path.name} has {bad}")


def _cell(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
