"""A document as Markdown: the same words and numbers as the page; figures are tables of their numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sketchnet.escapes import escape_controls
from sketchnet.report import document

_MARKS = re.compile(r"([\\`*_{}\[\]>#|~&$])")  # what Markdown or HTML would take for markup


def markdown_of(page: document.Page) -> str:
    pieces = [f"# {_plain(page.title)}", _plain(page.about)]
    for section in page.sections:
        pieces += _section(section)
    return escape_controls("\n\n".join(pieces) + "\n", but="\n")


def _section(section: document.Section) -> list[str]:
    label = f" ({_code(section.label)})" if section.label else ""
    title = f'<a id="{_anchor(section.anchor)}"></a>\n\n## {_plain(section.title)}{label}'
    return [title, *(text for block in section.blocks if (text := _block(block)))]


def _block(block) -> str:
    return {
        document.Text: lambda: _content(block.content),
        document.Command: lambda: "\n".join("    " + line for line in block.text.splitlines()),
        document.Facts: lambda: "\n".join(f"- {_plain(name)}: {_content(content)}" for name, content in block.rows),
        document.Tiles: lambda: _tiles(block),
        document.Table: lambda: _table(block),
        document.Claims: lambda: "\n".join(
            [
                f"{_plain(block.title)}:",
                "",
                *(f"- **{_plain(verdict.word)}**: {_plain(x)}" for x, verdict in block.rows),
            ]
        ),
        document.Figure: lambda: "\n\n".join(
            [f"*{_plain(block.caption)}*", *([_table(block.numbers)] if block.numbers is not None else [])]
        ),
    }[type(block)]()


def _tiles(tiles: document.Tiles) -> str:
    found = ", ".join(f"{number.shown} {_plain(what)}" for number, what, _ in tiles.rows)
    return f"**{_plain(tiles.title)}:** {found}"


def _table(table: document.Table) -> str:
    lines = [_line(table.header), "|" + "|".join(_rule(table, column) for column in range(len(table.header))) + "|"]
    return "\n".join([f"{_plain(table.caption)}:", "", *lines, *map(_line, table.rows)])


def _rule(table: document.Table, column: int) -> str:
    figures = column >= table.heads and document.has_number(row[column] for row in table.rows)
    return "---:" if figures else "---"


def _line(row: Sequence[document.Content]) -> str:
    return "| " + " | ".join(_content(content) for content in row) + " |"


def _content(content: document.Content) -> str:
    return "".join(map(_part, document.parts(content)))


def _part(part) -> str:
    if isinstance(part, document.Number):
        return part.shown
    if isinstance(part, document.Verdict):
        return f"**{_plain(part.word)}**"
    if isinstance(part, document.Code):
        return _code(part.text)
    if isinstance(part, document.Link):
        return f"[{_plain(part.text)}](#{_anchor(part.anchor)})"
    return _plain(part.text if isinstance(part, document.Quiet) else part)


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
