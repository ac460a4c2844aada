"""A document as Markdown: the same words and numbers as the page; figures are tables of their numbers."""

from __future__ import annotations

import re

from sketchnet.escapes import escape_controls
from sketchnet.report.document import (
    Claims,
    Code,
    Command,
    Content,
    Facts,
    Figure,
    Link,
    Number,
    Page,
    Quiet,
    Section,
    Table,
    Text,
    Tiles,
    Verdict,
    parts,
)

_MARKS = re.compile(r"([\\`*_{}\[\]>#|~&$])")  # what Markdown or HTML would take for markup


def markdown_of(page: Page) -> str:
    pieces = [f"# {_plain(page.title)}", _plain(page.about)]
    for section in page.sections:
        pieces += _section(section)
    return escape_controls("\n\n".join(pieces) + "\n", but="\n")


def _section(section: Section) -> list[str]:
    label = f" ({_code(section.label)})" if section.label else ""
    title = f'<a id="{_anchor(section.anchor)}"></a>\n\n## {_plain(section.title)}{label}'
    return [title, *(text for block in section.blocks if (text := _block(block)))]


def _block(block) -> str:
    return {
        Text: lambda: _content(block.content),
        Command: lambda: "\n".join("    " + line for line in block.text.splitlines()),
        Facts: lambda: "\n".join(f"- {_plain(name)}: {_content(content)}" for name, content in block.rows),
        Tiles: lambda: _tiles(block),
        Table: lambda: _table(block),
        Claims: lambda: "\n".join(
            [
                f"{_plain(block.title)}:",
                "",
                *(f"- **{_plain(verdict.word)}**: {_plain(x)}" for x, verdict in block.rows),
            ]
        ),
        Figure: lambda: "\n\n".join(
            [f"*{_plain(block.caption)}*", *([_table(block.numbers)] if block.numbers is not None else [])]
        ),
    }[type(block)]()


def _tiles(tiles: Tiles) -> str:
    found = ", ".join(f"{number.shown} {_plain(what)}" for number, what, _ in tiles.rows)
    return f"**{_plain(tiles.title)}:** {found}"


def _table(table: Table) -> str:
    lines = [_line(table.header), "|" + "|".join(_rule(table, column) for column in range(len(table.header))) + "|"]
    return "\n".join([f"{_plain(table.caption)}:", "", *lines, *map(_line, table.rows)])


def _rule(table: Table, column: int) -> str:
    figures = any(isinstance(part, Number) for row in table.rows for part in parts(row[column]))
    return "---:" if figures and column >= table.heads else "---"


def _line(row: list[Content]) -> str:
    return "| " + " | ".join(_content(content) for content in row) + " |"


def _content(content: Content) -> str:
    return "".join(map(_part, parts(content)))


def _part(part) -> str:
    if isinstance(part, Number):
        return part.shown
    if isinstance(part, Verdict):
        return f"**{_plain(part.word)}**"
    if isinstance(part, Code):
        return _code(part.text)
    if isinstance(part, Link):
        return f"[{_plain(part.text)}](#{_anchor(part.anchor)})"
    return _plain(part.text if isinstance(part, Quiet) else part)


def _plain(text: str) -> str:
    """Text that means itself."""
    return _MARKS.sub(r"\\\1", text.replace("\n", " ")).replace("<", "&lt;")


def _code(text: str) -> str:
    """Between more backticks than the text has in a row; a bar would end a cell of a table."""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}".replace("|", "\\|").replace("\n", " ")


def _anchor(text: str) -> str:
    return re.sub(r"[^\w:.-]", "-", text)
