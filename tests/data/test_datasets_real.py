"""The real files, where $SKETCHNET_DATA has them."""

import numpy as np
import pytest

from sketchnet.data.datasets import list_datasets, load_dataset
from sketchnet.data.datasets.wide import registered_domain


@pytest.fixture
def load():
    def load(name):
        if not next(info.present for info in list_datasets() if info.name == name):
            pytest.skip(f"the files of {name} are not in $SKETCHNET_DATA/{name}")
        return load_dataset(name, download=False)

    return load


def sizes(data):
    return len(data.train), len(data.valid), len(data.test)


def test_mnist(load):
    data = load("mnist")
    assert sizes(data) == (50_000, 10_000, 10_000)
    non_zeros = np.count_nonzero(data.train.X) + np.count_nonzero(data.valid.X)
    assert round(non_zeros / (60_000 * 784), 3) == 0.191
    assert data.train.X.max() == 1
    assert data.test.y[:5].tolist() == [7, 2, 1, 0, 4]  # as in every book
    assert np.bincount(np.concatenate([data.train.y, data.valid.y])).tolist()[:3] == [5923, 6742, 5958]


def test_cifar10(load):
    data = load("cifar10")
    assert sizes(data) == (45_000, 5_000, 10_000)
    assert np.bincount(data.test.y).tolist() == [1000] * 10
    assert [data.class_names[y] for y in data.test.y[:4]] == ["cat", "ship", "ship", "airplane"]
    assert np.abs(data.train.X.mean(axis=0)).max() < 1e-4
    assert data.test.X.std() == pytest.approx(1, abs=0.02)


def test_tng(load):
    data = load("tng")
    assert sizes(data) == (8_314, 3_000, 7_532)
    assert data.n_classes == 20
    assert data.class_names[0] == "alt.atheism"
    assert all("From:" in text for text in data.test.X[:100])
    assert np.bincount(data.test.y)[0] == 319


def test_urls(load):
    data = load("urls")
    assert len(data.train) + len(data.valid) == 71_152
    assert len(data.test) == 17_063
    assert len(data.valid) == 7_115
    assert data.test.y.mean() == pytest.approx(0.2868, abs=5e-5)  # 1 is malicious, the rarer
    train, valid = ({registered_domain(url) for url in part.X} for part in (data.train, data.valid))
    assert not train & valid
    # The file's own split took every address with a second `//` for one domain and put all into the test part.
    odd = [url for url in data.test.X if "//" in url]
    assert len(odd) == 703
    assert not (train | valid) & {registered_domain(url) for url in data.test.X if "//" not in url}


def test_reuters(load):
    data = load("reuters")
    assert sizes(data) == (7_074, 786, 3_445)
    assert data.n_classes == 119
    counts = dict(zip(data.class_names, data.train.y.sum(axis=0, dtype=int)))
    assert max(counts, key=counts.get) == "earn"
    assert np.all(np.diff(data.test.y.indptr) > 0)
