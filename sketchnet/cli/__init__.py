"""The command line: `sketchnet VERB`. One file per verb; this one turns errors into exit codes.

0: done. 1: failed (disk, memory, interrupted). 2: bad usage or bad input. Errors are one line on standard error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection
from typing import Annotated

import typer

from sketchnet import __version__
from sketchnet.cli.data import data_app
from sketchnet.cli.encode import encode
from sketchnet.cli.evaluate import evaluate
from sketchnet.cli.explain import explain
from sketchnet.cli.flags import in_flags
from sketchnet.cli.ingest import ingest
from sketchnet.cli.lines import check_output
from sketchnet.cli.predict import predict
from sketchnet.cli.printing import output_is_lost, print_json, print_line, print_note, tell
from sketchnet.cli.progress import progress_steps
from sketchnet.cli.project import project
from sketchnet.cli.report import report
from sketchnet.cli.similar import similar
from sketchnet.cli.streams import check_streams, warnings_told
from sketchnet.cli.synth import synth
from sketchnet.cli.train import train
from sketchnet.cli.usage import UsageError, described, wants_help
from sketchnet.errors import InputError, Interrupted, SketchnetError
from sketchnet.memory import ran_out

__all__ = ["check_output", "main", "print_json", "print_line", "print_note", "progress_steps", "run"]

app = typer.Typer(
    name="sketchnet",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(ingest)
app.add_typer(data_app, name="data")
app.command(short_help="Give each row its code.")(encode)
app.command()(evaluate)
app.command(short_help="Show the columns that weigh most in a model's answers.")(explain)
app.command()(predict)
app.command()(project)
app.command(short_help="Write a page of a model.")(report)
app.command(short_help="Find the rows that are most like others, by their codes.")(similar)
app.command()(synth)
app.command()(train)


def _show_version(wanted: bool) -> None:
    if wanted:
        print_line(f"sketchnet {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Learn from sparse rows with millions of columns."""


_INTERRUPTED = 130  # what typer makes of Ctrl-C
_BUDGETED = ("evaluate", "ingest", "project", "report", "similar")
_RESUMABLE = ("ingest", "project", "synth", "train")


def main() -> None:
    run(app, "sketchnet", _RESUMABLE, _with_less)


def run(
    app: typer.Typer, program: str, resumable: Collection[str] = (), with_less: Callable[[], str] = lambda: ""
) -> None:
    """Run a command line to its end, and exit: `program` is how it is called, `resumable` are the verbs that go on when
    they are called again, `with_less` says how they need less memory.
    """
    # Read when torch is loaded. Threads that spin while they wait keep other processes from the cores.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

    def fail(message: object, code: int) -> None:
        tell(f"{program}: {message}")
        sys.exit(code)

    try:
        check_streams()
        with warnings_told():
            code = app(prog_name=program, standalone_mode=False)  # typer would print bad usage itself, in four lines
        sys.stdout.flush()  # what cannot be written is an error here; Python would tell it in its own way when it ends
        if code == _INTERRUPTED:
            fail("stopped as asked" + _go_on() * (_verb() in resumable), 1)
        sys.exit(code)
    except UsageError as error:
        if wants_help(error):
            error.show()
            sys.exit(2)
        fail(described(error, program, sys.argv[1:]), 2)
    except typer.Abort:
        fail("stopped", 1)
    except Interrupted:
        fail("stopped as asked" + _go_on() * (_verb() in resumable), 1)
    except InputError as error:
        fail(in_flags(error), 2)
    except SketchnetError as error:
        fail(error, 1)
    except OSError as error:
        where = error.filename or ("standard output" if output_is_lost() else None)
        if isinstance(error, BrokenPipeError):
            sys.exit(1)  # the reader has had enough
        fail(f"{where}: {error.strerror}" if where else error.strerror or error, 1)
    except (MemoryError, RuntimeError) as error:
        if not ran_out(error):
            raise
        said = str(error).partition("\n")[0]  # torch goes on for lines
        fail(f"out of memory{said and ': '}{said}{with_less()}", 1)


def _go_on() -> str:
    anew = _verb() == "train" and "--overwrite" in sys.argv  # which would forget what has been done
    return f"; run the same command again{', without --overwrite,' * anew} to go on"


def _with_less() -> str:
    if _verb() == "train":
        return "; choose a smaller network (--hidden, --components) or --batch-size, or name a smaller --memory"
    return "; name a smaller --memory" * (_verb() in _BUDGETED)


def _verb() -> str:
    return sys.argv[1] if len(sys.argv) > 1 else ""
