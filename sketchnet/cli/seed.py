"""`--seed` of verbs that draw nothing: accepted, so that a script can give it to any verb."""

from __future__ import annotations

from typing import Annotated

import typer

UnusedSeed = Annotated[
    int, typer.Option(help="Accepted as by every verb; nothing is drawn here, so it changes nothing.")
]
