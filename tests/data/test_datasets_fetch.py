"""Finding, downloading and listing data sets. Downloads come from a small server on this machine."""

import gzip
import hashlib
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer, SimpleHTTPRequestHandler

import numpy as np
import pytest

from sketchnet.data import datasets
from sketchnet.data.datasets import fetch, list_datasets, load_dataset
from sketchnet.data.datasets.dataset import share, split_rows
from sketchnet.data.datasets.fetch import Remote, download
from sketchnet.errors import InputError, StorageError
from tests.data.image_files import idx

NAMES = ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.delenv("SKETCHNET_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def serve(handler):
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    return server, thread, f"http://127.0.0.1:{server.server_port}/"


@pytest.fixture
def site(tmp_path):
    """A folder that is served, and its address."""
    folder = tmp_path / "site"
    folder.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    server, thread, address = serve(partial(Quiet, directory=str(folder)))
    yield folder, address
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def mnist(site, monkeypatch):
    """A small MNIST on the served site, in the registry instead of the published one."""
    folder, address = site
    rng = np.random.default_rng(0)
    contents = {
        NAMES[0]: rng.integers(0, 256, (12, 2, 2)),
        NAMES[1]: rng.integers(0, 10, 12),
        NAMES[2]: rng.integers(0, 256, (5, 2, 2)),
        NAMES[3]: rng.integers(0, 10, 5),
    }
    remotes = []
    for name, array in contents.items():
        data = gzip.compress(idx(array))
        (folder / f"{name}.gz").write_bytes(data)
        remotes.append(Remote(f"{name}.gz", (f"{address}{name}.gz",), "md5:" + hashlib.md5(data).hexdigest()))
    recipe = datasets.replace(datasets.REGISTRY["mnist"], remotes=tuple(remotes))
    monkeypatch.setitem(datasets.REGISTRY, "mnist", recipe)
    return folder, recipe


def test_downloads_once(mnist, tmp_path):
    seen = []
    data = load_dataset("mnist", progress=lambda done, total: seen.append((done, total)))
    assert (len(data.train), len(data.valid), len(data.test)) == (10, 2, 5)
    cache = tmp_path / "cache" / "sketchnet" / "mnist"
    assert sorted(p.name for p in cache.iterdir()) == sorted(f"{name}.gz" for name in NAMES)
    assert len(seen) == 4
    assert all(done == total > 0 for done, total in seen)
    for path in mnist[0].iterdir():
        path.unlink()
    assert np.array_equal(load_dataset("mnist").test.X, data.test.X)


def test_downloads_only_what_is_missing(mnist, tmp_path, monkeypatch):
    root = tmp_path / "data"
    (root / "mnist").mkdir(parents=True)
    monkeypatch.setenv("SKETCHNET_DATA", str(root))
    for name in NAMES[:3]:  # these are there, unpacked, and gone from the site
        data = (mnist[0] / f"{name}.gz").read_bytes()
        (root / "mnist" / name).write_bytes(gzip.decompress(data))
        (mnist[0] / f"{name}.gz").unlink()
    load_dataset("mnist")
    cache = tmp_path / "cache" / "sketchnet" / "mnist"
    assert [p.name for p in cache.iterdir()] == [f"{NAMES[3]}.gz"]


def test_files_may_lie_in_the_folder_of_all_data_sets(mnist, tmp_path, monkeypatch):
    root = tmp_path / "data"
    root.mkdir()
    monkeypatch.setenv("SKETCHNET_DATA", str(root))
    for name in NAMES:
        (root / f"{name}.gz").write_bytes((mnist[0] / f"{name}.gz").read_bytes())
    expected = load_dataset("mnist", download=False).test.X
    assert {info.name: info.path for info in list_datasets()}["mnist"] == root
    (root / "mnist").mkdir()  # whose files come first
    (root / f"{NAMES[2]}.gz").rename(root / "mnist" / f"{NAMES[2]}.gz")
    (root / f"{NAMES[2]}.gz").write_bytes(b"another")
    assert np.array_equal(load_dataset("mnist", download=False).test.X, expected)


def test_a_named_folder_is_the_only_one(mnist, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    load_dataset("mnist", folder=folder)
    assert len(list(folder.iterdir())) == 4
    assert not (tmp_path / "cache").exists()
    (tmp_path / "root").mkdir()
    folder.rename(tmp_path / "root" / "mnist")
    load_dataset("mnist", folder=tmp_path / "root", download=False)
    with pytest.raises(InputError, match="is not there; it must hold the files of data set mnist"):
        load_dataset("mnist", folder=folder)


def test_says_what_to_put_where(tmp_path):
    with pytest.raises(StorageError) as caught:
        load_dataset("cifar10", download=False)
    message = str(caught.value)
    assert "download=False" in message
    assert f"Put into {tmp_path / 'cache' / 'sketchnet' / 'cifar10'}: cifar-10-binary.tar.gz" in message
    assert "from https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz" in message
    with pytest.raises(
        StorageError, match=r"training-01-dat.mat.gz from https.*; and 18 more, to .*testing-02-cat.mat.gz"
    ):
        load_dataset("norb", download=False)


def test_a_server_without_the_file(mnist, tmp_path):
    (mnist[0] / f"{NAMES[1]}.gz").unlink()
    with pytest.raises(StorageError, match=rf"HTTP Error 404.*Put into {tmp_path}.*{NAMES[1]}.gz from http"):
        load_dataset("mnist")
    assert not list((tmp_path / "cache").rglob("*.part"))


def test_no_network(tmp_path):
    server, thread, address = serve(BaseHTTPRequestHandler)
    server.shutdown()
    thread.join()
    server.server_close()  # nobody listens there now
    with pytest.raises(StorageError, match=f"{address}a.gz: .*refused"):
        download(Remote("a.gz", (f"{address}a.gz",)), tmp_path)
    assert not list(tmp_path.iterdir())


def test_checksums(site, tmp_path):
    folder, address = site
    (folder / "a.bin").write_bytes(b"published")
    good = Remote("a.bin", (f"{address}a.bin",), "sha256:" + hashlib.sha256(b"published").hexdigest())
    assert download(good, tmp_path / "to").read_bytes() == b"published"
    bad = Remote("b.bin", (f"{address}a.bin",), "md5:" + "0" * 32)
    with pytest.raises(StorageError, match="checksum md5:.* differs from md5:0000.*published"):
        download(bad, tmp_path / "to")
    assert [p.name for p in (tmp_path / "to").iterdir()] == ["a.bin"]
    # the second address is asked when the first gives something else
    (folder / "other.bin").write_bytes(b"error page")
    both = Remote("c.bin", (f"{address}other.bin", f"{address}a.bin"), good.checksum)
    assert download(both, tmp_path / "to").read_bytes() == b"published"


def test_first_download_is_trusted_and_kept(site, tmp_path):
    folder, address = site
    (folder / "a.bz2").write_bytes(b"BZh first")
    remote = Remote("a.bz2", (f"{address}a.bz2",))
    path = download(remote, tmp_path / "to")
    record = path.with_name("a.bz2.sha256")
    assert record.read_text() == f"{hashlib.sha256(b'BZh first').hexdigest()}  a.bz2\n"
    path.unlink()
    download(remote, tmp_path / "to")
    path.unlink()
    (folder / "a.bz2").write_bytes(b"BZh second")
    with pytest.raises(StorageError, match="differs from .* kept from the first download in .*a.bz2.sha256"):
        download(remote, tmp_path / "to")
    assert not path.exists()


def test_an_error_page_is_no_data(site, tmp_path):
    folder, address = site
    for name in ("a.gz", "a.bz2", "a.xz", "a.mat", "a.tgz"):
        (folder / name).write_bytes(b"<html>busy</html>")
        with pytest.raises(StorageError, match="it begins with b'<h"):
            download(Remote(name, (address + name,)), tmp_path / "to")
    assert not list((tmp_path / "to").iterdir())


def test_a_connection_that_breaks(tmp_path):
    class Breaks(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"BZh")

        def log_message(self, *args):
            pass

    server, thread, address = serve(Breaks)
    with pytest.raises(StorageError, match="the connection ended after 3 of 1,000 bytes|IncompleteRead"):
        download(Remote("a.bz2", (f"{address}a.bz2",)), tmp_path)
    server.shutdown()
    thread.join()
    server.server_close()
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written(site, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="cannot write"):
        download(Remote("a.gz", (f"{site[1]}a.gz",)), tmp_path / "file")


def test_progress_on_a_terminal(site, tmp_path, monkeypatch, capsys):
    folder, address = site
    (folder / "a.bin").write_bytes(bytes(600_000))
    monkeypatch.setattr(fetch.sys.stderr, "isatty", lambda: True, raising=False)
    download(Remote("a.bin", (f"{address}a.bin",)), tmp_path / "to")
    shown = capsys.readouterr().err
    assert shown.endswith("\ra.bin: 0.6 of 0.6 MB (100 %)\n")
    assert shown.count("\r") == 3


def test_unknown_names_and_seeds():
    with pytest.raises(InputError, match=r"there is no data set 'minst'; there are mnist, norb"):
        load_dataset("minst")
    for seed in (-1, 2**64, 1.5, None):
        with pytest.raises(InputError, match="random_state=.* is not possible"):
            load_dataset("synthetic", n=10, d=10, density=0.5, random_state=seed)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        *((name, "cifar10") for name in ("CIFAR-10", "cifar_10", "Cifar 10")),
        ("CIFAR-100", "cifar100"),
        *((name, "kdd2010-a") for name in ("kdd2010a", "KDD2010-A")),
        ("MNIST", "mnist"),
    ],
)
def test_names_are_compared_without_case_and_hyphens(name, meant, tmp_path):
    with pytest.raises(StorageError, match=f"data set {meant} is not complete"):
        load_dataset(name, folder=tmp_path, download=False)


def test_the_list(tmp_path, monkeypatch):
    monkeypatch.setenv("SKETCHNET_DATA", str(tmp_path))
    (tmp_path / "urls").mkdir()
    (tmp_path / "urls" / "urls.tsv").write_text("")
    infos = {info.name: info for info in list_datasets()}
    assert len(infos) == 14
    assert {name for name, info in infos.items() if info.present} == {"urls", "synthetic"}
    assert infos["urls"].path == tmp_path / "urls"
    assert infos["mnist"].path is None
    url = infos["url"]
    assert (url.n_train, url.n_test, url.n_features, url.n_classes) == (1_976_130, 420_000, 3_231_961, 2)
    assert url.density == pytest.approx(228_964_773 / (1_976_130 * 3_231_961), rel=3e-3)  # non-zeros in the source


def test_every_published_set_says_whence():
    for name, recipe in datasets.REGISTRY.items():
        files = {datasets._plain(remote) for remote in recipe.remotes}
        if name in ("synthetic", "urls"):
            assert not files
        else:
            assert any(files == set(layout) for layout in recipe.layouts), name
        for remote in recipe.remotes:
            assert all(url.startswith(("http://", "https://")) for url in remote.urls)
            if remote.checksum:
                algorithm, _, digits = remote.checksum.partition(":")
                assert len(bytes.fromhex(digits)) == hashlib.new(algorithm).digest_size


def test_published_sizes_of_the_parts():
    """Complete files give the dissertation's numbers exactly, though small ones give shares."""
    assert share(60_000, 10_000, 60_000) == 10_000
    assert share(291_600, 58_320, 291_600) == 58_320
    assert share(11_314, 3_000, 11_314) == 3_000
    assert share(2_396_130, 1_976_130, 2_396_130) == 1_976_130
    assert share(350_000, 1, 5) == 70_000
    assert share(804_414, 1, 2) == 402_207
    assert (share(73_257, 4_000, 73_257) // 10, share(531_131, 2_000, 531_131) // 10) == (400, 200)


def test_split_rows():
    first, second, rest = split_rows(1000, [200, 100], 7)
    assert (len(first), len(second), len(rest)) == (200, 100, 700)
    assert sorted([*first, *second, *rest]) == list(range(1000))
    assert all(np.all(np.diff(part) > 0) for part in (first, second, rest))
    # fixed forever: experiments name a seed
    assert split_rows(20, [5], 0)[0].tolist() == [2, 5, 9, 10, 16]
