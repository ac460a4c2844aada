"""Shards: what is written is read back, and whatever is damaged is refused."""

import json
import os
import shutil
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sketchnet.data import CsrBatch, open_shards, shards
from sketchnet.data.gather import concatenate, take_rows
from sketchnet.data.shards import finish, write_shard
from sketchnet.errors import InputError, StorageError
from sketchnet.storage import writing


def batch(n, seed=0, d=1000, labels="single", index=np.int64):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 9, n)
    several = rng.integers(0, 4, n)
    return CsrBatch(
        np.concatenate([[0], np.cumsum(lengths)]),
        rng.integers(0, d, lengths.sum()).astype(index),
        rng.standard_normal(lengths.sum()).astype(np.float32),
        d,
        rng.integers(0, 5, several.sum() if labels == "multi" else n) if labels else None,
        np.concatenate([[0], np.cumsum(several)]) if labels == "multi" else None,
        rng.integers(0, 9, n) if labels == "multi" else None,
    )


def same(a, b):
    for name in ("values", "labels", "groups"):
        x, y = getattr(a, name), getattr(b, name)
        assert (x is None) == (y is None), name
        assert x is None or np.array_equal(x, y), name
    assert np.array_equal(a.indices, b.indices)
    assert np.array_equal(a.indptr - a.indptr[0], b.indptr - b.indptr[0])
    assert (a.label_indptr is None) == (b.label_indptr is None)
    assert a.n_columns == b.n_columns
    assert a.label_indptr is None or np.array_equal(
        a.label_indptr - a.label_indptr[0], b.label_indptr - b.label_indptr[0]
    )


def write(folder, batches):
    for number, part in enumerate(batches):
        write_shard(folder, number, part, {})
    finish(folder, {"note": "made by a test"})
    return folder


@pytest.mark.parametrize("labels", [None, "single", "multi"])
def test_rows_slices_and_labels_by_index(labels, tmp_path):
    parts = [batch(n, seed, labels=labels) for seed, n in enumerate([50, 1, 0, 70])]
    whole = concatenate(parts, 1000)
    shards = open_shards(write(tmp_path / "x", parts))
    assert shards.shape == (121, 1000)
    assert len(shards) == 121
    assert shards.n_entries == len(whole.indices)
    for span in (slice(None), slice(0, 50), slice(10, 20), slice(49, 53), slice(60, 121), slice(7, 7), slice(-5, None)):
        start, stop, _ = span.indices(121)
        same(shards[span], whole.rows(slice(start, stop)))
    assert isinstance(shards[10:20].values, np.memmap)  # a view: nothing is copied within a shard
    for rows in ([3, 120, 0, 51, 3], np.arange(121)[::-1], [], [-1], np.arange(121) % 7 == 0):
        numbers = np.arange(121)[rows] if len(rows) else np.empty(0, int)
        same(shards[rows], take_rows(whole, numbers))
    same(shards[5:100:7], take_rows(whole, np.arange(5, 100, 7)))
    if labels == "single":
        assert np.array_equal(shards.labels, whole.labels)
    elif labels == "multi":
        assert shards.labels.shape == (121, 5)
        assert np.array_equal(shards.labels.indices, whole.labels)
    else:
        assert shards.labels is None


@pytest.mark.parametrize("labels", [None, "single", "multi"])
def test_manifests_say_the_kind_of_labels_and_older_ones_need_not(labels, tmp_path):
    part = batch(20, labels=labels)
    path = write(tmp_path / "x", [part]) / "shard-00000" / "manifest.json"
    manifest = json.loads(path.read_text())
    assert manifest.pop("labels") == (labels or "none")
    path.write_text(json.dumps(manifest))
    same(open_shards(tmp_path / "x")[:], part)


def test_several_folders_are_one(tmp_path):
    parts = [batch(30, 1), batch(20, 2, d=2**40)]
    for i, part in enumerate(parts):
        write(tmp_path / str(i), [part])
    both = open_shards(tmp_path / "0", tmp_path / "1")
    same(both[:], concatenate(parts, 2**40))
    assert both.shape == (50, 2**40)
    assert open_shards(tmp_path / "0")[:].indices.dtype == np.int32
    write(tmp_path / "2", [batch(5, labels=None)])
    with pytest.raises(InputError, match="do not fit together"):
        open_shards(tmp_path / "0", tmp_path / "2")


def test_what_is_no_choice_of_rows_is_told_what_is(tmp_path):
    folder = write(tmp_path / "x", [batch(30)])
    with pytest.raises(
        InputError, match=r"is no folder; open_shards takes folders one by one: open_shards\('a', 'b'\)"
    ):
        open_shards([folder])
    shards = open_shards(folder)
    for one in (0, np.int64(7)):
        with pytest.raises(InputError, match=rf"^{one} is no choice of rows; .* a slice, .*: \[{one}\] for one row"):
            shards[one]
    with pytest.raises(InputError, match=r"rows come in batches: sketchnet.data.iterate_batches\(shards, 256\)"):
        list(shards)


def test_rows_out_of_range(tmp_path):
    shards = open_shards(write(tmp_path / "x", [batch(30)]))
    assert shards[np.array([29], np.uint8)].n_rows == shards[np.array([-1], np.int8)].n_rows == 1
    for bad in ([30], [-31], [0.5], [[1]], [True, False, True]):
        with pytest.raises(InputError, match="row"):
            shards[bad]


def damage_values(folder):
    path = folder / "shard-00001" / "values.npy"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)


def edit(path, **change):
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))


def edit_file(folder, name, **change):
    path = folder / "shard-00000" / "manifest.json"
    files = json.loads(path.read_text())["files"]
    edit(path, files={**files, name: {**files[name], **change}})


def replaced(folder, name, change):
    """Another array, whose checksum is right."""
    path = folder / "shard-00000" / f"{name}.npy"
    np.save(path, change(np.load(path)))
    edit_file(folder, name, crc32=zlib.crc32(path.read_bytes()))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (damage_values, "shard-00001/values.npy is not what was written: its checksum differs"),
        (lambda f: (f / "shard-00000" / "labels.npy").unlink(), "there is no .*labels.npy"),
        (lambda f: (f / "dataset.json").unlink(), "is not a data set, or its ingest is unfinished"),
        (lambda f: (f / "dataset.json").write_text("{"), "dataset.json is damaged"),
        (lambda f: edit(f / "dataset.json", format=2), "has format version 2; this sketchnet reads version 1"),
        (lambda f: edit(f / "shard-00000" / "manifest.json", format=7), "has format version 7"),
        (lambda f: edit(f / "shard-00000" / "manifest.json", shape="wide"), "manifest.json is damaged"),
        (lambda f: edit(f / "shard-00000" / "manifest.json", files={}), "manifest.json is damaged"),
        (lambda f: edit(f / "shard-00000" / "manifest.json", shape=[7, 1000]), "the arrays do not fit each other"),
        (
            lambda f: edit(f / "shard-00001" / "manifest.json", labels="multi"),
            "shard-00001/manifest.json says labels are 'multi'; by its files they are 'single'",
        ),
        (lambda f: edit(f / "shard-00000" / "manifest.json", files=["indptr"]), "manifest.json is damaged"),
        (
            lambda f: edit(
                f / "shard-00000" / "manifest.json", files={key: {} for key in ["indptr", "indices", "values"]}
            ),
            "manifest.json is damaged",
        ),
        (lambda f: edit(f / "shard-00000" / "manifest.json", shape=[1e1, 1000]), "manifest.json is damaged"),
        (lambda f: edit(f / "shard-00000" / "manifest.json", shape=[10, 2**64]), "manifest.json is damaged"),
        (lambda f: edit(f / "shard-00000" / "manifest.json", shape=[True, 1000]), "manifest.json is damaged"),
        (lambda f: edit(f / "shard-00000" / "manifest.json", entries="many"), "manifest.json is damaged"),
        (lambda f: edit_file(f, "indptr", dtype="<c16"), "manifest.json is damaged"),
        (lambda f: edit_file(f, "values", dtype="|O"), "manifest.json is damaged"),
        (
            lambda f: edit_file(f, "values", length=10**13),
            r"values.npy holds .*, the manifest says \(10000000000000,\)",
        ),
        (lambda f: (f / "dataset.json").write_bytes(b"\xff"), "dataset.json is damaged"),
        (lambda f: replaced(f, "indptr", lambda a: a + 3), "the arrays do not fit each other"),
        (lambda f: replaced(f, "indptr", lambda a: a[[0, 9, *range(1, 9), 10]]), "indptr.npy: row 1 ends before it"),
        (lambda f: edit(f / "dataset.json", columns=5), "dataset.json says columns are 5; the shards have"),
        (lambda f: edit(f / "dataset.json", columns=None), "dataset.json says columns are None; the shards have"),
        (lambda f: edit(f / "dataset.json", rows=31), "dataset.json says rows are 31; the shards have 30"),
        (lambda f: edit(f / "dataset.json", entries=1), "dataset.json says entries are 1; the shards have"),
        (lambda f: shutil.rmtree(f / "shard-00002"), "has 2 shards; its dataset.json says 3"),
        (lambda f: shutil.rmtree(f / "shard-00001"), "has shard-00002 where shard-00001 should be"),
    ],
)
def test_damage_is_refused(damage, message, tmp_path):
    folder = write(tmp_path / "x", [batch(10, seed) for seed in range(3)])
    damage(folder)
    with pytest.raises(InputError, match=message):
        open_shards(folder)


def test_damage_that_only_reading_shows_is_found_if_asked(tmp_path):
    folder = write(tmp_path / "x", [batch(10), batch(10)])
    damage_values(folder)
    assert open_shards(folder, verify=False).n_rows == 20
    (folder / "shard-00000" / "values.npy").write_bytes(b"not an array")
    with pytest.raises(InputError, match="cannot be read"):
        open_shards(folder, verify=False)
    np.save(folder / "shard-00000" / "values.npy", np.zeros(3, np.float32))
    with pytest.raises(InputError, match="the manifest says"):
        open_shards(folder, verify=False)


@pytest.mark.parametrize("claimed", ["(10**13,)", "(-1,)", "(2**70,)", "(0, 10**13)"])
def test_headers_that_claim_too_much(claimed, tmp_path):
    folder = write(tmp_path / "x", [batch(0)])  # arrays without entries are not mapped
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {eval(claimed)}, }}\n".encode()
    (folder / "shard-00000" / "values.npy").write_bytes(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(InputError, match=r"shard-00000/values.npy claims \("):
        open_shards(folder, verify=False)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("name", ["shard-00000/values.npy", "shard-00000/manifest.json", "dataset.json"])
def test_what_never_ends_is_refused(name, tmp_path):
    path = write(tmp_path / "x", [batch(10)]) / name
    path.unlink()
    os.mkfifo(path)
    for _ in range(2):
        with pytest.raises(InputError, match=f"{name} is no regular file"):
            open_shards(tmp_path / "x")
        path.unlink()
        path.symlink_to("/dev/zero")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a full device")
def test_a_full_disk_is_told_as_one():
    with pytest.raises(StorageError, match="no room on the disk for out"), writing("out"):
        shards._write_array(Path("/dev/full"), np.zeros(10**6))


def test_no_folder(tmp_path):
    with pytest.raises(InputError, match="there is no folder"):
        open_shards(tmp_path / "x")
    with pytest.raises(InputError, match="at least one folder"):
        open_shards()


@pytest.mark.parametrize("key", ["classes", "hasher", "encoder", "base"])
def test_data_sets_that_mean_different_things_are_not_joined(key, tmp_path):
    for name in ("a", "b"):
        write_shard(tmp_path / name, 0, batch(5), {})
        finish(tmp_path / name, {key: name})
    with pytest.raises(InputError, match=f"b does not fit .*a: their {key} differ"):
        open_shards(tmp_path / "a", tmp_path / "b")


def test_batches_of_different_kinds_are_not_joined():
    for other in ("multi", None):
        with pytest.raises(InputError, match="some rows have labels, several labels or query ids"):
            concatenate([batch(5), batch(5, labels=other)], 1000)


@pytest.mark.parametrize("labels", ["single", "multi"])
def test_slices_convert_with_offsets_from_zero(labels):
    torch = pytest.importorskip("torch")
    part = batch(50, labels=labels).rows(slice(20, 40))
    tensors = part.torch()
    assert tensors["indptr"][0] == 0
    table = torch.eye(1000)
    weights, offsets = tensors["values"], tensors["indptr"][:-1]
    bags = torch.nn.functional.embedding_bag(tensors["indices"], table, offsets, mode="sum", per_sample_weights=weights)
    assert np.allclose(bags.numpy(), part.scipy().toarray(), atol=1e-6)
    assert labels == "single" or tensors["label_indptr"][0] == 0


def test_torch_shares_memory(tmp_path):
    torch = pytest.importorskip("torch")
    x = batch(20)
    tensors = x.torch()
    assert set(tensors) == {"indptr", "indices", "values", "labels"}
    assert tensors["values"].data_ptr() == x.values.ctypes.data
    mapped = open_shards(write(tmp_path / "x", [x]))[:]
    assert torch.equal(mapped.torch()["values"], tensors["values"])
    assert replace(x, labels=None).torch().keys() == {"indptr", "indices", "values"}
