"""Labels on document retrieval: what they ask for, what their claims say of made-up areas, and the smallest scale."""

import json

import numpy as np
import pytest

from reproduction.experiments import SCALES, find_experiment
from reproduction.experiments.document_sets import PROJECTIONS, REFERENCE
from reproduction.experiments.experiment import Values
from reproduction.experiments.recipes import bags, find_recipe
from reproduction.experiments.verdict import CONFIRMED, DENIED, OPEN, of_claim
from sketchnet.data.bag_of_words import BagOfWords

LABELS = (
    "tab:tng_rp_auc", "tab:rcv1_rp_auc", "fig:rp_auc", "tab:rp_init_auc", "fig:rp_init_tng", "fig:rp_init_rcv1",
)  # fmt: skip


@pytest.mark.parametrize("label", LABELS)
def test_entries(label):
    experiment = find_experiment(label)
    assert experiment.label == label
    assert experiment.larger_is_better
    for scale in SCALES:
        entries = experiment.entries(scale)
        places = [(entry.series, entry.x) for entry in entries]
        assert len(set(places)) == len(places)
        assert all(json.loads(json.dumps(cell.settings)) == cell.settings for cell, _ in experiment.cells(scale))
        values = Values({place: [0.3] for place in places})
        for claim in experiment.claims:
            assert of_claim(claim, values) in (CONFIRMED, DENIED, OPEN)
            assert of_claim(claim, Values({})) == OPEN


def test_tables_have_what_was_printed():
    for label, reference, gaussian, sketch in (
        ("tab:tng_rp_auc", 0.373, (0.341, 0.366, 0.336, 0.333), (0.327, 0.314, 0.311, 0.313)),
        ("tab:rcv1_rp_auc", 0.315, (0.306, 0.300, 0.296, 0.295), (0.254, 0.260, 0.280, 0.278)),
    ):
        for scale in ("small", "full"):
            printed = {(entry.series, entry.x): entry.published for entry in find_experiment(label).entries(scale)}
            assert len(printed) == 21
            assert printed[REFERENCE, 2000] == reference
            assert tuple(printed["Gaussian", words] for words in (4000, 6000, 8000, 10_000)) == gaussian
            assert tuple(printed["Count Sketch", words] for words in (4000, 6000, 8000, 10_000)) == sketch
        assert len(find_experiment(label).cells("full")) == 21
    printed = {(e.series, e.x): e.published for e in find_experiment("tab:rp_init_auc").entries("full")}
    assert printed["Count Sketch", "TNG"] == 0.381
    assert printed["Li's", "RCV1"] == 0.311


def verdicts(label, areas):
    found = Values({place: [area] for place, area in areas.items()})
    return [of_claim(claim, found) for claim in find_experiment(label).claims]


def printed_areas(label):
    return {(e.series, e.x): e.published for e in find_experiment(label).entries("full") if e.published is not None}


def test_claims_on_sizes_hold_of_the_printed_tables_and_can_fail():
    for label in ("tab:tng_rp_auc", "tab:rcv1_rp_auc"):
        printed = printed_areas(label)
        assert verdicts(label, printed) == [CONFIRMED, CONFIRMED, CONFIRMED]
        better = {**printed, ("Li's", 10_000): 0.5}
        assert verdicts(label, better)[0] == DENIED
        growing = {(series, words): words / 1e6 for series, words in printed}
        assert verdicts(label, growing)[1:] == [DENIED, DENIED]
        few = {place: area for place, area in printed.items() if place[1] in (2000, 4000)}
        assert verdicts(label, few)[1:] == [OPEN, OPEN]


def test_claims_on_starts_hold_of_the_printed_table_and_can_fail():
    printed = printed_areas("tab:rp_init_auc")
    found = {(series, {"RCV1": "Reuters"}.get(x, x)): area for (series, x), area in printed.items()}
    assert verdicts("tab:rp_init_auc", found) == [CONFIRMED, CONFIRMED]
    assert verdicts("fig:rp_init_tng", found) == [CONFIRMED, CONFIRMED]
    assert verdicts("fig:rp_init_rcv1", found) == [CONFIRMED]
    found["Count Sketch", "TNG"] = found["Li's", "Reuters"] = 0.2
    assert verdicts("tab:rp_init_auc", found) == [DENIED, DENIED]
    assert verdicts("fig:rp_init_tng", found) == [DENIED, DENIED]
    assert verdicts("fig:rp_init_rcv1", found) == [DENIED]


def test_claims_on_curves():
    heights = {REFERENCE: (0.37, 0.7, 0.3), "Gaussian": (0.36, 0.6, 0.29)}
    areas = {}
    for place in ("TNG", "Reuters"):
        for name in (REFERENCE, *PROJECTIONS):
            found = heights.get(name, (0.3, 0.6, 0.29))
            areas |= {(name, f"{place}, {what}"): x for what, x in zip(("area", "recall 0.1", "recall 0.5"), found)}
    assert verdicts("fig:rp_auc", areas) == [CONFIRMED, CONFIRMED]
    assert verdicts("fig:rp_auc", {**areas, ("SRHT", "TNG, area"): 0.365}) == [DENIED, CONFIRMED]
    assert verdicts("fig:rp_auc", {**areas, ("Gaussian", "Reuters, recall 0.1"): 0.69}) == [CONFIRMED, DENIED]


@pytest.mark.parametrize("label", ["tab:tng_rp_auc", "tab:rp_init_auc"])
def test_the_smallest_scale(label):
    """Every kind of cell once, and they find documents better than chance does."""
    seen = set()
    for cell, seed in find_experiment(label).cells("smoke"):
        kind = cell.settings.get("scheme"), cell.settings.get("init")
        if kind in seen:
            continue
        seen.add(kind)
        found = find_recipe(cell.recipe)(seed=seed, device="cpu", **cell.settings)
        assert json.loads(json.dumps(found)) == found
        assert 1 >= found["area"] > 0.25  # six topics: by chance about 0.17
        assert 1 >= found["mean_average_precision"] > 0.25
        assert len(found["recall"]) == len(found["precision"]) == 50
        assert sorted(found["recall"]) == found["recall"]
        assert all(0 <= x <= 1 for x in (*found["recall"], *found["precision"]))
        assert found["precision"][0] > found["precision_at_50"] > 0.2
        assert found["precision_at_10"] > found["precision_at_50"]
        assert np.trapezoid(found["precision"], found["recall"]) == pytest.approx(found["area"], abs=0.02)
    assert len(seen) == {"tab:tng_rp_auc": 6, "tab:rp_init_auc": 5}[label]


def test_bags_are_those_of_the_library(monkeypatch, tmp_path):
    """Of any size, from one file; made once."""
    texts = [f"{'fish ' * (i % 5)} river {'boat ' * (i % 3)} net{chr(97 + i % 7)}x" for i in range(40)]

    class Part:
        def __init__(self, X):
            self.X, self.y = X, [i % 2 for i in range(len(X))]

    class Data:
        train, valid, test = Part(texts[:20]), Part(texts[20:30]), Part(texts[30:])

    asked = []
    monkeypatch.setenv("SKETCHNET_DATA", str(tmp_path))
    monkeypatch.setattr(bags, "load_dataset", lambda name: asked.append(name) or Data)
    for words, tfidf in ((3, False), (5, True), (100, True)):
        library = BagOfWords(words, tfidf=tfidf).fit(texts[:30])
        found = bags.bag("tng", words, tfidf)
        for rows, documents in ((found.train, texts[:30]), (found.test, texts[30:])):
            np.testing.assert_allclose(rows.toarray(), library.transform(documents).toarray(), rtol=1e-6)
        assert found.labels.tolist() == [i % 2 for i in range(10)]
    assert asked == ["tng"]
    bags.prepare_bags()
    assert asked == ["tng", "reuters"]
