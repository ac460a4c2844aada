"""Initialisation of images' and digits' networks: recipes at the smallest scale, and claims that hold and that fail."""

import math

import pytest
import torch

from reproduction.experiments import find_experiment, tab_rp_init_cifar, tab_rp_init_mnist
from reproduction.experiments.experiment import Values
from reproduction.experiments.recipes import find_recipe, initialisation
from reproduction.experiments.verdict import CONFIRMED, DENIED, OPEN, of_claim
from reproduction.images.training import train_together
from sketchnet.errors import InputError

LABELS = ("tab:rp_init_cifar", "tab:rp_init_mnist")


@pytest.mark.parametrize("label", LABELS)
def test_smoke(label):
    experiment = find_experiment(label)
    for cell, seed in experiment.cells("smoke"):
        found = find_recipe(cell.recipe)(seed=seed, device="cpu", **cell.settings)
        assert len(found["errors"]) == cell.settings["epochs"]
        assert 0 <= found["error"] <= 100
        assert min(found["errors"]) <= found["error"] <= max(found["errors"])


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("scale", ["small", "full"])
def test_settings_are_the_recipes(label, scale):
    """Those of scales that no test measures: known to the recipe, apart from each other, the first the reference."""
    entries = find_experiment(label).entries(scale)
    assert len({entry.cell.key for entry in entries}) == len(entries)
    names = find_recipe(entries[0].cell.recipe).__kwdefaults__.keys() | {"scheme"}
    for entry in entries:
        assert entry.cell.settings.keys() <= names
    assert entries[0].cell.settings["scheme"] in ("he", None)


def test_alone_or_together_is_the_same_run():
    cell = find_experiment(LABELS[0]).entries("smoke")[1].cell
    found = find_recipe("image_network")(seed=3, device="cpu", **cell.settings)
    train, test = initialisation.images_of("generated", 256)
    sizes = {name: cell.settings[name] for name in ("depth", "width", "survival", "epochs")}
    config = initialisation.image_config("srht_sparse", {}, 3, 256, **sizes)
    assert config.options == {"n_examples": 256}
    errors = train_together([config, initialisation.image_config("he", {}, 3, 256, **sizes)], train, test)[0]
    assert initialisation.image_result(errors, 0.0)["errors"] == found["errors"]
    assert train_together([config], train, test)[0] == errors


def test_images_of_nothing_known():
    with pytest.raises(InputError, match="cifar10 or generated"):
        initialisation.images_of("cifar11")


def test_runs_are_independent():
    """No two schemes or seeds share their numbers, and the options count."""
    how = [("he", {}), ("srht", {}), ("count_sketch", {"gamma": 0.1}), ("count_sketch", {"gamma": 0.3})]
    configs = [initialisation.image_config(*one, seed, 100) for one in how for seed in range(10)]
    assert len({config.seed for config in configs}) == 40
    assert initialisation.image_config("orthogonal", {}, 0, 100).options == {"gain": math.sqrt(2)}


def test_the_result_is_the_mean_of_the_last_epochs():
    found = initialisation.image_result([0.9] * 10 + [0.1, 0.2, 0.3, 0.4, 0.5], 1.0)
    assert found["error"] == pytest.approx(30)
    assert initialisation.image_result([0.25], 1.0)["error"] == 25


def test_digits_do_not_disturb_torchs_generator_and_the_seed_decides():
    recipe = find_recipe("initialised_digits")
    how = {"device": "cpu", "data": "generated", "hidden": [16, 16], "pretrain": 2, "epochs": 6, "dropout": 0.1}
    before = torch.random.get_rng_state()
    first, again, other = (recipe(seed=seed, scheme="li", **how)["errors"] for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert first == again != other
    assert first[-1] < 50  # chance is two thirds


# -- claims


def values(x, **runs):
    return Values({(series, x): [base + 0.01 * i for i in range(10)] for series, base in runs.items()})


def verdicts(experiment, found):
    return [of_claim(claim, found) for claim in experiment.claims]


def cifar(**changed):
    base = dict.fromkeys(tab_rp_init_cifar.SCHEMES, 10.0) | changed
    return verdicts(tab_rp_init_cifar.EXPERIMENT, values("CIFAR-10", **base))


def test_cifar_claims():
    as_printed = {"SRHT": 9.5, "SRHT, subsampled": 9.0, "orthogonal": 9.0, "Count Sketch, gamma 0.1": 9.1}
    as_printed |= {"Count Sketch, gamma 2": 89.9, "Count Sketch, gamma 0.03": 12.0}
    assert cifar(**as_printed) == [CONFIRMED] * 7
    # SRHT no better, orthogonal no better, Achlioptas significant, Li worse, Count Sketch behind, and it converges
    denied = {"Achlioptas": 9.0, "Li": 12.0, "Count Sketch, gamma 0.1": 13.0, "Count Sketch, gamma 0.3": 13.0}
    assert cifar(**denied) == [DENIED] * 7
    few = Values({(series, "CIFAR-10"): [1.0] for series in tab_rp_init_cifar.SCHEMES})
    assert verdicts(tab_rp_init_cifar.EXPERIMENT, few)[:4] == [OPEN] * 4
    assert verdicts(tab_rp_init_cifar.EXPERIMENT, Values({})) == [OPEN] * 7


def test_mnist_claims():
    def found(**changed):
        base = dict.fromkeys(tab_rp_init_mnist.SCHEMES, 1.0) | changed
        return verdicts(tab_rp_init_mnist.EXPERIMENT, values("MNIST", **base))

    assert found(Achlioptas=1.001, SRHT=1.001, Li=1.001, **{"Count Sketch": 2.0}) == [CONFIRMED] * 4
    assert found(Achlioptas=0.5) == [DENIED] * 4
