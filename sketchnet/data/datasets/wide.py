"""Wide and sparse: url, webspam, KDD2010-a and -b from svmlight files, `urls` as strings, and the synthetic data."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from sketchnet.data.datasets.dataset import Dataset, DatasetInfo, Split, hold_out, share, shuffled, split_rows
from sketchnet.data.datasets.fetch import Remote
from sketchnet.data.datasets.files import members, open_file
from sketchnet.data.datasets.recipe import Recipe
from sketchnet.errors import InputError
from sketchnet.storage import replacing

_DAYS = tuple(f"Day{day}.svm" for day in range(121))
_URL_ARCHIVE = "url_svmlight.tar.gz"
_URL = ("http://www.sysnet.ucsd.edu/projects/url/", "https://archive.ics.uci.edu/ml/machine-learning-databases/url/")
_URL_ROWS, _URL_TRAIN_ROWS = 2_396_130, 1_976_130
_WEBSPAM = "webspam_wc_normalized_trigram.svm"
_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"
_N_COLUMNS = {"url": 3_231_961, "webspam": 16_609_143, "kdd2010-a": 20_216_830, "kdd2010-b": 29_890_095}


def load_url(files: dict[str, Path], random_state: int) -> Dataset:
    """The first 100 days are the training part, the other 21 the test part. Class 1 is malicious.

    10 % of the training rows, at random, are the validation part. LIBSVM's `url_combined` has no days: its first
    1,976,130 rows, which are as many as in 100 days, are taken for them.
    """
    if "url_combined" in files:
        whole = _read("url", files["url_combined"])
        n_train = share(len(whole), _URL_TRAIN_ROWS, _URL_ROWS)
        train, test = whole.take(np.arange(n_train)), whole.take(np.arange(n_train, len(whole)))
    else:
        days = [files[name] for name in _DAYS] if _DAYS[0] in files else _unpacked_days(files[_URL_ARCHIVE])
        train, test = _read("url", days[:100]), _read("url", days[100:])
    return Dataset("url", *hold_out(train, 1, 10, random_state), test, 2, class_names=("benign", "malicious"))


def load_webspam(files: dict[str, Path], random_state: int) -> Dataset:
    """Normalised trigrams. A random 20 % are the test part, a random 10 % of the others the validation part."""
    whole = _read("webspam", files[_WEBSPAM])
    n_test = share(len(whole), 1, 5)
    test, valid, train = split_rows(len(whole), [n_test, share(len(whole) - n_test, 1, 10)], random_state)
    parts = whole.take(train), whole.take(valid), whole.take(test)
    return Dataset("webspam", *parts, 2, class_names=("ham", "spam"))


def load_kdd2010_a(files: dict[str, Path], random_state: int) -> Dataset:
    """The published split. As many random training rows as the test part has, 510,302, are the validation part."""
    train, valid = hold_out(_read("kdd2010-a", files["kdda"]), 510_302, 8_407_752, random_state)
    return Dataset("kdd2010-a", train, valid, _read("kdd2010-a", files["kdda.t"]), 2)


def load_kdd2010_b(files: dict[str, Path], random_state: int) -> Dataset:
    """The published split. As many random training rows as the test part has, 748,401, are the validation part."""
    train, valid = hold_out(_read("kdd2010-b", files["kddb"]), 748_401, 19_264_097, random_state)
    return Dataset("kdd2010-b", train, valid, _read("kdd2010-b", files["kddb.t"]), 2)


def _read(name: str, paths: Path | list[Path]) -> Split:
    """svmlight files with ids from 1 and two labels, of which the greater is class 1."""
    from sketchnet.data.svmlight import read_svmlight

    batch = read_svmlight(paths, n_columns=_N_COLUMNS[name], base=1, labels="single")
    assert batch.labels is not None
    first = paths if isinstance(paths, Path) else paths[0]
    # url and webspam have -1 and 1, the others 0 and 1.
    odd = np.flatnonzero(~np.isin(batch.labels, (-1, 0, 1)))
    if len(odd):
        raise InputError(f"{first}: row {odd[0]} has label {batch.labels[odd[0]]}; allowed are -1 or 0, and 1")
    return _split(batch)


def _split(batch) -> Split:
    return Split(batch.scipy(), (batch.labels > 0).astype(np.int64))


def _unpacked_days(archive: Path) -> list[Path]:
    """The day files, unpacked beside the archive once and for all: they appear under their folder's name together."""
    folder = archive.parent / "url_svmlight"
    with replacing(folder) as new:
        new.mkdir()
        for parts, data in members(archive, lambda parts: parts[-1] in _DAYS):
            (new / parts[-1]).write_bytes(data)
        missing = [name for name in _DAYS if not (new / name).exists()]
        if missing:
            raise InputError(f"{archive} holds no {missing[0]}; it must hold Day0.svm to Day120.svm")
    return [folder / name for name in _DAYS]


def load_urls(files: dict[str, Path], random_state: int) -> Dataset:
    """Addresses as strings; class 1 is malicious. The file says which part a line belongs to, by registered domain.

    The validation part, 10 % of the training lines, is taken by domain too: a random one would have pages of sites
    that are trained on, and promise too much.
    """
    path = files["urls.tsv"]
    texts: dict[str, list[str]] = {"train": [], "test": []}
    labels: dict[str, list[int]] = {"train": [], "test": []}
    with open_file(path) as file:
        for at, raw in enumerate(file, 1):
            fields = _text(raw, path, at).rstrip("\r\n").split("\t")
            if at == 1 and fields == ["split", "label", "source", "url"]:
                continue
            if len(fields) != 4 or fields[0] not in texts or fields[1] not in ("0", "1"):
                wanted = "split (train or test), label (0 or 1), source and url, with tabs between"
                raise InputError(f"{path}, line {at}: {raw[:80]!r} is not possible; a line has {wanted}")
            texts[fields[0]].append(fields[3])
            labels[fields[0]].append(int(fields[1]))
    train, test = (Split(texts[part], np.array(labels[part], np.int64)) for part in ("train", "test"))
    valid = _some_domains([registered_domain(url) for url in train.X], share(len(train), 1, 10), random_state)
    parts = (train.take(np.flatnonzero(~valid)), train.take(np.flatnonzero(valid)), test)
    return Dataset("urls", *parts, 2, class_names=("benign", "malicious"))


def _text(raw: bytes, path: Path, line: int) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}, line {line}: {raw[:80]!r} is not UTF-8: {error.reason}") from error


def registered_domain(url: str) -> str:
    """The last two names of the host, or three where a name of up to three letters precedes a country: `a.co.uk`.

    A rule of thumb, and the one by which the file was split.
    """
    host = re.split(r"[/?#:]", url, maxsplit=1)[0].lower().rstrip(".")
    names = host.split(".")
    if names[-1].isdecimal():
        return host
    country = len(names) > 2 and len(names[-1]) == 2 and len(names[-2]) <= 3
    return ".".join(names[-3:] if country else names[-2:])


def _some_domains(domains: list[str], size: int, random_state: int) -> np.ndarray:
    """A mask of at most `size` rows: random domains, each in whole, as long as they fit."""
    names, inverse, counts = np.unique(np.array(domains, str), return_inverse=True, return_counts=True)
    chosen = np.zeros(len(names), bool)
    for number in shuffled(len(names), random_state):
        if counts[number] <= size:
            chosen[number] = True
            size -= counts[number]
    return chosen[inverse]


def load_synthetic(
    files: dict[str, Path],
    random_state: int,
    n: int = 1_250_000,
    d: int = 1_000_000,
    density: float = 1e-5,
    significant: float = 0.2,
) -> Dataset:
    """Made, not read. The last 20 % of the rows are the test part, a random 10 % of the others the validation part."""
    from sketchnet.data.synthetic import Synthetic

    source = Synthetic(n, d, density, significant, random_state)
    train, test = (_split(source.rows(span)) for span in (slice(0, source.n_train), slice(source.n_train, n)))
    return Dataset("synthetic", *hold_out(train, 1, 10, random_state), test, 2)


def _libsvm(*names: str) -> tuple[Remote, ...]:
    return tuple(Remote(name, (_LIBSVM + name,)) for name in names)


RECIPES = (
    Recipe(
        DatasetInfo("url", "malicious addresses, features", 1_976_130, 420_000, _N_COLUMNS["url"], 2, 3.58e-5),
        (_DAYS, (_URL_ARCHIVE,), ("url_combined",)),
        load_url,
        (Remote(_URL_ARCHIVE, tuple(base + _URL_ARCHIVE for base in _URL)),),
        subfolders=("url_svmlight",),
    ),
    Recipe(
        DatasetInfo("webspam", "web pages, trigrams", 280_000, 70_000, _N_COLUMNS["webspam"], 2, 2.24e-4),
        ((_WEBSPAM,),),
        load_webspam,
        _libsvm(f"{_WEBSPAM}.xz"),
    ),
    Recipe(
        DatasetInfo("kdd2010-a", "students, algebra", 8_407_752, 510_302, _N_COLUMNS["kdd2010-a"], 2, 1.80e-6),
        (("kdda", "kdda.t"),),
        load_kdd2010_a,
        _libsvm("kdda.bz2", "kdda.t.bz2"),
    ),
    Recipe(
        DatasetInfo("kdd2010-b", "students, bridge", 19_264_097, 748_401, _N_COLUMNS["kdd2010-b"], 2, 9.84e-7),
        (("kddb", "kddb.t"),),
        load_kdd2010_b,
        _libsvm("kddb.bz2", "kddb.t.bz2"),
    ),
    Recipe(
        DatasetInfo("urls", "malicious addresses, as text", 71_152, 17_063, None, 2, None),
        (("urls.tsv",),),
        load_urls,
        advice="it is not published as one file: make urls.tsv with the columns split, label, source and url",
    ),
    Recipe(
        DatasetInfo("synthetic", "generated", 1_000_000, 250_000, 1_000_000, 2, "1e-06 to 1.7e-04"),
        ((),),
        load_synthetic,
        options=("n", "d", "density", "significant"),
    ),
)
