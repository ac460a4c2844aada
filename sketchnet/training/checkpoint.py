"""Model folders: `config.json`, `weights.safetensors`, `history.jsonl`, and while training goes on a checkpoint.

Every file is replaced at once, and none of them can hold code.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from sketchnet.errors import InputError, StorageError
from sketchnet.storage import (
    check_regular,
    make_folder,
    read_json,
    remove,
    replacing,
    tidy,
    workspace,
    workspace_of,
    write_json,
    writing,
)

FORMAT = 1
_NEEDED = {"rbm": ("layer", "epoch", "reconstruction", "seconds"), "rbm_restart": ("layer", "epoch", "rate")}
_MOST = 2**30  # bytes of config.json and history.jsonl
_DTYPES = {torch.float32: "F32", torch.int64: "I64"}
CONFIG, WEIGHTS, HISTORY, CHECKPOINT = "config.json", "weights.safetensors", "history.jsonl", "checkpoint.safetensors"
PRETRAINING = "pretraining.safetensors"  # until the first checkpoint
# In the folder's workspace: a model until another has begun in its place, one on its way back, one being written.
_ASIDE, _BACK, _NEW = "replaced", "restored", "incoming"
FILES = (CONFIG, WEIGHTS, HISTORY, CHECKPOINT, PRETRAINING)


def write_tensors(path: Path, tensors: dict[str, torch.Tensor], notes: dict | None = None) -> None:
    """Replace a safetensors file; `notes` are plain JSON values kept in its header."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with replacing(path) as new:
        try:
            save_file(plain, new, {"notes": json.dumps(notes or {})})
        except SafetensorError as error:  # its way to say that the system refused to write, and why
            number = re.search(r"\(os error (\d+)\)", str(error))
            raise OSError(number and int(number[1]), str(error)) from None
        os.chmod(new, 0o666 & ~_umask())  # safetensors writes for the owner alone


def _umask() -> int:
    """What the process leaves out of the rights on new files; it can be read only by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def read_tensors(path: Path, like: dict[str, torch.Tensor] | None = None) -> tuple[dict[str, torch.Tensor], dict]:
    """(tensors, notes) of a file. With `like`, it must hold just such tensors; that is checked before loading."""
    try:
        check_regular(path)
        with safe_open(path, "pt") as file:
            names = set(file.keys())
            if like is not None:
                found = {name: file.get_slice(name) for name in names}
                found = {name: (piece.get_dtype(), *piece.get_shape()) for name, piece in found.items()}
                wanted = {name: (_DTYPES[tensor.dtype], *tensor.shape) for name, tensor in like.items()}
                for name in {**wanted, **found}:
                    if found.get(name) != wanted.get(name):
                        raise InputError(
                            f"{path} does not fit its config.json: {name} is {found.get(name)}, not {wanted.get(name)}"
                        )
            notes = json.loads((file.metadata() or {}).get("notes", "{}"))
            return {name: file.get_tensor(name) for name in names}, notes
    except FileNotFoundError:
        unfinished = "; its training is unfinished: run it again to go on" if is_unfinished(path.parent) else ""
        raise InputError(f"there is no {path}{unfinished}") from None
    except (SafetensorError, json.JSONDecodeError, OSError) as error:
        raise InputError(f"{path} is damaged: {error}") from None


def length_of(path: Path, name: str) -> int:
    """How long a tensor of a file is, or -1 if there is none."""
    try:
        check_regular(path)
        with safe_open(path, "pt") as file:
            return file.get_slice(name).get_shape()[0] if name in file.keys() else -1  # noqa: SIM118 (no mapping)
    except (SafetensorError, OSError, IndexError) as error:
        raise InputError(f"{path} is damaged or missing: {error}") from None


def has_begun(folder: Path) -> bool:
    """Whether there is anything of a training in the folder to go on with."""
    return any((folder / name).exists() for name in (CHECKPOINT, PRETRAINING, WEIGHTS))


def end(folder: Path) -> None:
    """Remove what a training would go on from: it is finished."""
    for name in (CHECKPOINT, PRETRAINING):
        (folder / name).unlink(missing_ok=True)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep a folder, made if there is none, from other processes; what one left half done in it is settled."""
    make_folder(folder)
    with workspace(folder, inside=True):
        settle(folder)
        try:
            yield
        finally:
            settle(folder)


def set_aside(folder: Path) -> None:
    """Put a model that is to be replaced aside, until there is something of the new one."""
    files, work = [folder / name for name in FILES if (folder / name).exists()], workspace_of(folder, inside=True)
    if files:
        with writing(folder):
            (work / _BACK).mkdir(exist_ok=True)
            for path in files:
                path.rename(work / _BACK / path.name)
            (work / _BACK).rename(work / _ASIDE)


def settle(folder: Path) -> None:
    """Forget the model that was put aside, or, where nothing came of the new one, bring it back. Cut off at any point,
    the next call goes on.
    """
    aside, back, new = (workspace_of(folder, inside=True) / name for name in (_ASIDE, _BACK, _NEW))
    for name in FILES:
        tidy(folder / name)
    with writing(folder):
        remove(new)
        if aside.is_dir():
            remove(aside) if has_begun(folder) else aside.rename(back)
        if back.is_dir():
            _move(back, folder)


def _move(source: Path, folder: Path) -> None:
    """Move a model's files out of a folder, which is removed. The weights come last: before them, nothing is loaded."""
    for path in sorted(source.iterdir(), key=lambda path: path.name == WEIGHTS):
        path.replace(folder / path.name)
    source.rmdir()


def write_model(folder: Path, tensors: dict[str, torch.Tensor], records: list[dict], content: dict) -> None:
    """Put a finished model into a folder that is `held`, in the place of another if there is one. Cut off at any point,
    the next to hold or load it finds the one or the other, whole.
    """
    new = workspace_of(folder, inside=True) / _NEW
    with writing(folder):
        new.mkdir()
    write_tensors(new / WEIGHTS, tensors)
    write_history(new, records)
    write_config(new, content)
    set_aside(folder)
    with writing(folder):
        _move(new, folder)


def recover(folder: Path) -> None:
    """Bring back a model that was put aside by a process that was killed before there was something of the new one."""
    work = workspace_of(folder, inside=True)
    if (work / _BACK).is_dir() or ((work / _ASIDE).is_dir() and not has_begun(folder)):
        with suppress(StorageError), workspace(folder, inside=True, keep=True):  # else it is being written
            settle(folder)


def is_unfinished(folder: Path) -> bool:
    """Whether a training has begun in the folder and not ended."""
    if (folder / CONFIG).exists() and not (folder / WEIGHTS).exists():
        return True
    return any((folder / name).exists() for name in (CHECKPOINT, PRETRAINING))


def check_place(folder: Path) -> None:
    """Raise if a folder holds what a model would spoil: a data set, or another program's files."""
    if (folder / "dataset.json").exists():
        raise InputError(f"{folder} is a data set; choose another folder for the model")
    for name in FILES:
        if (folder / name).is_symlink() and not (folder / name).exists():
            raise InputError(f"{folder / name} is a link to nothing; remove it, or choose another folder")
    config = None
    with suppress(OSError, ValueError, RecursionError):  # a damaged file may have been a model's
        config = json.loads((folder / CONFIG).read_text())
    if config is not None and not (isinstance(config, dict) and {"network", "experts"} & config.keys()):
        raise InputError(f"{folder} has a {CONFIG} that is no model's; choose an empty or new folder")


def write_config(folder: Path, content: dict) -> None:
    write_json(folder / CONFIG, {"format": FORMAT, **content})


def read_config(folder: Path) -> dict:
    path = Path(folder) / CONFIG
    if not path.exists():
        raise InputError(f"{folder} is no model: there is no {path}")
    _check_size(path)
    content = read_json(path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        found = content.get("format") if isinstance(content, dict) else None
        raise InputError(f"{path} has format {found!r}; this version reads format {FORMAT}")
    return content


def _check_size(path: Path) -> None:
    """Raise unless a file can be read into memory."""
    size = check_regular(path).st_size
    if size > _MOST:
        raise InputError(f"{path} has {size:,} bytes; allowed are {_MOST:,}")


def write_history(folder: Path, records: list[dict]) -> None:
    with replacing(folder / HISTORY) as new, open(new, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


def read_history(folder: Path) -> list[dict]:
    path = Path(folder) / HISTORY
    try:
        _check_size(path)
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except FileNotFoundError:
        return []
    except InputError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} is damaged: {error}") from None
    for number, record in enumerate(records, 1):
        if not _is_record(record):
            raise InputError(f"{path} is damaged: line {number} is no record of a training")
    return records


def _is_record(record) -> bool:
    """Whether a line of a history is what training notes: numbers by name, and of other stages than those of epochs
    texts as well.
    """
    if not isinstance(record, dict):
        return False
    stage = record.get("stage")
    rest = [value for name, value in record.items() if name != "stage"]
    if stage is not None and stage not in _NEEDED:
        timed = isinstance(record.get("seconds", 0.0), int | float)
        return isinstance(stage, str) and timed and all(isinstance(value, str | int | float) for value in rest)
    ends = "best_epoch" in record
    needed = _NEEDED[stage] if stage else ("best_epoch", "seconds") if ends else ("epoch", "loss", "seconds")
    whole = [record.get(name, 0) for name in ("epoch", "layer", "best_epoch")]
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in rest)
    return numbers and record.keys() >= set(needed) and all(isinstance(value, int) for value in whole)
