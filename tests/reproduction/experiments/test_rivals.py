"""The recipe `rival`, and the label that asks for it."""

import pytest

from reproduction.experiments import find_experiment
from reproduction.experiments.experiment import Values
from reproduction.experiments.recipes import find_recipe
from reproduction.experiments.verdict import CONFIRMED, DENIED, OPEN, of_claim
from sketchnet.errors import InputError

TABLE = find_experiment("tab:real_world_rp")
RIVAL = find_recipe("rival")


def test_measures_text_that_is_made():
    found = RIVAL(seed=0, device="cpu", data="made", model="vw", rows=200, budget=0.5)
    assert found["error"] < 15
    assert {"valid_error", "fit_seconds", "predict_seconds", "search_seconds", "peak_mib"} <= found.keys()


def test_refuses():
    with pytest.raises(InputError, match="data='kdd' is not possible; allowed are urls, tng, made"):
        RIVAL(seed=0, device="cpu", data="kdd", model="vw", rows=None, budget=1)


def test_a_data_set_that_is_not_there_is_an_input_error(tmp_path, monkeypatch):
    monkeypatch.setenv("SKETCHNET_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("sketchnet.data.datasets.fetch.download", _unreachable)
    with pytest.raises(InputError, match="urls"):
        RIVAL(seed=0, device="cpu", data="urls", model="vw", rows=17, budget=1)


def _unreachable(remote, target, progress):
    from sketchnet.errors import StorageError

    raise StorageError("no network")


@pytest.mark.parametrize("scale", ["smoke", "small", "full"])
def test_entries(scale):
    entries = TABLE.entries(scale)
    places = [(entry.series, entry.x) for entry in entries]
    assert len(set(places)) == len(places)
    published = {(entry.series, entry.x): entry.published for entry in entries if entry.published is not None}
    assert len(published) == 4 * 6 + 2 + 2 + 3 + 2 + 2 + 2 + 4 + 2
    assert published["Count Sketch RP", "url"] == 0.96
    assert all(entry.cell is None for entry in entries if entry.published is not None)
    measured = {entry.series for entry in entries if entry.cell is not None}
    assert not measured & {"SBM", "ADMM", "DADM", "PmSVM-LUT", "AMM"}
    if scale != "smoke":
        assert len(measured) == 17
        assert len(TABLE.cells(scale)) == 2 * 17


def test_claims_can_hold_and_fail():
    errors = dict.fromkeys({entry.series for entry in TABLE.entries("small") if entry.cell is not None}, 5.0)
    good = errors | {"Count Sketch RP": 3.2, "Gaussian RP": 3.3, "SRHT RP": 3.4, "Achlioptas' RP": 3.5, "Li's RP": 4.0}
    verdicts = [of_claim(claim, _values(good)) for claim in TABLE.claims]
    assert verdicts == [CONFIRMED] * 5 + [DENIED] * 2
    ours = good | {"sketchnet, default": 3.0, "Li's RP": 3.3, "Gaussian RP": 9.0, "newGLMNET": 3.1}
    verdicts = [of_claim(claim, _values(ours)) for claim in TABLE.claims]
    assert verdicts == [DENIED] * 5 + [CONFIRMED] * 2
    del ours["XGBoost"]  # which might be lower still
    assert [of_claim(claim, _values(ours)) for claim in TABLE.claims] == [DENIED] * 5 + [OPEN] * 2
    assert [of_claim(claim, Values({})) for claim in TABLE.claims] == [OPEN] * 7
    assert [claim.ours for claim in TABLE.claims] == [False] * 5 + [True] * 2


def _values(errors: dict) -> Values:
    return Values({(name, x): [error] for name, error in errors.items() for x in ("urls", "TNG")})
