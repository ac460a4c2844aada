"""`sketchnet encode`: short codes of rows, by an autoencoder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from sketchnet.cli.inputs import InputOptions, takes_input_options
from sketchnet.cli.printing import json_text, print_note
from sketchnet.errors import InputError, StorageError


@takes_input_options
def encode(
    options: InputOptions,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder that train --task autoencoder wrote.")],
    input: Annotated[Path, typer.Argument(metavar="INPUT", help="A file, a folder that ingest wrote, or - .")],
    output: Annotated[
        Path | None, typer.Option(metavar="FILE.npy", help="Array to write. [default: lines on standard output]")
    ] = None,
    bits: Annotated[bool, typer.Option("--bits", help="0 or 1, of a model with binary codes.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a row; with --output, one that says what was written.")
    ] = False,
) -> None:
    """Give each row its code: numbers set apart by tabs, a line a row; or an array of float32 (of bits, uint8) in a
    .npy file.

    Rows are read as those that the model was trained on; labels in them are not looked at.

    \b
    Examples:
      sketchnet encode news-model news.svm.gz --output codes.npy
      sketchnet encode news-model news-test.svm --bits
    """
    import numpy as np

    from sketchnet.cli.lines import check_apart, check_output, lines_to
    from sketchnet.cli.model_rows import ModelRows, answering, open_autoencoder
    from sketchnet.cli.outputs import outputs_of

    loaded = open_autoencoder(model)
    width, dtype = loaded.network.config.n_codes, np.uint8 if bits else np.float32
    if bits and not loaded.network.config.binary_codes:
        raise InputError(f"--bits is for binary codes; {model} was trained without --binary-codes")
    if output is not None:
        check_output("--output", output, ".npy")
        check_apart(output, input, model)
    options.check_used(input)
    rows, done = ModelRows(loaded, input, options), 0
    # A bar would run through codes that go to the same terminal.
    bar = None if output is None else f"encoding {input.name}"
    writing = lines_to(None) if output is None else _array_to(output, width, dtype)
    with answering(model, input), writing as write:
        for codes in outputs_of(loaded, rows, bar, np.float32):
            codes = (codes > 0.5).astype(np.uint8) if bits else codes
            write("".join(line + "\n" for line in _lines(codes, as_json)) if output is None else codes)
            done += len(codes)
    if output is not None:
        name = np.dtype(dtype).name
        facts = {"output": str(output), "rows": done, "codes": width, "dtype": name}
        print_note(facts if as_json else f"{output}: {done:,} x {width}, {name}")


def _lines(codes, as_json: bool) -> Iterator[str]:
    for code in codes.tolist():
        if as_json:
            yield json_text({"code": [float(f"{x:.9g}") if isinstance(x, float) else x for x in code]})
        else:
            yield "\t".join(f"{x:.9g}" for x in code)


@contextmanager
def _array_to(path: Path, width: int, dtype) -> Iterator[Callable]:
    """Gives a function that appends rows to a .npy file, which is there only when all went well.

    How many there are is known last. So the header is written twice; it is as long for any number of rows.
    """
    import numpy as np
    from numpy.lib import format as npy

    from sketchnet.data.compression import atomic_writing

    rows = 0

    def header(file) -> int:
        file.seek(0)
        npy.write_array_header_1_0(file, {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": (rows, width)})
        return file.tell()

    with atomic_writing(path) as file:
        begins = header(file)

        def append(codes) -> None:
            nonlocal rows
            file.write(codes.tobytes())
            rows += len(codes)

        yield append
        if header(file) != begins:
            raise StorageError(f"cannot write {path}: its header has no room for {rows} rows")
