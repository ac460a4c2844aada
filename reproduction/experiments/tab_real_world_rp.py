"""Networks on random projections beside linear and other models, on real sparse data of millions of columns."""

from reproduction.experiments.experiment import Cell, Claim, Entry, Experiment

_SETS = ("webspam", "url", "KDD2010-a", "KDD2010-b")
# Method: (our rival, the thesis's errors on its four data sets). Without a rival they are published only.
_METHODS = {
    "Gaussian RP": ("gaussian", (0.38, 1.03, 10.86, 10.51)),
    "Achlioptas' RP": ("achlioptas", (0.40, 1.12, 10.88, 10.49)),
    "Li's RP": ("li", (0.36, 3.75, 11.95, 10.98)),
    "SRHT RP": ("srht", (0.40, 1.01, 10.86, 10.49)),
    "Count Sketch RP": ("count_sketch", (0.32, 0.96, 11.49, 10.54)),
    "LIBLINEAR": ("liblinear", (7.31, 1.55, 11.44, 11.06)),
    "Pegasos": ("pegasos", (7.28, 1.50, None, None)),
    "SBM": (None, (0.45, None, None, 10.33)),
    "VW": ("vw", (1.52, 1.64, None, 11.09)),
    "ADMM": (None, (0.42, None, None, 10.01)),
    "DADM": (None, (0.40, None, None, 10.43)),
    "newGLMNET": ("liblinear_l1", (0.36, None, None, 13.40)),
    "PmSVM-LUT": (None, (5.72, 1.23, 10.39, 9.99)),
    "AMM": (None, (4.50, 1.34, None, None)),
    "logistic regression": ("logistic", ()),
    "logistic regression, L1": ("logistic_l1", ()),
    "VW --nn": ("vw_nn", ()),
    "XGBoost": ("xgboost", ()),
    "LightGBM": ("lightgbm", ()),
    "MLPClassifier": ("mlp", ()),
    "EmbeddingBag network": ("embedding", ()),
    "sketchnet, default": ("sketchnet", ()),
}
_RP = ("Gaussian RP", "Achlioptas' RP", "SRHT RP", "Count Sketch RP")  # without Li's
_LINEAR = ("LIBLINEAR", "Pegasos", "VW", "newGLMNET")  # of the thesis's rivals, those that are measured here
_URLS, _TNG = "urls", "TNG"
_QUANTITIES = {"": "error", ": fit (s)": "fit_seconds", ": predict (s)": "predict_seconds", ": peak (MiB)": "peak_mib"}
# Training rows of each set (None: all), and seconds in which each method's settings are searched.
_ROWS = {"small": {"urls": 3000, "tng": 2000}, "full": {"urls": None, "tng": None}}
_BUDGET = {"smoke": 0, "small": 8, "full": 90}
_SMOKE = ("Count Sketch RP", "LIBLINEAR", "VW")


def _cell(scale: str, name: str, data: str) -> Cell | None:
    model = _METHODS[name][0]
    if model is None or (scale == "smoke" and name not in _SMOKE):
        return None
    where = {"data": "made", "rows": 300} if scale == "smoke" else {"data": data, "rows": _ROWS[scale][data]}
    return Cell("rival", {**where, "model": model, "budget": _BUDGET[scale]})


def _entries(scale):
    """Errors first, then the rest by data set."""
    quoted = [
        Entry(name, x, None, published=errors[place])
        for place, x in enumerate(_SETS)
        for name, (_, errors) in _METHODS.items()
        if errors and errors[place] is not None
    ]
    columns = [(x, data, suffix) for x, data in ((_URLS, "urls"), (_TNG, "tng")) for suffix in _QUANTITIES]
    return quoted + [
        Entry(name, x + suffix, cell, _QUANTITIES[suffix])
        for x, data, suffix in sorted(columns, key=lambda column: column[2] != "")
        for name in _METHODS
        if (cell := _cell(scale, name, data)) is not None
    ]


def _is_lowest(values, name: str, x: str) -> bool:
    """Undecided while a method that might be lower was not measured, unless another one is lower already."""
    others = [other for other, (model, _) in _METHODS.items() if model is not None]
    if any(values(name, x) > values(other, x) for other in others if (other, x) in values.runs):
        return False
    return values(name, x) <= min(values(other, x) for other in others)


def _alike(values, x: str) -> bool:
    """As far apart as the thesis's four are on its url: from 0.96 to 1.12."""
    errors = [values(name, x) for name in _RP]
    return max(errors) <= 1.17 * min(errors)


EXPERIMENT = Experiment(
    label="tab:real_world_rp",
    title="Classification errors on large-scale real-world data sets",
    entries=_entries,
    unit="error (%), or as the column says",
    slack=None,
    claims=(
        Claim(
            "Gaussian, Achlioptas', SRHT and Count Sketch projections performed similarly well on the real-world "
            "datasets (here: urls and TNG; the worst no more than 17 % above the best, as on the thesis's url).",
            lambda values: _alike(values, _URLS) and _alike(values, _TNG),
        ),
        Claim(
            "Li's method generally performed worse (here: than each of the other four, on urls and TNG).",
            lambda values: all(values("Li's RP", x) > values(name, x) for x in (_URLS, _TNG) for name in _RP),
        ),
        Claim(
            "Networks with randomly projected input significantly improved the current state-of-the-art results on the "
            "url dataset (here: the best of the five is below LIBLINEAR, Pegasos, VW and newGLMNET on urls).",
            lambda values: (
                min(values(name, _URLS) for name in (*_RP, "Li's RP")) < min(values(n, _URLS) for n in _LINEAR)
            ),
        ),
        Claim(
            "On webspam, DNNs with Count Sketch RP layer slightly outperformed the state-of-the-art results obtained "
            "by DADM and newGLMNET (here: newGLMNET's problem, on urls).",
            lambda values: values("Count Sketch RP", _URLS) < values("newGLMNET", _URLS),
        ),
        Claim(
            "Count Sketch RP is highlighted as the best method on url (here: the lowest of all that are measured on "
            "urls).",
            lambda values: _is_lowest(values, "Count Sketch RP", _URLS),
        ),
        Claim(
            "sketchnet with its default settings has the lowest error of all methods on urls. "
            "If denied, the method with the lowest number in that column wins.",
            lambda values: _is_lowest(values, "sketchnet, default", _URLS),
            ours=True,
        ),
        Claim(
            "sketchnet with its default settings has the lowest error of all methods on TNG. "
            "If denied, the method with the lowest number in that column wins.",
            lambda values: _is_lowest(values, "sketchnet, default", _TNG),
            ours=True,
        ),
    ),
    note=(
        "webspam, url and KDD2010 cannot be had here; their columns only quote the thesis, whose rivals' errors are "
        "themselves quoted from papers. Some of those on webspam (LIBLINEAR 7.31, Pegasos 7.28, PmSVM-LUT 5.72, AMM "
        "4.50) look like results on its unigram version, which is another, harder data set. In their place stand urls "
        "(runs of one to six characters, hashed to 2^24 columns; test addresses from other domains) and TNG (words and "
        "pairs of words, TF-IDF, 20 classes). Every method's settings are chosen on the same tenth of the training "
        "rows within the same time, then it is fitted to all of them; time and peak memory are those of a process of "
        "its own, rows and libraries included. newGLMNET is LIBLINEAR's solver of the same problem, the L1-regularised "
        "L2-loss SVM. RP networks here have two hidden layers of 1000 units and are not pretrained; the thesis's have "
        "3000 and are. XGBoost, LightGBM and MLPClassifier get columns chosen by chi-square, or hashed, as validation "
        "says. SBM, ADMM, DADM, PmSVM-LUT and AMM are published only."
    ),
)
