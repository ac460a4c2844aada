"""`sketchnet data list`: the named data sets, and which of them are on this machine."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from sketchnet.cli.printing import print_json, print_table

data_app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

_COLUMNS = ("name", "train", "test", "features", "classes", "density", "on this machine")
_LEFT = (0, 6)  # no numbers


@data_app.callback(invoke_without_command=True)
def data(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="List them as one JSON array.")] = False,
) -> None:
    """Named data sets: what there is, and what is on this machine.

    \b
    Examples:
      sketchnet data list
      sketchnet data --json
    """
    context.obj = as_json
    if context.invoked_subcommand is None:  # with options alone there is one thing to do
        list_command(context, as_json)


@data_app.command("list", short_help="List them, with their sizes and where their files are.")
def list_command(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON array.")] = False,
) -> None:
    """List the named data sets, with their sizes in the dissertation's table and where their files are.

    They are looked for in $SKETCHNET_DATA/NAME, in $SKETCHNET_DATA and in the cache folder. The train column counts the
    validation part. Features and density of the text sets tng and rcv1 are those of their 2,000 most frequent words.

    Example: SKETCHNET_DATA=~/data sketchnet data list
    """
    from sketchnet.data.datasets import list_datasets

    infos = list_datasets()
    if as_json or context.obj:  # also before the word list
        print_json([{**asdict(info), "path": info.path and str(info.path)} for info in infos], indent=2)
        return
    rows = [_row(info) for info in infos]
    print_table([_COLUMNS, *rows], _LEFT)


def _row(info) -> tuple[str, ...]:
    sizes = [info.n_train, info.n_test, info.n_features, info.n_classes]
    density = f"{info.density:.3g}" if isinstance(info.density, float) else info.density or "-"
    place = str(info.path) if info.path else "generated" if info.present else "no"
    return (info.name, *("-" if size is None else f"{size:,}" for size in sizes), density, place)
