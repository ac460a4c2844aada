"""A network trained and tested, as the recipes of classifiers measure it."""

from __future__ import annotations

from dataclasses import dataclass

from reproduction.experiments.recipes.identity import Identity
from sketchnet.pretraining import Pretrained
from sketchnet.training import Examples, Supervised, Task, build_model, choose_device, evaluate, train

_MEMORY = "16GiB"  # for projected rows: a million of them take 4


@dataclass(frozen=True)
class Parts:
    """Rows to learn from, to choose the epoch by (None: the last one counts) and to test on."""

    task: Task
    learnt: Examples
    valid: Examples | None
    test: Examples


def train_and_test(parts: Parts, settings: dict, seed: int, device: str, *, reduced: bool = False) -> dict:
    """Errors in %, and seconds: of training, up to the best epoch ("total_seconds"), of projecting and normalising
    ("reduce_seconds").

    `reduced`: the rows were reduced before, so there is no projection in front of the network.
    """
    task, learnt = parts.task, parts.learnt
    if reduced:
        settings = {**settings, "learn": False, "n_components": learnt.data.n_columns}
    # Cells say "wide": False, from the time when a linear model could stand beside a network: results are found by it.
    settings = {name: value for name, value in settings.items() if name != "wide"}
    model = build_model(task, learnt.data, settings, seed)
    if reduced:
        model.network.projection.operator = Identity(learnt.data.n_columns).sample(learnt.data.n_columns)
    model.network.to(choose_device(device, model, learnt.data.n_rows))
    if not model.network.config.learn:
        model.network.project(learnt.data.rows(slice(0, 2)))  # what is compiled at first use is not timed
    course = Pretrained() if model.training.pretrain else Supervised()
    train(model, learnt, parts.valid, course=course, memory=_MEMORY)
    model.network.eval()
    found = {"error": 100 * evaluate(model.network, task, parts.test)[0]}
    epochs = [record for record in model.history if "epoch" in record and "loss" in record]
    end = model.history[-1]
    if parts.valid is not None:
        found["valid_error"] = 100 * min(record["valid_error"] for record in epochs)
    reducing = ("reduce", "normalise")  # moments are taken in passing
    reduce, total = sum(r["seconds"] for r in model.history if r.get("stage") in reducing), end["seconds_to_best"]
    times = {"seconds": end["seconds"], "total_seconds": total, "reduce_seconds": reduce}
    return (
        found | times | {"reduce_share": 100 * reduce / total, "best_epoch": end["best_epoch"], "epochs": len(epochs)}
    )
