"""Experiments and results that are made up, so that a test knows what a page must say of them."""

import math
import random

from reproduction.experiments.experiment import Cell, Claim, Entry, Experiment
from reproduction.experiments.results import Results

HOSTILE = "<script>alert('x')</script>"
SCHEMES = ("Gaussian", "Achlioptas", "Li", "SRHT", "Count Sketch")
CIRCUMSTANCES = {
    "sketchnet": "0.1.0", "python": "3.12.1", "torch": "2.11.0", "numpy": "2.3.0", "machine": "a processor, 2 cores",
    "device": "cpu", "when": "2026-11-16T20:00:00+00:00", "seconds": 12.345678,
}  # fmt: skip


def cell(**settings):
    return Cell("made_up", settings)


def table(scale):
    """Five schemes at four densities, a rival whose numbers are only quoted, and a row that cannot be measured."""
    entries = [
        Entry(scheme, density, cell(scheme=scheme, density=density, scale=scale), published=30.0 - 2 * i - 7 * j)
        for i, scheme in enumerate(SCHEMES)
        for j, density in enumerate(("1e-6", "3e-6", "1e-5", "3e-5"))
    ]
    entries += [Entry("SBM", "1e-6", None, published=44.9), Entry("NORB", "3e-6", cell(scheme="norb"), published=9.5)]
    return [*entries, Entry(HOSTILE, "1e-6", cell(scheme="new"))]


def figure(scale):
    points = [(scheme, k) for scheme in SCHEMES for k in (100, 300, 1000, 3000)]
    return [Entry(scheme, k, cell(scheme=scheme, k=k), published=8.5 if k == 1000 else None) for scheme, k in points]


def times(scale):
    return [
        Entry(scheme, "seconds", cell(scheme=scheme, time=True), "seconds", published)
        for scheme, published in zip(SCHEMES, (5200.0, 610.0, 30.0, None, 0.7))
    ]


def codes(scale):
    return [Entry(name, "AUC", cell(codes=name), "area", 0.4) for name in ("Gaussian", "none")]


def chosen(scale):
    return [Entry(name, n, cell(chosen=name, n=n), "n") for name in ("chi2", "F-score") for n in (50, 200)]


def epochs(scale):
    return [Entry(name, "error", cell(init=name)) for name in ("He", "Gaussian", "Count Sketch", "Li")]


EXPERIMENTS = [
    Experiment(
        "tab:made_up", "Errors of networks on projected synthetic data", table, "density", "error (%)",
        claims=(
            Claim("Dense data is easier.", lambda v: v("Gaussian", "3e-5") < v("Gaussian", "1e-6")),
            Claim("Count Sketch is the worst at every density.", lambda v: v("Count Sketch", "1e-6") > v("Li", "1e-6")),
            Claim("On NORB the error is below 10 %.", lambda v: v("NORB", "3e-6") < 10),
        ),
        note="Sizes are a tenth of the thesis's, & rows are <fewer>.",
    ),
    Experiment(
        "fig:made_up", "Error by the number of projected dimensions", figure, "projected dimensions k", "error (%)",
        claims=(
            Claim("More dimensions help.", lambda v: v("Li", 3000) < v("Li", 100)),
            Claim("What we add: fewer are better.", lambda v: v("Li", 3000) > v("Li", 100), ours=True),
        ),
        seeds={"smoke": 1, "small": 3, "full": 3}, figure=True, log_x=True,
    ),
    Experiment("tab:times", "Times of projecting", times, "time", "seconds", slack=None),
    Experiment("tab:codes", "Retrieval by codes", codes, "measure", "area", slack=0.02, larger_is_better=True),
    Experiment("fig:chosen", "Pixels that selection keeps", chosen, "how many", "features"),
    Experiment(
        "tab:init", "Errors by epoch and initialisation", epochs, "run", "error (%)",
        seeds={"smoke": 1, "small": 4, "full": 4},
    ),
    Experiment(
        "tab:not_run", f"Nothing {HOSTILE}", lambda scale: [Entry("a", 1, cell(never=1), published=1.5)], "x", "y"
    ),
]  # fmt: skip


def found(settings, seed):
    """What a recipe might find."""
    draw = random.Random(f"{sorted(settings.items())} {seed}")
    if "codes" in settings:
        recall = [rank / 200 for rank in range(1, 201)]
        return {"area": 0.4 + draw.gauss(0, 0.05), "recall": recall, "precision": [0.9 / (1 + 4 * r) for r in recall]}
    if "chosen" in settings:
        middle = [number for number in range(784) if math.dist((14, 14), divmod(number, 28)) < 10]
        return {"n": float(settings["n"]), "columns": draw.sample(middle, settings["n"])}
    if "init" in settings:
        errors = [90 / (1 + epoch) + 8 + draw.random() for epoch in range(40)]
        return {"error": errors[-1], "errors": errors}
    if "time" in settings:
        return {"seconds": 10 ** draw.uniform(-2, 3)}
    if settings.get("scheme") == "norb":
        return {"missing": "the files of norb are not in the data folder"}
    if "k" in settings:
        return {"error": 200 / settings["k"] ** 0.5 + draw.random()}
    if "density" in settings:
        first = 30.0 - 2 * SCHEMES.index(settings["scheme"])
        return {"error": first - 7 * ("1e-6", "3e-6", "1e-5", "3e-5").index(settings["density"]) + draw.gauss(0, 0.6)}
    return {"error": draw.uniform(5, 30)}


def write_results(path, scale="small", experiments=EXPERIMENTS[:-1]):
    """A file with a record for all that the experiments ask for."""
    results = Results(path)
    for experiment in experiments:
        for each, seed in experiment.cells(scale):
            if results.get(scale, each, seed) is None:
                results.add(scale, each, seed, found(each.settings, seed), CIRCUMSTANCES)
    return results
