"""The figure is a whole file, shows each curve, and asks for no display."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib import image
from matplotlib.axes import Axes

from sketchnet.errors import InputError, StorageError
from sketchnet.evaluation.retrieval import RetrievalResult, retrieval
from sketchnet.report.retrieval_figure import draw_retrieval


def result(n=50):
    rng = np.random.default_rng(0)
    return retrieval(rng.standard_normal((n, 4)), rng.integers(0, 3, n))


def made_up(recall):
    return RetrievalResult(np.linspace(1, 0.1, len(recall)), recall, 0.25, 0.5, len(recall) + 1, 0)


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg"])
def test_files(suffix, tmp_path):
    path = tmp_path / f"curve{suffix}"
    path.write_text("old")
    draw_retrieval({"a": result(), "costs $5 and $6": result(20)}, path)
    assert path.stat().st_size > 5000
    assert list(tmp_path.iterdir()) == [path]
    if suffix == ".png":
        assert image.imread(path).std() > 0.05
    if suffix == ".svg":
        assert b"<svg" in path.read_bytes()


def test_lines_and_areas(tmp_path, monkeypatch):
    drawn, plot = [], Axes.plot

    def noted(axes, *args, **more):
        drawn.append((args, more))
        return plot(axes, *args, **more)

    monkeypatch.setattr(Axes, "plot", noted)
    late = made_up(np.concatenate([[0, 0], np.linspace(0.1, 1, 8)]))  # nothing is found at the first ranks
    long = made_up(np.linspace(1e-5, 1, 100_000))
    short = made_up(np.ones(1))
    draw_retrieval({"late": late, "long": long, "short": short, "x": result()}, tmp_path / "x.png")
    assert [more["label"] for _, more in drawn][:3] == [f"{name} (area 0.2500)" for name in ("late", "long", "short")]
    np.testing.assert_allclose(drawn[0][0], [100 * late.recall, 100 * late.precision])
    recall, precision = drawn[1][0]
    assert 500 < len(recall) <= 2000
    assert (recall[0], recall[-1]) == (100 * long.recall[0], 100)
    np.testing.assert_allclose(np.interp(recall, 100 * long.recall, 100 * long.precision), precision)


def test_bad_input(tmp_path):
    with pytest.raises(InputError, match="no results"):
        draw_retrieval({}, tmp_path / "x.png")
    with pytest.raises(InputError, match=r"must end in .png, .pdf, .svg"):
        draw_retrieval({"a": result()}, tmp_path / "x.gif")
    with pytest.raises(StorageError, match="cannot write"):
        draw_retrieval({"a": result()}, tmp_path / "none" / "x.png")


def test_matplotlib_is_loaded_when_needed_and_pyplot_never(tmp_path):
    code = f"""if True:
        import sys, numpy as np
        from sketchnet.report.retrieval_figure import RetrievalResult, draw_retrieval
        print("matplotlib" in sys.modules)
        result = RetrievalResult(np.ones(2), np.array([.5, 1]), .5, 1., 3, 0)
        draw_retrieval({{"a": result}}, {str(tmp_path / "x.png")!r})
        print("matplotlib" in sys.modules, "matplotlib.pyplot" in sys.modules)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "False"]
