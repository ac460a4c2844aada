"""train --task autoencoder, train --pretrain, encode, evaluate --retrieval and similar, and what they say to bad input.

Documents of three kinds are drawn: half of a document's words are of its kind, the others of no kind.
"""

import importlib
import json
import random
import shutil
import signal

import numpy as np
import pytest
from safetensors.torch import load_file, save_file
from scipy import sparse

from sketchnet import SketchAutoencoder
from sketchnet.data import open_shards
from sketchnet.evaluation.retrieval import retrieval
from sketchnet.training.model import load_model
from tests.cli.command_line import bad, contents, good, sketchnet
from tests.nn.conftest import one_thread

__all__ = ["one_thread"]

N, KINDS, OWN, COMMON, LENGTH = 150, 3, 8, 16, 24
AUTO = "--task autoencoder --hidden 16 --codes 4 --batch-size 32 --set feature_dropout=0".split()
TINY = [*AUTO, *"--epochs 30 --set rate=0.01 --set pretrain=20".split()]
PLAIN = [*AUTO, *"--no-pretrain --epochs 15 --set rate=0.01".split()]
QUICK = [*AUTO, *"--epochs 4 --set pretrain=3".split()]
RETRIEVAL = "--retrieval --device cpu --json".split()
WORDS = "--text --text-column 2 --analyzer word --ngrams 1 --columns 64".split()


def documents(draw, n):
    """(kinds, counts of words by document)."""
    kinds = [draw.randrange(KINDS) for _ in range(n)]
    counts = np.zeros((n, KINDS * OWN + COMMON), int)
    for row, kind in zip(counts, kinds):
        for _ in range(LENGTH):
            own = draw.random() < 0.5
            row[kind * OWN + draw.randrange(OWN) if own else KINDS * OWN + draw.randrange(COMMON)] += 1
    return kinds, counts


def svmlight(labels, counts):
    rows = (" ".join(f"{i + 1}:{row[i]}" for i in np.flatnonzero(row)) for row in counts)
    return "".join(f"{label} {row}\n" for label, row in zip(labels, rows))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    draw = random.Random(0)
    kinds, counts = documents(draw, 2 * N)
    (folder / "train.svm").write_text(svmlight(kinds, counts))
    (folder / "bare.svm").write_text(svmlight([""] * len(kinds), counts))
    kinds, counts = documents(draw, N)
    (folder / "test.svm").write_text(svmlight([10 - 15 * kind for kind in kinds], counts))  # 10, -5 and -20
    (folder / "test-bare.svm").write_text(svmlight([""] * N, counts))
    sets = [",".join(map(str, sorted({kind, *draw.sample(range(3, 6), 1)}))) for kind in kinds]
    (folder / "sets.svm").write_text(svmlight(sets, counts))
    words = [" ".join(f"w{i}" for i in np.repeat(np.arange(len(row)), row)) for row in counts]
    (folder / "words.tsv").write_text("".join(f"{'abc'[kind]}\t{text}\n" for kind, text in zip(kinds, words)))
    cells = (",".join(map(str, [*row, "abc"[kind]])) for kind, row in zip(kinds, counts))
    names = ",".join([*(f"n{i}" for i in range(counts.shape[1])), "kind"])
    (folder / "table.csv").write_text("\n".join([names, *cells]) + "\n")
    bare = (line.rpartition(",")[0] for line in (folder / "table.csv").read_text().splitlines())
    (folder / "bare.csv").write_text("\n".join(bare) + "\n")
    good("train", "train.svm", "--out", "model", *TINY, cwd=folder)
    good(
        "train",
        "train.svm",
        "--out",
        "binary",
        *AUTO,
        *"--binary-codes --no-pretrain --epochs 10 --set noise=0".split(),
        cwd=folder,
    )
    tiny = "--components 16 --hidden 8 --epochs 2 --set sparse_rate=0.01 --set wide_rate=0.01".split()
    good("train", "train.svm", "--out", "classes", *tiny, cwd=folder)
    np.savez(folder / "kinds.npz", kinds=kinds)
    return folder


@pytest.fixture
def here(world, tmp_path):
    """A copy to spoil, with paths as short."""
    shutil.copytree(world, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture(scope="module")
def kinds(world):
    return np.load(world / "kinds.npz")["kinds"]


def numbers(lines):
    return np.array([line.split("\t") for line in lines.splitlines()], float)


def history(folder):
    """Times aside."""
    records = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    return [{key: value for key, value in record.items() if key != "seconds"} for record in records]


# -- from rows to codes, and to what they find


def test_codes_find_documents_of_the_same_kind(here, kinds):
    """Random codes would find documents of each kind as often as they occur, a third of the time."""
    assert good("encode", "model", "test.svm", "--output", "codes.npy", cwd=here) == f"codes.npy: {N} x 4, float32\n"
    codes = np.load(here / "codes.npy")
    found = json.loads(good("evaluate", "model", "test.svm", *RETRIEVAL, cwd=here))
    expected, chance = retrieval(codes, kinds), retrieval(np.random.default_rng(0).normal(size=(N, 4)), kinds)
    assert chance.area < 0.45
    assert found["area"] > 0.8
    assert found["area"] == pytest.approx(expected.area, abs=1e-6)
    assert found["mean_average_precision"] == pytest.approx(expected.mean_average_precision, abs=1e-6)
    assert (found["rows"], found["queries"], found["left_out"]) == (N, N, 0)
    for recall, precision in found["precision_at_recall"].items():
        rank = next(rank for rank, reached in enumerate(expected.recall) if reached >= float(recall) - 1e-6)
        assert precision == pytest.approx(expected.precision[rank], abs=1e-5)
    neighbours = numbers(good("similar", "model", "test.svm", "--query", "test.svm", "-n", "2", cwd=here))
    second = neighbours[neighbours[:, 1] == 2]  # the first is the query itself
    assert np.mean(kinds[second[:, 0].astype(int)] == kinds[second[:, 2].astype(int)]) > 0.8


def test_the_curve_is_drawn_and_printed(here):
    shown = good("evaluate", "model", "test.svm", *RETRIEVAL[:-1], "--plot", "curve.png", cwd=here)
    found = json.loads(good("evaluate", "model", "test.svm", *RETRIEVAL, cwd=here))
    lines = [line.split() for line in shown.splitlines()]
    assert ["area", f"{found['area']:.5g}"] in lines
    assert ["left", "out", "0"] in lines
    assert f"precision at 10 % recall {found['precision_at_recall']['0.1']:.5g}".split() in lines
    assert (here / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_rows_of_no_kind_are_left_out(here):
    with open(here / "test.svm", "a") as file:
        file.write("99 1:1\n")
    found = json.loads(good("evaluate", "model", "test.svm", *RETRIEVAL, cwd=here))
    assert (found["rows"], found["queries"], found["left_out"]) == (N + 1, N, 1)


def test_several_labels_count_by_the_share_in_common(here):
    good("encode", "model", "sets.svm", "--output", "codes.npy", cwd=here)
    good("ingest", "sets.svm", "sets", cwd=here)
    labels = open_shards(here / "sets").labels
    assert sparse.issparse(labels)
    expected = retrieval(np.load(here / "codes.npy"), labels)
    for path in ("sets.svm", "sets"):
        found = json.loads(good("evaluate", "model", path, *RETRIEVAL, cwd=here))
        assert found["area"] == pytest.approx(expected.area, abs=1e-6)


def test_words_and_tables(here):
    """The labels of tables and of text are for retrieval alone, and need not be known to the model."""
    good("train", "words.tsv", "--out", "words", *WORDS, *PLAIN, cwd=here)
    fields = ["--text-column", "2", "--label-column", "1"]
    found = json.loads(good("evaluate", "words", "words.tsv", *fields, *RETRIEVAL, cwd=here))
    assert found["area"] > 0.8
    good("train", "table.csv", "--label", "kind", "--out", "table", *PLAIN, cwd=here)
    good("train", "bare.csv", "--out", "bare", *PLAIN, cwd=here)
    weights = [(here / name / "weights.safetensors").read_bytes() for name in ("table", "bare")]
    assert weights[0] == weights[1]
    areas = [
        json.loads(good("evaluate", name, "table.csv", *label, *RETRIEVAL, cwd=here))["area"]
        for name, label in (("table", []), ("bare", ["--label", "kind"]))
    ]
    assert areas[0] == areas[1] > 0.8
    bad("evaluate", "bare", "bare.csv", "--retrieval", message="bare.csv has no labels to compare", cwd=here)
    assert good("encode", "table", "table.csv", cwd=here) == good("encode", "bare", "bare.csv", cwd=here)


# -- encode


def test_codes_in_every_form(here):
    expected = SketchAutoencoder.load(here / "model").transform(open_shards_of(here, "test.svm"))
    good("encode", "model", "test.svm", "--output", "codes.npy", cwd=here)
    codes = np.load(here / "codes.npy", allow_pickle=False)
    assert (codes.shape, codes.dtype) == ((N, 4), np.float32)
    np.testing.assert_allclose(codes, expected, rtol=1e-4, atol=1e-5)
    lines = good("encode", "model", "test.svm", cwd=here)
    np.testing.assert_array_equal(numbers(lines).astype(np.float32), codes)
    rows = [json.loads(line)["code"] for line in good("encode", "model", "test.svm", "--json", cwd=here).splitlines()]
    np.testing.assert_array_equal(np.array(rows, np.float32), codes)
    for path, text in (("test-bare.svm", b""), ("shards", b""), ("-", (here / "test.svm").read_bytes())):
        np.testing.assert_allclose(numbers(good("encode", "model", path, cwd=here, stdin=text)), codes, atol=1e-5)
    told = json.loads(good("encode", "model", "test.svm", "--output", "codes.npy", "--json", cwd=here))
    assert told == {"output": "codes.npy", "rows": N, "codes": 4, "dtype": "float32"}


def open_shards_of(folder, name):
    good("ingest", name, "shards", cwd=folder)
    return open_shards(folder / "shards")


def test_the_model_of_an_estimator(here):
    """It knows how the rows of a data set on disk were read, here that the first column is called 1."""
    rows = open_shards_of(here, "test.svm")
    estimator = SketchAutoencoder(4, hidden=(8,), epochs=1, pretrain=1).fit(rows)
    estimator.save(here / "saved")
    lines = "".join(line + "\n" for line in (here / "test.svm").read_text().splitlines() if " 1:" not in line)
    (here / "few.svm").write_text(lines)
    few = [i for i, line in enumerate((here / "test.svm").read_text().splitlines()) if " 1:" not in line]
    codes = numbers(good("encode", "saved", "few.svm", cwd=here))
    np.testing.assert_allclose(codes, estimator.transform(rows)[few], atol=1e-5)
    for labels in ("test.svm", "sets.svm"):  # whatever the labels of its own rows were like
        assert json.loads(good("evaluate", "saved", labels, *RETRIEVAL, cwd=here))["rows"] == N


def test_bits(here):
    good("encode", "binary", "test.svm", "--bits", "--output", "bits.npy", cwd=here)
    bits, codes = np.load(here / "bits.npy"), numbers(good("encode", "binary", "test.svm", cwd=here))
    assert bits.dtype == np.uint8
    assert ((codes >= 0) & (codes <= 1)).all()
    np.testing.assert_array_equal(bits, codes > 0.5)
    assert ((codes > 0.4) & (codes < 0.5)).any()  # the test could fail: training without noise drives none to 0 or 1
    assert ((codes > 0.5) & (codes < 0.6)).any()
    np.testing.assert_array_equal(numbers(good("encode", "binary", "test.svm", "--bits", cwd=here)), bits)


def test_an_array_of_no_rows_and_one_that_fails(here):
    (here / "empty.svm").write_text("")
    good("encode", "model", "empty.svm", "--output", "none.npy", cwd=here)
    assert np.load(here / "none.npy").shape == (0, 4)
    (here / "broken.svm").write_text((here / "test.svm").read_text() + "1 5:oops\n")
    before = contents(here)
    bad("encode", "model", "broken.svm", "--output", "none.npy", message=f"broken.svm:{N + 1}:5", cwd=here)
    assert contents(here) == before


# -- similar


def test_neighbours_are_those_of_a_plain_search(here):
    good("encode", "model", "test.svm", "--output", "codes.npy", cwd=here)
    codes = np.load(here / "codes.npy").astype(float)
    unit = codes / np.linalg.norm(codes, axis=1, keepdims=True)
    cosines = unit @ unit.T
    for path in ("test.svm", "codes.npy"):
        found = numbers(good("similar", "model", path, "--rows", "3,17,3", "-n", "5", cwd=here))
        assert found[:, 0].tolist() == [3] * 5 + [17] * 5 + [3] * 5
        assert found[:, 1].tolist() == [1, 2, 3, 4, 5] * 3
        for query, block in zip((3, 17, 3), found.reshape(3, 5, 4)):
            others = [row for row in np.argsort(-cosines[query]) if row != query][:5]
            np.testing.assert_allclose(block[:, 3], cosines[query, others], atol=1e-5)
            np.testing.assert_allclose(cosines[query, block[:, 2].astype(int)], block[:, 3], atol=1e-5)
            assert query not in block[:, 2]
    (here / "two.svm").write_text("".join((here / "test.svm").read_text().splitlines(keepends=True)[20:22]))
    rows = [
        json.loads(line)
        for line in good(
            "similar", "model", "codes.npy", "--query", "two.svm", "--json", "-n", "2", cwd=here
        ).splitlines()
    ]
    assert [(row["query"], row["rank"]) for row in rows] == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert rows[0]["row"] == 20
    assert rows[2]["row"] == 21
    assert rows[0]["similarity"] == pytest.approx(1, abs=1e-6)
    text = (here / "two.svm").read_bytes()
    piped = good("similar", "model", "test.svm", "--query", "-", "-n", "1", cwd=here, stdin=text)
    assert numbers(piped)[:, 2].tolist() == [20, 21]


def test_fewer_rows_than_are_asked_for(here):
    (here / "two.svm").write_text("".join((here / "test.svm").read_text().splitlines(keepends=True)[:2]))
    assert numbers(good("similar", "model", "two.svm", "--rows", "1", cwd=here))[:, :3].tolist() == [[1, 1, 0]]
    assert len(good("similar", "model", "two.svm", "--query", "two.svm", cwd=here).splitlines()) == 4


# -- train


def test_labels_are_not_looked_at(here):
    shown = good("train", "bare.svm", "--out", "bare", *QUICK, "--valid", "test.svm", "--test", "sets.svm", cwd=here)
    model, rows = load_model(here / "bare"), open_shards_of(here, "sets.svm")[:]
    loss = model.network.losses(model.network.visible(rows)).mean().item()
    assert float(shown.partition("test loss: ")[2].split()[0]) == pytest.approx(loss, rel=1e-4)
    assert "bare: done; try `sketchnet encode bare FILE`" in shown
    for name in ("train", "bare"):
        good("train", f"{name}.svm", "--out", f"{name}-model", *QUICK, cwd=here)
    weights = [(here / f"{name}-model" / "weights.safetensors").read_bytes() for name in ("train", "bare")]
    assert weights[0] == weights[1]
    shown = good("train", "test.svm", "bare.svm", "sets.svm", "--out", "all", *QUICK, cwd=here)
    assert shown.startswith(f"{4 * N * 9 // 10} rows x 40 columns of counts values; ")  # a tenth is held back


def test_what_is_printed_and_told(here):
    shown = good("train", "train.svm", "--out", "new", *QUICK, "--overwrite", cwd=here)
    assert "40-16-4-16-40, binary units; real codes" in shown
    assert "pretraining layer 2, epoch 3: reconstruction " in shown
    assert "epoch 1: loss " in shown
    told = json.loads(good("train", "train.svm", "--out", "new", *QUICK, "--json", "--test", "test.svm", cwd=here))
    assert told["model"] == "new"
    assert [record["stage"] for record in told["history"] if "stage" in record] == ["moments", *["rbm"] * 6]
    assert set(told["test"]) == {"loss"}
    assert 1 <= told["best_epoch"] <= 4


def test_without_pretraining_and_behind_a_projection(here):
    options = [*PLAIN, "--scheme", "gaussian", "-k", "20"]
    shown = good("train", "train.svm", "--out", "new", *options, cwd=here)
    assert "gaussian to 20 (fixed), 20-16-4-16-20, relu units" in shown
    assert [record["stage"] for record in history(here / "new") if "stage" in record] == ["moments"]
    config = json.loads((here / "new" / "config.json").read_text())
    assert config["training"]["pretrain"] == 0
    assert config["network"]["n_components"] == 20
    assert json.loads(good("evaluate", "new", "test.svm", *RETRIEVAL, cwd=here))["area"] > 0.45


@pytest.mark.parametrize(
    "options",
    [
        [*QUICK, "--binary-codes"],
        "--pretrain --fixed -k 20 --hidden 16,8 --epochs 4 --set pretrain=5".split(),
        "--pretrain -k 20 --hidden 16,8 --epochs 4 --set sparse_rate=0.01 --set wide_rate=0.01".split(),
    ],
)
def test_stopped_in_pretraining_and_in_an_epoch_it_ends_alike(options, here, monkeypatch):
    """Asked to stop after certain records, by a signal as Ctrl-C sends it."""
    verb = importlib.import_module("sketchnet.cli.train")
    sentence, stops = verb._sentence, [{"layer": 0, "epoch": 2}, {"layer": 1, "epoch": 1}, {"epoch": 2}]

    def stop_after(record, learning):
        if stops and stops[0] == {key: record[key] for key in ("layer", "epoch") if key in record}:
            stops.pop(0)
            signal.raise_signal(signal.SIGINT)
        return sentence(record, learning)

    whole, cut = (["train", "train.svm", "--out", name, *options] for name in ("whole", "cut"))
    good(*whole, cwd=here)
    monkeypatch.setattr(verb, "_sentence", stop_after)
    for file in ("pretraining", "pretraining", "checkpoint"):
        done = sketchnet(*cut, cwd=here)
        assert done.returncode == 1
        assert done.stderr == "sketchnet: stopped as asked; run the same command again to go on\n"
        assert (here / "cut" / f"{file}.safetensors").exists()
    good(*cut, cwd=here)
    assert not stops
    assert sorted(path.name for path in (here / "cut").iterdir()) == sorted(p.name for p in (here / "whole").iterdir())
    assert (here / "cut" / "weights.safetensors").read_bytes() == (here / "whole" / "weights.safetensors").read_bytes()
    assert history(here / "cut") == history(here / "whole")
    assert any(record.get("stage") == "rbm" for record in history(here / "cut"))


def test_pretraining_is_a_setting_of_a_classifier(here):
    shown = good("train", "train.svm", "--out", "new", *"--pretrain -k 20 --hidden 8 --epochs 3".split(), cwd=here)
    assert "334 epochs of pretraining" in shown
    config = json.loads((here / "new" / "config.json").read_text())
    assert config["training"]["pretrain"] == 334
    assert len(good("predict", "new", "train.svm", cwd=here).splitlines()) == 2 * N


# -- bad input


CODES = " --task autoencoder --hidden 8 --epochs 1"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            "predict model test.svm",
            "model is an autoencoder: it makes codes, and predicts nothing; try `sketchnet encode`",
        ),
        ("explain model test.svm", "there is no answer to explain; try `sketchnet encode`"),
        ("evaluate model test.svm", "try `sketchnet evaluate --retrieval`"),
        ("encode classes test.svm", "classes is no autoencoder: it predicts classes, and makes no codes"),
        ("similar classes test.svm --rows 1", "classes is no autoencoder"),
        ("evaluate classes train.svm --retrieval", "classes is no autoencoder"),
        ("evaluate classes train.svm --plot x.png", "--plot is for --retrieval"),
        ("evaluate model test.svm --retrieval --plot x.jpg", "--plot x.jpg is not possible; it is a .png or .pdf or"),
        ("evaluate model test.svm --retrieval --plot no/x.png", "--plot no/x.png is not possible"),
        ("evaluate model test.svm --retrieval --calibration-plot x.png", "--retrieval has --plot"),
        ("evaluate model test.svm --retrieval --device tpu", "device 'tpu' is not possible"),
        ("evaluate model own.svm --retrieval", "no document is relevant to another"),
        ("evaluate model one.svm --retrieval", "at least 2 are needed"),
        ("evaluate model empty.svm --retrieval", "empty.svm has no rows"),
        ("evaluate model rows.npz --retrieval", "rows.npz has no labels to compare"),
        ("encode nothing test.svm", "nothing is no model"),
        ("encode model missing.svm", "there is no file missing.svm"),
        ("encode model far.svm", "row 0 has column id 41; the model was trained on 1 to 40"),
        ("encode model less.svm", "a count is -2; counts of words are 0 or more"),
        ("encode model test.svm --bits", "model was trained without --binary-codes"),
        ("encode model test.svm --output codes.txt", "--output codes.txt is not possible; it is a .npy file"),
        ("encode model test.svm --output no/codes.npy", "--output no/codes.npy is not possible"),
        ("similar model test.svm", "give one of them"),
        ("similar model test.svm --rows 1 --query test.svm", "give one of them"),
        ("similar model - --rows 1", "INPUT cannot come from standard input"),
        ("similar model test.svm --rows 1,x", "--rows 1,x is not possible"),
        ("similar model test.svm --rows 150", "test.svm has 150 rows; --rows 150 is beyond them"),
        ("similar model test.svm --rows 1 -n 0", "Invalid value for '-n'"),
        ("similar model empty.svm --rows 0", "empty.svm has no rows to find"),
        ("similar model missing.npy --rows 0", "there is no file missing.npy"),
        ("similar model text.npy --rows 0", "text.npy is no array"),
        ("similar model kinds.npy --rows 0", "kinds.npy is no array"),
        ("similar model wide.npy --rows 0", "wide.npy is float32 (2, 5); codes of this model are float32 (rows, 4)"),
        ("train train.svm --out new --task clusters", "--task clusters is not possible; it is auto, regression or"),
        ("train train.svm --out new --regression" + CODES, "--regression and --task autoencoder are two tasks"),
        ("train train.svm --out new --fixed" + CODES, "--fixed is not for autoencoders"),
        ("train train.svm --out new --no-wide" + CODES, "--wide/--no-wide is not for autoencoders"),
        ("train train.svm --out new --eta 0.5" + CODES, "--eta is not for autoencoders"),
        ("train train.svm --out new -k 20" + CODES, "--components needs a --scheme"),
        ("train train.svm --out new --codes 8", "--codes is for --task autoencoder"),
        ("train train.svm --out new --binary-codes", "--binary-codes is for --task autoencoder"),
        ("train train.svm --out new --codes 0" + CODES, "n_codes=0 is not possible"),
        ("train train.svm --out new --set dropout=0.5" + CODES, "an autoencoder has no setting dropout"),
        ("train train.svm --out new --scheme fourier" + CODES, "scheme='fourier' is not possible"),
        ("train train.svm --out new --scheme li --set visible=counts" + CODES, "not possible behind a projection"),
        ("train train.svm --out new --pretrain --set normalise=none", "pretrain=True is not possible with normalise"),
        ("train empty.svm --out new" + CODES, "empty.svm has no rows"),
        ("train train.svm --out model" + CODES, "model has another model"),
    ],
)
def test_bad_input(args, message, here):
    files = {
        "own.svm": "1 1:1\n2 1:1\n",
        "one.svm": "1 1:1\n",
        "far.svm": "1 3:1 41:1\n",
        "less.svm": "1 1:-2\n",
        "empty.svm": "",
        "text.npy": "numbers",
    }
    for name, text in files.items():
        (here / name).write_text(text)
    shutil.copy(here / "kinds.npz", here / "kinds.npy")
    np.save(here / "wide.npy", np.zeros((2, 5), np.float32))
    sparse.save_npz(here / "rows.npz", sparse.csr_array(np.ones((2, 40))))
    before = contents(here)
    bad(*args.split(), message=message, cwd=here)
    assert contents(here) == before


def _tensor(name, change):
    def spoil(folder):
        tensors = load_file(folder / "weights.safetensors")
        save_file({**tensors, name: change(tensors[name])}, folder / "weights.safetensors")

    return spoil


def _config(**change):
    def spoil(folder):
        content = json.loads((folder / "config.json").read_text())
        for part, settings in change.items():
            content[part] |= settings
        (folder / "config.json").write_text(json.dumps(content))

    return spoil


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder: (folder / "weights.safetensors").write_bytes(b"cos\nsystem\n"),
        lambda folder: (folder / "weights.safetensors").unlink(),
        _tensor("encoder.1.bias", lambda bias: bias * float("nan")),
        _tensor("encoder.1.bias", lambda bias: bias.double()),
        _tensor("encoder.1.bias", lambda bias: bias[:-1]),
        _config(network={"n_codes": 5}),
        _config(network={"n_codes": 10**30}),
        _config(network={"hidden": [2**24, 2**24]}),
        _config(network={"n_columns": 10**15}),
        _config(network={"visible": "real"}),
        _config(network={"dropout": 0.5}),
        _config(task={"kind": "binary", "classes": [0, 1]}),
        _config(data={"base": "x"}),
    ],
)
def test_damaged_and_hostile_models(spoil, here):
    spoil(here / "model")
    before = contents(here)
    for verb in (["encode"], ["evaluate", "--retrieval"], ["similar", "--rows", "1"]):
        assert bad(verb[0], "model", "test.svm", *verb[1:], message="", cwd=here).stdout == ""
    assert contents(here) == before


def test_help_has_examples(world):
    for verb in ("encode", "similar", "evaluate", "train"):
        assert f"sketchnet {verb} " in good(verb, "--help", cwd=world)
