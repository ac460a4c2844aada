"""Model folders: every file damaged or replaced, every value of their JSON replaced by others."""

from __future__ import annotations

import json

from tests.attack.attack import Scene, attack
from tests.attack.damage import HOSTILE, damaged, misplace, spoil_json, with_other_value
from tests.attack.judge import control_characters

_FIELDS = ("--text-column", "2", "--label-column", "1")
_ROWS = {"rows": ("rows.svm",), "table": ("table.csv",), "urls": ("urls.tsv", *_FIELDS)}
_VERBS = [("predict", "--proba"), ("predict", "--json"), ("evaluate",), ("explain",)]
_FILES = ("config.json", "config.json", "weights.safetensors", "history.jsonl")


def _use(scene: Scene, model: str, codes=(0, 1, 2), blames: str = "") -> None:
    """Ask a model for something. Damage that cannot be noticed gives other answers; they must be in order."""
    file, *options = _ROWS.get(model, ("rows.svm",))
    scene.take(file)
    verb, *more = scene.rng.choice([*([("encode",)] if model == "codes" else _VERBS), ("report",)])
    if verb == "report":
        command = ("report", model, "--data", file, *options, "--out", "o.html")
        scene.run(*command, codes=codes, blames=blames, own=("o.html",))
        page = scene.here / "o.html"
        bad = control_characters(page.read_text(encoding="utf-8")) if page.exists() else []
        scene.check(not bad, "control", f"the page has {bad}")
        scene.check(not page.exists() or "<script>alert" not in page.read_text(encoding="utf-8"), "control", "a script")
        return
    scene.run(verb, model, file, *options, *more, codes=codes, blames=blames)


@attack("model-damaged", share=6)
def model_damaged(scene: Scene) -> None:
    model, name = scene.rng.choice([*_ROWS, "codes"]), scene.rng.choice(_FILES)
    scene.take(model)
    path = scene.here / model / name
    path.write_bytes(damaged(path.read_bytes(), scene.rng))
    _use(scene, model, (0, 2), model)


@attack("model-json", share=8)
def model_json(scene: Scene) -> None:
    """A value of the configuration or of the history is another."""
    model = scene.rng.choice([*_ROWS, "codes"])
    scene.take(model)
    if scene.rng.random() < 0.8:
        for _ in range(scene.rng.choice((1, 1, 2))):
            spoil_json(scene.here / model / "config.json", scene.rng)
    else:
        path = scene.here / model / "history.jsonl"
        lines = path.read_text().splitlines()
        at = scene.rng.randrange(len(lines))
        lines[at] = json.dumps(with_other_value(json.loads(lines[at]), scene.rng))
        path.write_text("\n".join(lines) + "\n")
    _use(scene, model, (0, 2), model)


@attack("model-misplaced", share=2)
def model_misplaced(scene: Scene) -> None:
    model, name = scene.rng.choice([*_ROWS, "codes"]), scene.rng.choice(_FILES)
    scene.take(model)
    misplace(scene.here / model / name, scene.rng)
    _use(scene, model, (0, 1, 2) if name == "history.jsonl" else (1, 2), model)


@attack("model-names", share=6)
def model_names(scene: Scene) -> None:
    """Names of classes and of columns that a terminal would obey: none gets there as it is, nor into a page."""
    model = scene.rng.choice(("table", "urls", "table"))
    scene.take(model)
    path, names = scene.here / model / "config.json", ["yes", "no", "red", "colour", "size", "good", "bad", "answer"]
    text = path.read_text()
    for name in scene.rng.sample(names, 4):
        hostile = scene.rng.choice(HOSTILE)
        text = text.replace(f'"{name}"', json.dumps(name + hostile))
    path.write_text(text)
    _use(scene, model, (0, 2))
