"""What the verbs that use a model share: opening it, and reading rows as those that it was trained on."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from sketchnet.cli.inputs import InputOptions, line_limits
from sketchnet.cli.printing import tell
from sketchnet.cli.streams import standard_input
from sketchnet.errors import BadRows, InputError
from sketchnet.memory import parse_memory, ran_out

_MEMORY = "400MB"  # for chunks of a file
_ROWS = 1024  # of a data set on disk, at a time
_BLOCK = 1 << 16  # bytes of standard input, at most: what a pipe holds
_DAMAGE = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RuntimeError)


def open_predictor(folder: Path, instead: str):
    """A model that predicts. What else could be done with an autoencoder is said by `instead`."""
    model = open_model(folder)
    if model.task.kind == "autoencoder":
        raise InputError(f"{folder} is an autoencoder: it makes codes, and predicts nothing; {instead}")
    return model


def open_autoencoder(folder: Path):
    """A model that makes codes."""
    model = open_model(folder)
    if model.task.kind != "autoencoder":
        what = "numbers" if model.task.kind == "regression" else "classes"
        raise InputError(f"{folder} is no autoencoder: it predicts {what}, and makes no codes; try `sketchnet predict`")
    return model


def open_model(folder: Path):
    """A model whose description of its data can be used; a damaged one is bad input."""
    from sketchnet.experts.model import load_model
    from sketchnet.training.checkpoint import CONFIG, is_unfinished

    with _damage_named(str(folder)):
        model = load_model(folder)
    with _damage_named(str(folder / CONFIG)):
        try:
            _check_description(model)
        except InputError as error:
            raise InputError(f"{folder / CONFIG}: {error}") from None
    if is_unfinished(folder):
        tell(f"sketchnet: {folder} is unfinished; its best epoch so far answers")
    return model


@contextmanager
def answering(model: Path, path: Path) -> Iterator[None]:
    """An output in this block that is no finite number is told with its model and its file."""
    try:
        yield
    except BadRows as error:
        raise InputError(f"{path}, by the model {model}: {error}") from None


@contextmanager
def _damage_named(name: str) -> Iterator[None]:
    """Turn what Python and torch say of damage into an error that names it."""
    try:
        yield
    except InputError:
        raise
    except _DAMAGE as error:
        if ran_out(error):
            raise
        what = str(error).partition("\n")[0]  # torch says some things at length
        raise InputError(f"{name} is damaged: {type(error).__name__}: {what}") from None


def _check_description(model) -> None:
    """Raise one way or another if the rows cannot be read as the model's data says, or its classes not be named."""
    from sketchnet.data.ngrams import NgramHasher
    from sketchnet.data.tables import TableEncoder

    data, task = model.data, model.task
    names = data.get("classes") or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TypeError("the names of classes are no texts")
    if len(model.class_names) != (2 if task.kind == "binary" else len(task.classes)):
        raise ValueError(f"{len(task.classes)} classes are not possible for a {task.kind} model")
    if data.get("base", 0) not in (0, 1):
        raise ValueError(f"base {data['base']!r} is not possible")
    if data.get("labels", "ignore") not in ("single", "multi", "ignore"):
        raise ValueError(f"labels {data['labels']!r} are not possible")
    if data.get("hasher"):
        NgramHasher(**data["hasher"]).fit()
    if data.get("encoder"):
        encoder = TableEncoder.from_dict(data["encoder"])
        kinds, known = encoder.kinds_, encoder.categories_ or {}
        of_texts = all(isinstance(text, str) for texts in [encoder.classes_, *known.values()] for text in texts)
        kinds_fit = set(kinds.values()) <= {"numeric", "categorical"} and isinstance(encoder.label_, str | None)
        if not (kinds_fit and of_texts and isinstance(encoder.unknown_, dict)):
            raise ValueError("the columns of its tables are not described")
        if encoder.width != model.n_columns:
            raise ValueError(f"its tables have {encoder.width} columns, the model {model.n_columns}")


def options_for(model, path: Path, options: InputOptions) -> InputOptions:
    """The options with the format of the rows that the model was trained on, unless they or the file say another."""
    from sketchnet.data.parquet import is_sparse

    known = model.data
    if options.text or options.format != "auto":
        kind = "text" if options.text else options.format
    elif known.get("hasher"):
        kind = "text" if str(path) == "-" else options.kind([path], known)
    elif known.get("encoder"):
        kind = "table"
    elif str(path) == "-" or ("base" in known and not {".npz", ".parquet"} & set(path.suffixes)):
        kind = "svmlight"
    else:
        kind = options.kind([path], {})
    options = replace(options, format=kind)
    options.kind([path], known)  # refuses options of other formats
    if kind == "text" and not known.get("hasher"):
        raise InputError(f"{path} cannot be read as text: the model was not trained on text")
    learnt = (known.get("encoder") or {}).get("label_")
    if learnt is not None and options.label not in (None, learnt):
        raise InputError(f"--label {options.label} is not what the model learnt; that was {learnt}")
    if kind == "table" and not known.get("encoder") and not is_sparse(path):
        raise InputError(f"{path} cannot be read as a table: the model was not trained on one")
    width = _as_wide(model, known).get("columns")
    of_ids = not (known.get("hasher") or known.get("encoder"))
    if of_ids and width is not None and (options.columns or 0) > width:
        options = replace(options, columns=width)  # who reads the rows can say where an id is beyond it
    return options


def open_folder(model, path: Path):
    """A data set on disk, which must have been read as the model's was."""
    from sketchnet.data.shard_set import check_rows, open_shards

    data = open_shards(path)
    check_rows(data, [path])
    check_columns(path, data.descriptions[0], model.data, "the model")
    width = model.n_columns
    if not model.takes_any_id:
        if data.n_columns > width:
            raise InputError(f"{path} has {data.n_columns:,} columns; the model was trained on {width:,}")
        data.n_columns = width  # the last columns may just not occur in it
    return data


@contextmanager
def labelled_rows(model, path: Path, options: InputOptions, memory: str) -> Iterator:
    """Rows with their labels, to measure a model on. Those of a file are kept on disk until the block ends."""
    from sketchnet.cli.training_data import open_data

    with tempfile.TemporaryDirectory() as work:
        if path.is_dir():
            options.check_used(path)
            yield open_folder(model, path)
            return
        options = options_for(model, path, options)
        known = _with_any_labels(model.data, options.label) if model.task.kind == "autoencoder" else model.data
        yield open_data([path], Path(work) / "data", options, memory, 0, _as_wide(model, known))


def _as_wide(model, known: dict) -> dict:
    """The description with the width of the model's rows; a table of hashed columns takes any id."""
    known = {key: value for key, value in known.items() if key != "columns"}
    return known if model.takes_any_id else {**known, "columns": model.n_columns}


def check_columns(path: Path, theirs: dict, ours: dict, what: str) -> None:
    """An error if a data set's columns mean something else than ours, by the descriptions of both."""
    pairs: dict[str, tuple] = {"hasher": (ours.get("hasher"), theirs.get("hasher"))}
    if "base" in ours and "base" in theirs:
        pairs["base"] = ours["base"], theirs["base"]
    for key in ("kinds_", "categories_", "n_columns", "seed", "missing"):  # the rest makes no columns
        pairs[f"encoder's {key.strip('_')}"] = tuple((d.get("encoder") or {}).get(key) for d in (ours, theirs))
    for name, (a, b) in pairs.items():
        if a != b:
            raise InputError(f"{path} does not fit {what}: its {name} differs; ingest it --like the training rows")


class ModelRows:
    """Rows without labels, in pieces that fit in memory, as wide as the model takes them.

    After the first piece, `base` is what the first column is called where the rows come from. `source` is what reads a
    file, and `done` how much of it has been read, if that is known.
    """

    def __init__(self, model, path: Path, options: InputOptions):
        self.base, self.done, self.source = 0, None, None
        self._model, self._path, self._stdin = model, path, str(path) == "-"
        self._known = _as_wide(model, without_labels(model.data))
        if path.is_dir():
            self._data = open_folder(model, path)
            self.base = self._data.descriptions[0].get("base", 0)
            return
        if options.skip_bad_lines:
            raise InputError("--skip-bad-lines is not possible here: answers would no longer be those of their lines")
        self._data, self._options = None, replace(options_for(model, path, options), label_column=None)
        if self._stdin:
            if self._options.format not in ("svmlight", "text"):
                raise InputError(f"{self._options.format} cannot come from standard input; give a file")
            if self._options.format == "svmlight" and "base" not in model.data and options.base in (None, "auto"):
                raise InputError("the model does not know whether ids begin at 0 or 1; give --base")
        else:
            self.source = self._open(path)

    def __iter__(self):
        if self._data is not None:
            from sketchnet.data.batches import iterate_batches

            pieces = iterate_batches(self._data, _ROWS, shuffle=False)
        else:
            pieces = self._from_stdin() if self._stdin else self._chunks(self.source, None)
        rows = 0
        for batch in pieces:
            if batch.n_rows:
                yield self._fitted(replace(batch, labels=None, label_indptr=None, groups=None), rows)
            rows += batch.n_rows

    def _open(self, path: Path):
        return self._options.source([path], _MEMORY, 0, self._known, Path(tempfile.gettempdir()))[0]

    def _chunks(self, source, state: dict | None):
        from sketchnet.cli.training_data import say_left_out

        for batch, state in source.chunks(state):  # noqa: B020 (the state moves on with the chunks)
            self.base, self.done = state["learnt"].get("base", 0), source.done(state)
            yield batch
        if state is not None:
            say_left_out({"encoder": state["learnt"].get("encoder")}, self._known, self._path)

    def _from_stdin(self):
        """Each block of lines goes through a file, so that what reads files reads it too."""
        is_text, line = self._options.format == "text", 1
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "lines"
            for block in _blocks(standard_input(), self._options.format):
                path.write_bytes(b"\n" + block)  # no line's first bytes can then be taken for a packed file's
                source = self._open(path)
                # To svmlight an empty line is no row; of text it is one, and left out.
                at = [1, line] if is_text else [0, line - 1]
                try:
                    yield from self._chunks(source, {"file": 0, "at": at, "learnt": source.learnt})
                except InputError as error:
                    raise InputError(str(error).replace(str(path), "standard input")) from None
                line += block.count(b"\n")

    def _fitted(self, batch, rows_before: int):
        width = self._model.n_columns
        if self._model.takes_any_id:
            return batch
        if batch.n_columns > width:
            bad = (batch.indices >= width).nonzero()[0]
            if len(bad):
                row = int(batch.indptr.searchsorted(bad[0] + batch.indptr[0], side="right")) - 1
                column, last = int(batch.indices[bad[0]]) + self.base, width - 1 + self.base
                allowed = f"the model was trained on {self.base} to {last}"
                raise InputError(f"{self._path}: row {rows_before + row} has column id {column}; {allowed}")
            raise InputError(f"{self._path} has {batch.n_columns:,} columns; the model has {width:,}")
        return replace(batch, n_columns=width)


def names_of_classes(description: dict) -> list[str]:
    """Those of a data set's description; none where they say no more than numbers."""
    names = description.get("classes") or []
    return [] if names == [str(number) for number in range(len(names))] else names


def json_classes(model) -> list:
    """The classes in the order of the outputs, as JSON has them: numbers, if they are numbers."""
    classes = model.classes if names_of_classes(model.data) else model.task.classes
    return [int(label) if isinstance(label, float) and label.is_integer() else label for label in classes]


def without_labels(known: dict) -> dict:
    """The description by which rows are read whose labels may be there, or not, or wrong."""
    known, encoder = {**known, "labels": "ignore"}, known.get("encoder")
    if encoder and encoder["label_"] is not None:
        ignore = [*encoder["ignore"], encoder["label_"]]
        known["encoder"] = {**encoder, "label": None, "label_": None, "label_kind_": None, "ignore": ignore}
    return known


def _with_any_labels(known: dict, label: str | None) -> dict:
    """The description by which labelled rows are read. Which labels there are is up to them: none were learnt."""
    known = {key: value for key, value in known.items() if key not in ("labels", "classes")}
    encoder = known.get("encoder")
    if encoder and (label or encoder["label_"]):
        label = label or encoder["label_"]
        ignore = [name for name in encoder["ignore"] if name != label]
        forgotten: dict = {"classes": None, "classes_": [], "classes_fixed_": False, "label_kind_": "categorical"}
        known["encoder"] = {**encoder, **forgotten, "label": label, "label_": label, "ignore": ignore}
    return known


def _blocks(stream, kind: str) -> Iterator[bytes]:
    """Whole lines, as many as have come."""
    from sketchnet.data.compression import packing_of

    rest, begun, longest = bytearray(), False, line_limits(kind, parse_memory(_MEMORY)).line
    while piece := stream.read1(_BLOCK):
        packing, begun = None if begun else packing_of(piece), True
        if packing:
            raise InputError(f"standard input is packed ({packing}); unpack it first, as zcat does, or give a file")
        cut = piece.rfind(b"\n") + 1
        if cut:
            yield bytes(rest) + piece[:cut]
            rest = bytearray(piece[cut:])
        else:
            rest += piece
            if len(rest) > longest:
                raise InputError(f"standard input has a line of more than {longest:,} bytes")
    if rest:
        yield bytes(rest)
