"""scipy's .npz files: damaged, or put together by hand with members that are no matrix, or claim to be huge."""

from __future__ import annotations

import io
import warnings
import zipfile

import numpy as np

from tests.attack.attack import Scene, attack
from tests.attack.damage import damaged, flipped
from tests.attack.plain import project_plainly, read_npz, read_shards

_SHAPES = [[240, 50], [240, 51], [240, 49], [241, 50], [-1, 50], [240, -1], [240], [240, 50, 1], 7, [240, 2**62]]
_SHAPES += [[2**62, 50], [240, 2**63 + 2**12], [2**63, 50], [240, 2**64 - 1]]


def _use(scene: Scene, name: str) -> None:
    """Read a file by two verbs. What scipy takes must give the same rows; what it refuses must be bad input."""
    plain = read_npz(scene.here / name)
    if scene.rng.random() < 0.5:
        outcome = scene.run(
            *("project", name, "out.npy", "--scheme", "gaussian", "-k", "4"), blames=name, own=("out.npy",)
        )
        right = plain is not None and outcome.code == 0 and project_plainly(plain, scene)
    else:
        outcome = scene.run("ingest", name, "out", blames=name, own=("out",))
        rows = read_shards(scene.here / "out") if outcome.code == 0 else None
        right = None not in (plain, rows) and plain.shape == rows.shape and _same(plain, rows)
    if outcome.code == 0:
        scene.check(
            bool(right), "answer", "other rows than scipy's" if plain is not None else "scipy refuses the matrix"
        )


def _why(plain) -> str:
    return "scipy refuses the matrix" if plain is None else "other rows than scipy's"


def _same(a, b) -> bool:
    pairs = [(getattr(a, name), getattr(b, name)) for name in ("indptr", "indices", "data")]
    return all(np.array_equal(x, y, equal_nan=y.dtype.kind == "f") for x, y in pairs)


@attack("npz-damaged", share=4)
def npz_damaged(scene: Scene) -> None:
    name = scene.rng.choice(("rows.npz", "packed.npz"))
    content = (scene.world.folder / name).read_bytes()
    spoil = scene.rng.choice((damaged, flipped))
    scene.put(name, spoil(content, scene.rng))
    _use(scene, name)


@attack("npz-wrong", share=8)
def npz_wrong(scene: Scene) -> None:
    """Members by hand: other numbers, dtypes, shapes, formats."""
    rng = scene.rng
    with np.load(scene.world.folder / "rows.npz") as file:
        members = {name: file[name] for name in file.files}
    for name in rng.choices(("indptr", "indptr", "indices", "data", "shape", "format"), k=rng.choice((1, 1, 2))):
        if name == "format":
            members[name] = np.array(rng.choice([b"csc", "csr", b"\xff\x1b[31m", 7, 1.5, None, "csr\n"]))
        elif name == "shape":
            members[name] = _cast(
                np.array(rng.choice(_SHAPES)), rng.choice("u8 u8 f8 i4 i1 c16 S4 f2 M8[s] i8".split())
            )
        elif rng.random() < 0.4 or not members[name].size or members[name].dtype.kind not in "iuf":
            members[name] = _as_other(members[name], rng)
        else:
            members[name] = _with_other_number(members[name], rng)
    if rng.random() < 0.1:
        del members[rng.choice(sorted(members))]
    rng.choice((np.savez, np.savez_compressed))(scene.here / "a.npz", **members)
    _use(scene, "a.npz")


def _with_other_number(array: np.ndarray, rng) -> np.ndarray:
    array = array.copy()
    at = rng.choice((0, 0, array.size - 1, rng.randrange(array.size)))
    whole = [3, -1, 50, 2**31 - 1, int(np.nan_to_num(array.flat[at])) + 1]
    number = rng.choice([np.nan, np.inf, 2.5] if array.dtype.kind == "f" else whole)
    array.flat[at] = _cast(np.array(number), array.dtype)
    return array


def _as_other(array: np.ndarray, rng) -> np.ndarray:
    """Another dtype, or another shape."""
    if rng.random() < 0.7:
        try:
            return _cast(array, rng.choice("u8 i1 u4 f4 f8 c16 c8 ? S3 U3 O >i4 f2 g M8[s] m8[s] V4".split()))
        except (ValueError, TypeError, OverflowError):
            return array
    line = np.atleast_1d(array)
    longer = np.append(line, line[-1:])
    return rng.choice([line[:, None], line[None], line[:-1], line[:0], line[::-1], longer])


def _cast(array: np.ndarray, dtype) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return array.astype(dtype)


@attack("npz-claims", share=4)
def npz_claims(scene: Scene) -> None:
    """Headers that claim more than there is: an array of terabytes, a member of terabytes, zeros without end."""
    rng, text = scene.rng, io.BytesIO()
    with zipfile.ZipFile(scene.world.folder / "rows.npz") as old, zipfile.ZipFile(text, "w") as new:
        liar = rng.choice(("indptr", "indices", "data", "shape", "format"))
        for name in old.namelist():
            content = old.read(name)
            if name == f"{liar}.npy":
                content = _claiming(content, rng)
            new.writestr(name, content, rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))
    data = bytearray(text.getvalue())
    if rng.random() < 0.5:  # the sizes in the directory too
        for at in [i for i in range(len(data)) if data[i : i + 4] == b"PK\x01\x02"][: rng.randrange(6)]:
            data[at + 20 : at + 28] = rng.choice((b"\xff\xff\xff\xfe" * 2, b"\xff\xff\xff\xff" * 2, b"\0\0\0\x70" * 2))
    scene.put("a.npz", bytes(data))
    outcome_codes = (2,) if read_npz(scene.here / "a.npz") is None else (0, 2)
    scene.run("project", "a.npz", "out.npy", "-k", "4", codes=outcome_codes, blames="a.npz", own=("out.npy",))


def _claiming(content: bytes, rng) -> bytes:
    """The same bytes behind another header."""
    array = np.lib.format.read_array(io.BytesIO(content))
    shape = rng.choice([(10**12,), (10**15,), (2**62,), (2**63,), (10**12, 10**6), (-5,), (2**40, 0)])
    dtype = rng.choice([array.dtype.str, "<i8", "|V1000000", "<U100000"])
    header = {"descr": dtype, "fortran_order": False, "shape": shape}
    out = io.BytesIO()
    rng.choice((np.lib.format.write_array_header_1_0, np.lib.format.write_array_header_2_0))(out, header)
    return out.getvalue() + array.tobytes()


@attack("npz-bomb")
def npz_bomb(scene: Scene) -> None:
    """Some 100 MB of zeros in a few KB, where little memory is named."""
    rng = scene.rng
    liar, size = rng.choice(("indptr", "indices", "data", "shape")), rng.choice((100, 300)) << 20
    with np.load(scene.world.folder / "rows.npz") as file:
        members = {name: file[name] for name in file.files}
    members[liar] = np.zeros(size // 4, np.int32)
    np.savez_compressed(scene.here / "a.npz", **members)
    command = ("project", "a.npz", "out.npy", "-k", "4", "--memory", "50MB")
    scene.run(*command, codes=(2,), blames="a.npz", memory=150 << 20, own=("out.npy",))
