"""Bad usage in one line: what was given, what is allowed, where to read more."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

import typer

from sketchnet.checks import meant

UsageError: Any = typer.BadParameter.__base__  # which typer itself does not name; where it comes from has changed


def wants_help(error: UsageError) -> bool:
    """Whether nothing was given, so that the message is the whole help."""
    return type(error).__name__ == "NoArgsIsHelpError"


def described(error: UsageError, program: str, words: Sequence[str]) -> str:
    """The line for an error in the words of a command line."""
    called = [program, *(word for word in words[:1] if not word.startswith("-"))]
    command = " ".join(called) if error.ctx is None else error.ctx.command_path
    return f"{_what(error, words)}; try {command} --help"


def _what(error: UsageError, words: Sequence[str]) -> str:
    said = error.format_message().rstrip(".")
    if error.ctx is None:
        return _small(said)
    command = error.ctx.command
    option = getattr(error, "option_name", None)
    if option is not None and hasattr(error, "possibilities"):
        options = (p for p in command.get_params(error.ctx) if p.param_type_name == "option")
        return (
            f"there is no option {option}; {meant(option, [n for p in options for n in (*p.opts, *p.secondary_opts)])}"
        )
    if said.startswith("No such command"):
        quoted = re.fullmatch(r"No such command (.*?)(\. Did you mean [a-z', ]*\?)?", said)
        given = ast.literal_eval(quoted[1]) if quoted else said  # it may have quotes of its own
        return f"there is no verb {given!r}; {meant(given, command.list_commands(error.ctx))}"
    parameter = getattr(error, "param", None)
    if parameter is not None and parameter.param_type_name == "option":
        value = _given(parameter.opts, words)
        # pydantic's words are about an "input"; ours name it.
        allowed = re.sub("^Input should be", "it must be", error.message).partition(", unable")[0].rstrip(".")
        return f"{parameter.opts[0]} {value} is not possible; {allowed}"
    arguments = [p.metavar or p.name.upper() for p in command.params if p.param_type_name == "argument"]
    return f"{_small(said)}; its arguments are {' '.join(arguments) or 'none'}"


def _given(names: Sequence[str], words: Sequence[str]) -> str:
    """What a command line says of an option, the last time it does: `--name x`, `--name=x`, `-n x` or `-nx`."""
    found = ""
    for word, following in zip(words, [*words[1:], ""]):
        name, equals, value = word.partition("=")
        if word in names:
            found = following
        elif equals and name in names and name.startswith("--"):
            found = value
        elif word[:2] in names and not word.startswith("--"):
            found = word[2:]
    return found


def _small(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
