"""The figure of initialisations is a whole file and shows each scheme beside the reference."""

import numpy as np
import pytest
from matplotlib import image
from matplotlib.axes import Axes

from sketchnet.errors import InputError
from sketchnet.report.initialisation_figure import draw_initialisation


def made_up(seeds, epochs=12, seed=0):
    return np.random.default_rng(seed).random((seeds, epochs)) / np.arange(1, epochs + 1)


def test_lines_and_bands(tmp_path, monkeypatch):
    lines, filled = [], []
    plot, fill = Axes.plot, Axes.fill_between
    monkeypatch.setattr(Axes, "plot", lambda axes, *of, **how: (lines.append((of, how)), plot(axes, *of, **how))[1])
    monkeypatch.setattr(Axes, "fill_between", lambda axes, *of, **how: (filled.append(of), fill(axes, *of, **how))[1])
    runs = {"a": made_up(3), "he": made_up(5, seed=1), "b": made_up(1), "c": made_up(2), "d": made_up(2)}
    draw_initialisation(runs, "he", tmp_path / "x.png")
    labels = [how["label"] for _, how in lines]
    assert labels == ["he (5)", "a (3)", "he (5)", "b (1)", "he (5)", "c (2)", "he (5)", "d (2)"]
    (epochs, median), _ = lines[0]
    assert epochs.tolist() == list(range(1, 13))
    np.testing.assert_allclose(median, 100 * np.median(runs["he"], axis=0))
    np.testing.assert_allclose(filled[0][1:], 100 * np.quantile(runs["he"], [0.25, 0.75], axis=0))
    assert image.imread(tmp_path / "x.png").std() > 0.05


def test_bad_input(tmp_path):
    with pytest.raises(InputError, match="need he"):
        draw_initialisation({"he": made_up(2)}, "he", tmp_path / "x.png")
    with pytest.raises(InputError, match="must end in"):
        draw_initialisation({"he": made_up(2), "a": made_up(2)}, "he", tmp_path / "x.gif")
