"""Labels that networks learn: numbers of any size, and of which kinds classes are."""

import numpy as np
import pytest
from scipy import sparse

from sketchnet import SketchClassifier, SketchRegressor
from sketchnet.errors import InputError

SMALL = {"n_components": 16, "hidden": (8,), "epochs": 3, "validation_fraction": 0}
RNG = np.random.default_rng(0)
X = sparse.csr_array((RNG.random((200, 30)) < 0.3).astype(np.float32))
Y = X @ RNG.standard_normal(30)


@pytest.mark.parametrize("power", [-900, -700, 510, 1000])  # about 1e-271, 1e-211, 1e153, 1e301
@pytest.mark.parametrize("learn", [SketchRegressor.fit, SketchRegressor.partial_fit])
def test_numbers_of_any_size_are_learnt_alike(power, learn, tmp_path):
    plain, model = (learn(SketchRegressor(**SMALL), X, labels) for labels in (Y, np.ldexp(Y, power)))
    expected = plain.predict(X)
    assert np.std(expected) > 0.01
    assert np.array_equal(model.predict(X), np.ldexp(expected, power))
    model.save(tmp_path / "model")
    assert np.array_equal(SketchRegressor.load(tmp_path / "model").predict(X), model.predict(X))
    assert np.array_equal(model.explain(X).data, np.ldexp(plain.explain(X).data, power))


def test_numbers_too_far_from_those_that_were_learnt():
    with pytest.raises(InputError, match=r"label 1e\+200 of row 3 is more than 1e\+15 deviations"):
        SketchRegressor(**SMALL).fit(X, Y, valid=(X, np.where(np.arange(200) == 3, 1e200, Y)))


@pytest.mark.parametrize("unit", ["D", "s", "ns"])
@pytest.mark.parametrize("kind", ["datetime64", "timedelta64"])
def test_dates_are_refused_before_anything_is_learnt(kind, unit):
    y = (np.arange(200) % 2).astype(f"{kind}[{unit}]")
    message = rf"labels have dtype {kind}\[{unit}\]; "
    for learn in (SketchClassifier.fit, lambda model, *data: model.partial_fit(*data, classes=y[:2])):
        model = SketchClassifier(**SMALL)
        with pytest.raises(InputError, match=f"{message}classes are numbers or texts: give y.astype"):
            learn(model, X, y)
        assert not hasattr(model, "model_")
    with pytest.raises(InputError, match=f"{message}a regression learns numbers: give y.astype"):
        SketchRegressor(**SMALL).fit(X, y)
    with pytest.raises(InputError, match=f"{message}a regression learns numbers"):
        SketchRegressor(**SMALL).fit(X, Y, valid=(X, y))
    texts = SketchClassifier(**SMALL).fit(X, y.astype(str))
    assert set(texts.predict(X)) <= set(y.astype(str))
