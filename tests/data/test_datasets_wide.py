"""Wide sets: small svmlight files under the publishers' names, addresses as text, and generated data."""

import bz2
import io
import lzma
import tarfile

import numpy as np
import pytest

from sketchnet.data.datasets import load_dataset
from sketchnet.data.datasets.wide import registered_domain
from sketchnet.errors import InputError, StorageError


def load(name, folder, **options):
    return load_dataset(name, folder=folder, download=False, **options)


def sizes(data):
    return len(data.train), len(data.valid), len(data.test)


def rows(start, stop, labels=(-1, 1)):
    """Row r has its number as the value of feature 1, so that a row can be told wherever it lands."""
    return "".join(f"{labels[r % 2]:+d} 1:{r + 1} {r + 2}:0.5\n" for r in range(start, stop)).encode()


def numbers(part):
    return part.X.data[::2].astype(int) - 1


def check(data, n_columns):
    for part in (data.train, data.valid, data.test):
        assert part.X.format == "csr"
        assert part.X.dtype == np.float32
        assert part.X.shape == (len(part), n_columns)
        assert np.array_equal(part.y, numbers(part) % 2)
        assert np.issubdtype(part.y.dtype, np.integer)
        assert np.array_equal(part.X.indices[1::2], numbers(part) + 1)
        assert not part.X.indices[::2].any()


@pytest.mark.parametrize("layout", ["folder", "subfolder", "archive"])
def test_url_by_days(tmp_path, layout):
    days = {f"Day{day}.svm": rows(10 * day, 10 * day + 10) for day in range(121)}
    if layout == "archive":
        with tarfile.open(tmp_path / "url_svmlight.tar.gz", "w:gz") as tar:
            for name, data in sorted(days.items()):  # Day1, Day10, Day100, ...
                member = tarfile.TarInfo(f"url_svmlight/{name}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    else:
        folder = tmp_path if layout == "folder" else tmp_path / "url_svmlight"
        folder.mkdir(exist_ok=True)
        for name, data in days.items():
            (folder / name).write_bytes(data)
    data = load("url", tmp_path)
    assert sizes(data) == (900, 100, 210)
    check(data, 3_231_961)
    assert numbers(data.test).tolist() == list(range(1000, 1210))
    assert sorted([*numbers(data.train), *numbers(data.valid)]) == list(range(1000))
    if layout == "archive":  # unpacked once, nothing half done beside it
        assert sorted(p.name for p in tmp_path.iterdir()) == ["url_svmlight", "url_svmlight.tar.gz"]
        (tmp_path / "url_svmlight.tar.gz").unlink()
        assert sizes(load("url", tmp_path)) == (900, 100, 210)


def test_url_archive_with_a_day_missing(tmp_path):
    with tarfile.open(tmp_path / "url_svmlight.tar.gz", "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("../Day0.svm"))
    with pytest.raises(InputError, match="url_svmlight.tar.gz holds no Day1.svm"):
        load("url", tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["url_svmlight.tar.gz"]
    assert not (tmp_path.parent / "Day0.svm").exists()


def test_url_combined(tmp_path):
    (tmp_path / "url_combined.bz2").write_bytes(bz2.compress(rows(0, 1000)))
    data = load("url", tmp_path)
    assert sizes(data) == (742, 83, 175)  # 1,976,130 of 2,396,130 for training, a tenth of them for validation
    check(data, 3_231_961)
    assert numbers(data.test).tolist() == list(range(825, 1000))


@pytest.mark.parametrize("suffix", ["", ".bz2", ".xz"])
def test_webspam(tmp_path, suffix):
    path = tmp_path / f"webspam_wc_normalized_trigram.svm{suffix}"
    pack = {"": bytes, ".bz2": bz2.compress, ".xz": lzma.compress}[suffix]
    path.write_bytes(pack(rows(0, 100)))
    data = load("webspam", tmp_path)
    assert sizes(data) == (72, 8, 20)
    check(data, 16_609_143)
    parts = [numbers(part) for part in (data.train, data.valid, data.test)]
    assert sorted(np.concatenate(parts)) == list(range(100))
    other = load("webspam", tmp_path, random_state=3)
    assert not np.array_equal(numbers(other.test), parts[2])


@pytest.mark.parametrize(
    ("name", "file", "n_columns", "n_valid"),
    [("kdd2010-a", "kdda", 20_216_830, 61), ("kdd2010-b", "kddb", 29_890_095, 39)],
)
def test_kdd2010(tmp_path, name, file, n_columns, n_valid):
    (tmp_path / f"{file}.bz2").write_bytes(bz2.compress(rows(0, 1000, labels=(0, 1))))
    (tmp_path / f"{file}.t").write_bytes(rows(1000, 1060, labels=(0, 1)))
    data = load(name, tmp_path)
    assert sizes(data) == (1000 - n_valid, n_valid, 60)  # in proportion, as many as the test part has
    check(data, n_columns)
    assert numbers(data.test).tolist() == list(range(1000, 1060))


def test_errors_name_file_and_line(tmp_path):
    (tmp_path / "kdda").write_bytes(rows(0, 10, labels=(0, 1)) + b"1 20216831:1\n")
    (tmp_path / "kdda.t").write_bytes(rows(0, 10, labels=(0, 1)))
    with pytest.raises(InputError, match="kdda.*11"):
        load("kdd2010-a", tmp_path)
    path = tmp_path / "webspam_wc_normalized_trigram.svm.xz"
    path.write_bytes(lzma.compress(rows(0, 100))[:-20])
    with pytest.raises(InputError, match=path.name):
        load("webspam", tmp_path)


def test_labels_of_another_kind(tmp_path):
    (tmp_path / "kdda").write_bytes(rows(0, 10, labels=(0, 1)) + b"2 1:1\n")
    (tmp_path / "kdda.t").write_bytes(rows(0, 10, labels=(0, 1)))
    with pytest.raises(InputError, match="kdda: row 10 has label 2.* allowed are -1 or 0, and 1"):
        load("kdd2010-a", tmp_path)


# ---------------------------------------------------------------- urls


def test_urls(tmp_path):
    lines = ["split\tlabel\tsource\turl"]
    lines += [f"train\t{n % 2}\tebbu\tpage.site{n // 4}.co.uk/{n}?q=\xe9" for n in range(400)]
    lines += [f"test\t1\tnina\tother.org/{n}" for n in range(20)]
    (tmp_path / "urls.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    data = load("urls", tmp_path)
    assert sizes(data) == (360, 40, 20)
    assert data.test.X[3] == "other.org/3"
    assert data.test.y.tolist() == [1] * 20
    assert all(int(url.split("/")[1].split("?")[0]) % 2 == y for url, y in zip(data.train.X, data.train.y))
    domains = [{registered_domain(url) for url in part.X} for part in (data.train, data.valid)]
    assert len(domains[1]) == 10
    assert not domains[0] & domains[1]


@pytest.mark.parametrize(
    ("url", "domain"),
    [
        ("a.b.example.com/x/y.z", "example.com"),
        ("Example.COM:8080?u=http://other.org", "example.com"),
        ("www.bbc.co.uk", "bbc.co.uk"),
        ("news.example.at/1", "example.at"),
        ("co.uk", "co.uk"),
        ("192.168.0.1/a.b", "192.168.0.1"),
        ("localhost/x", "localhost"),
        ("", ""),
    ],
)
def test_registered_domain(url, domain):
    assert registered_domain(url) == domain


@pytest.mark.parametrize(
    "line", [b"train\t1\turl", b"valid\t1\ta\tb", b"train\t-1\ta\tb", b"train\t1\ta\tb\tc", b"\xff"]
)
def test_bad_line_of_urls(tmp_path, line):
    (tmp_path / "urls.tsv").write_bytes(b"train\t1\ta\tb.org\n" + line + b"\n")
    with pytest.raises(InputError, match="urls.tsv, line 2: "):
        load("urls", tmp_path)


def test_urls_are_nowhere_published(tmp_path):
    with pytest.raises(StorageError, match="urls.tsv is in none of .*make urls.tsv with the columns"):
        load_dataset("urls", folder=tmp_path)


# ---------------------------------------------------------------- synthetic


def test_synthetic():
    data = load_dataset("synthetic", n=1000, d=500, density=0.02, random_state=5)
    assert sizes(data) == (720, 80, 200)
    assert data.train.X.shape == (720, 500)
    assert data.train.X.dtype == np.float32
    assert sum(part.y.sum() for part in (data.train, data.valid, data.test)) == 500
    again = load_dataset("synthetic", n=1000, d=500, density=0.02, random_state=5)
    assert (again.train.X != data.train.X).nnz == 0


def test_options_are_checked(tmp_path):
    with pytest.raises(InputError, match="n: no such option of data set urls; it takes none"):
        load_dataset("urls", folder=tmp_path, n=3)
    with pytest.raises(InputError, match="rho: .* it takes n, d, density, significant"):
        load_dataset("synthetic", rho=3)
