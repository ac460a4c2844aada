"""Labels of chapter 4 about synthetic data and digits: they quote the text, and have claims that can fail."""

import random

import pytest

from reproduction.experiments import find_experiment
from reproduction.experiments.experiment import SCALES, Values
from reproduction.experiments.recipes import RECIPES
from reproduction.experiments.verdict import CONFIRMED, DENIED, OPEN, of_claim

TABLES = {  # each number of the dissertation's that is checked here was typed a second time, from its text
    "tab:dr_accuracy_comparison": {
        ("IG", "ρ = 3e-6"): 50.04, ("F-score", "ρ = 3e-5"): 48.82, ("Chi2", "ρ = 1e-5"): 49.61, ("PCA", "MNIST"): 2.59,
        ("PCA", "ρ = 3e-5"): 4.28, ("Gaussian RP", "ρ = 1e-5"): 21.10, ("Achlioptas' RP", "MNIST"): 0.94,
        ("SRHT RP", "ρ = 3e-5"): 7.84, ("Li's RP", "ρ = 3e-6"): 39.47, ("Count Sketch RP", "ρ = 1e-5"): 22.19,
    },
    "tab:linear_accuracy_comparison": {("LR", "MNIST"): 8.10, ("SVM", "MNIST"): 8.39, ("SVM", "ρ = 1e-5"): 33.73},
    "tab:dr_time_comparison": {
        ("PCA", "ρ = 3e-5"): 4013.6, ("PCA", "ρ = 3e-5, % of total"): 39.8, ("SRHT RP", "ρ = 1e-5"): 109.9,
        ("Li's RP", "MNIST, % of total"): 0.6, ("IG", "ρ = 3e-6"): 1.0, ("F-score", "ρ = 1e-5"): 3.8,
    },
    "tab:linear_time_comparison": {("LR", "MNIST"): 23.9, ("Gaussian RP + DNN", "ρ = 3e-6"): 12000},
    "tab:lrp_normalization_sparse": {
        ("MaxAbs scaling", "synthetic, ρ = 1e-5"): 38.21, ("No normalization", "MNIST"): 1.04,
        ("Batch Normalization", "url"): 3.30, ("Fixed-weight RP layer", "webspam"): 0.36,
    },
    "tab:lrp_normalization_count": {
        ("MaxAbs scaling", "synthetic, ρ = 1e-5"): 40.87, ("Batch Normalization", "synthetic, ρ = 1e-5"): 20.16,
        ("No normalization", "webspam"): 0.47, ("Fixed-weight RP layer", "MNIST"): 1.34,
    },
    "tab:lrp_activation_sparse": {
        ("Sigmoid", "synthetic, ρ = 1e-5"): 50.05, ("LReLU", "webspam"): 0.48, ("ReLU", "MNIST"): 1.25,
        ("Reference RP layer", "synthetic, ρ = 1e-5"): 27.49,
    },
    "tab:lrp_activation_count": {
        ("Sigmoid", "synthetic, ρ = 1e-5"): 28.11, ("LReLU", "MNIST"): 1.51, ("ReLU", "url"): 0.81,
        ("Reference RP layer", "synthetic, ρ = 1e-5"): 20.42,
    },
    "tab:datasets_nnz": {("url", "average"): 71, ("webspam", "maximum"): 46947, ("KDD2010-b", "maximum"): 75},
    "tab:rp_layer_complexity": {("Li's", "construction, by d"): 0.5, ("Count Sketch", "construction, by k"): 0},
}  # fmt: skip
DENSE, CURVES = ("Gaussian", "Achlioptas'", "SRHT"), ("Gaussian", "Achlioptas'", "SRHT", "Li's", "Count Sketch")


def curves(**points):
    """Values of figures: by x one number for dense schemes, one for Li's and one for Count Sketch."""
    found = {}
    for x, (dense, li, count) in points["points"].items():
        found |= {(name, x): dense for name in DENSE} | {("Li's", x): li, ("Count Sketch", x): count}
    return found


def stages(stage, points):
    return {(f"{name}, {stage}", k): value for (name, k), value in curves(points=points).items()}


AGREEING = {  # invented values of which every claim of a figure's is true
    "fig:rpsynth_k": curves(points={10: (40, 48, 38), 100: (30, 40, 29), 1000: (21, 29, 21)}),
    "fig:rpsynth_rho": curves(points={3e-6: (35, 40, 36), 1e-5: (21, 29, 22), 3e-5: (8, 18, 9)}),
    "fig:rpsynth_psi": curves(points={0.05: (18, 30, 18.5), 0.1: (5, 15, 5.5), 0.2: (1, 4, 1)}),
    "fig:rp_k_exec_time": curves(points={10: (1, 0.1, 0.1), 100: (10, 0.2, 0.1), 300: (30, 0.3, 0.1),
                                         1000: (100, 1, 0.1)}),
    "fig:rp_k_exec_time_gen_proj": {
        **stages("generation", {100: (1, 1, 1), 1000: (10, 10, 1)}),
        **stages("multiplication", {100: (1, 1, 1), 1000: (10, 10, 1)}),
        ("SRHT, generation", 1000): 5,
    },
    "fig:fs_mnist": {(name, x): value for name in ("IG", "F-score", "Chi2")
                     for x, value in (("in the central area", 90), ("equal in all images", 0))},
    "fig:lrp_eta": {("synthetic, ρ = 1e-5", eta): error
                    for eta, error in ((0.0, 30), (0.1, 28), (0.25, 26), (1.0, 27))},
    "fig:lrp_avk": {(f"{data}, {name}", k): error for data in ("MNIST", "synthetic, ρ = 1e-5")
                    for name, k, error in (("linear", 1000, 26), ("ReLU", 1000, 30), ("linear", 4000, 26),
                                           ("ReLU", 4000, 25))},
    "tab:datasets_nnz": {("synthetic, ρ = 1e-4", "average"): 100, ("synthetic, ρ = 1e-4", "maximum"): 148,
                         ("tng", "maximum"): 500, ("urls", "maximum"): 300},
    "tab:rp_layer_complexity": {("Count Sketch, a step of learning", "multiplication, by nnz(A)"): 1,
                                ("Count Sketch, a step of learning", "multiplication, by d"): 0},
}  # fmt: skip
LABELS = sorted(TABLES | AGREEING)
# Claims that the dissertation's own tables deny, by the words that they begin with.
SELF_DENIED = {"tab:dr_accuracy_comparison": ("The Count Sketch-based RP yielded the best results",)}


def published_values(label):
    found = {
        (entry.series, entry.x): entry.published
        for entry in find_experiment(label).entries("full")
        if entry.published is not None
    }
    found |= AGREEING.get(label, {})
    return Values({place: [value] for place, value in found.items()})


def test_all_labels_are_here():
    assert len(LABELS) == 18


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("scale", SCALES)
def test_entries_are_whole(label, scale):
    entries = find_experiment(label).entries(scale)
    assert entries
    assert len({(entry.series, entry.x) for entry in entries}) == len(entries)
    assert all(entry.cell is None or entry.cell.recipe in RECIPES for entry in entries)
    assert all(entry.cell is not None or entry.published is not None for entry in entries)


@pytest.mark.parametrize("label", sorted(TABLES))
@pytest.mark.parametrize("scale", SCALES)
def test_published_values_are_the_texts(label, scale):
    quoted = {(entry.series, entry.x): entry.published for entry in find_experiment(label).entries(scale)}
    assert {place: quoted[place] for place in TABLES[label]} == TABLES[label]


@pytest.mark.parametrize("label", LABELS)
def test_claims_agree_with_what_they_were_made_from(label):
    values = published_values(label)
    for claim in find_experiment(label).claims:
        expected = DENIED if claim.text.startswith(SELF_DENIED.get(label, ())) else CONFIRMED
        assert of_claim(claim, values) == expected, claim.text


@pytest.mark.parametrize("label", LABELS)
def test_claims_can_fail_and_can_be_open(label):
    """Of values with places exchanged, or grown, some must break each claim; of no values none can tell."""
    good, draw = published_values(label).runs, random.Random(0)
    broken = []
    for _ in range(300):
        values = [run[0] for run in good.values()]
        draw.shuffle(values)
        factor = draw.choice((1, 1, 7))
        broken.append(Values({place: [factor * value] for place, value in zip(good, values)}))
    for claim in find_experiment(label).claims:
        assert of_claim(claim, Values({})) == OPEN, claim.text
        assert any(of_claim(claim, values) == DENIED for values in broken), claim.text


def test_labels_share_cells():
    def keys(label):
        return {cell.key for cell, _ in find_experiment(label).cells("full")}

    assert keys("tab:dr_time_comparison") < keys("tab:dr_accuracy_comparison")
    assert keys("tab:linear_time_comparison") < keys("tab:linear_accuracy_comparison")
    assert keys("fig:rp_k_exec_time") == keys("fig:rp_k_exec_time_gen_proj")
    for figure in ("fig:rpsynth_k", "fig:rpsynth_rho"):
        assert len(keys(figure) & keys("tab:dr_accuracy_comparison")) >= 5
    assert keys("fig:rpsynth_psi") & keys("fig:rpsynth_rho")


def test_smaller_data_keeps_what_errors_depend_on():
    from reproduction.experiments.sizes import synthetic

    for scale in SCALES:
        size = synthetic(scale, 3e-5)
        assert size["d"] * size["density"] == pytest.approx(30)
        assert size["n"] * size["density"] == pytest.approx(37.5)
