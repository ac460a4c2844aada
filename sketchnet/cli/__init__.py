"""The command line: `sketchnet VERB`. One file per verb; this one turns errors into exit codes.

0: done. 1: failed (disk, memory, interrupted). 2: bad usage or bad input. Errors are one line on standard error.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from sketchnet import __version__
from sketchnet.cli.data import data_app
from sketchnet.cli.encode import encode
from sketchnet.cli.evaluate import evaluate
from sketchnet.cli.explain import explain
from sketchnet.cli.ingest import ingest
from sketchnet.cli.predict import predict
from sketchnet.cli.project import project
from sketchnet.cli.report import report
from sketchnet.cli.reproduce import reproduce
from sketchnet.cli.similar import similar
from sketchnet.cli.synth import synth
from sketchnet.cli.train import train
from sketchnet.errors import InputError, SketchnetError

app = typer.Typer(
    name="sketchnet",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(ingest)
app.add_typer(data_app, name="data")
app.command()(encode)
app.command()(evaluate)
app.command()(explain)
app.command()(predict)
app.command()(project)
app.command()(report)
app.command()(reproduce)
app.command()(similar)
app.command()(synth)
app.command()(train)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"sketchnet {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Deep networks on sparse data with millions of features."""


def main() -> None:
    try:
        app()
    except InputError as error:
        _fail(error, 2)
    except SketchnetError as error:
        _fail(error, 1)
    except OSError as error:
        _fail(f"{error.filename or ''}: {error.strerror or error}", 1)
    except MemoryError as error:
        _fail(f"out of memory: {error}; name a smaller --memory", 1)


def _fail(message: object, code: int) -> None:
    print(f"sketchnet: {message}", file=sys.stderr)
    sys.exit(code)
