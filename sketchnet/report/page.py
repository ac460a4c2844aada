"""A document as one HTML page that needs nothing else: no network, no fonts, no scripts. All text is escaped."""

from __future__ import annotations

from html import escape
from importlib.resources import files

from sketchnet.escapes import escape_controls
from sketchnet.report import document

# Nothing may be loaded, nothing executed, whatever a name in the data says.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def html_of(page: document.Page) -> str:
    style = files("sketchnet.report").joinpath("page.css").read_text(encoding="utf-8")
    sections = "\n".join(_section(section) for section in page.sections)
    content = f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(page.title)}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{escape(page.title)}</h1>
<p class="about">{escape(page.about)}</p>
</header>
<main>
{sections}
</main>
</body>
</html>
"""
    return escape_controls(content, but="\n")


def _section(section: document.Section) -> str:
    anchor = escape(section.anchor)
    label = f'<p class="label"><a href="#{anchor}">{escape(section.label)}</a></p>' if section.label else ""
    blocks = "\n".join(_block(block) for block in section.blocks)
    head = f'{label}<h2 id="{anchor}-title">{escape(section.title)}</h2>'
    return f'<section id="{anchor}" aria-labelledby="{anchor}-title">\n{head}\n{blocks}\n</section>'


def _block(block) -> str:
    return {
        document.Text: lambda: f"<p>{_content(block.content)}</p>",
        document.Command: lambda: f'<pre class="command" tabindex="0"><code>{escape(block.text)}</code></pre>',
        document.Facts: lambda: _facts(block),
        document.Tiles: lambda: _tiles(block),
        document.Table: lambda: _table(block),
        document.Claims: lambda: _claims(block),
        document.Figure: lambda: _figure(block),
    }[type(block)]()


def _content(content: document.Content) -> str:
    return "".join(map(_part, document.parts(content)))


def _part(part) -> str:
    if isinstance(part, document.Number):
        name = f' data-name="{escape(part.name)}"' if part.name else ""
        return f'<span class="number" data-value="{part.value!r}"{name}>{escape(part.shown)}</span>'
    if isinstance(part, document.Verdict):
        return f'<span class="verdict {part.tone}">{escape(part.word)}</span>'
    if isinstance(part, document.Code):
        return f"<code>{escape(part.text)}</code>"
    if isinstance(part, document.Quiet):
        return f'<span class="quiet-text">{escape(part.text)}</span>'
    if isinstance(part, document.Link):
        return f'<a href="#{escape(part.anchor)}">{escape(part.text)}</a>'
    return escape(part)


def _facts(facts: document.Facts) -> str:
    rows = "".join(f"<div><dt>{escape(name)}</dt><dd>{_content(content)}</dd></div>" for name, content in facts.rows)
    return f'<dl class="facts">{rows}</dl>'


def _tiles(tiles: document.Tiles) -> str:
    rows = "".join(
        f'<li class="{tone}"><strong>{_part(number)}</strong> <span>{escape(what)}</span></li>'
        for number, what, tone in tiles.rows
    )
    return f'<div class="tiles"><h3>{escape(tiles.title)}</h3><ul>{rows}</ul></div>'


def _claims(claims: document.Claims) -> str:
    rows = "".join(f"<li>{_part(verdict)} <span>{escape(text)}</span></li>" for text, verdict in claims.rows)
    return f'<h3>{escape(claims.title)}</h3><ul class="claims">{rows}</ul>'


def _table(table: document.Table) -> str:
    figures = [document.has_number([row[column] for row in table.rows]) for column in range(len(table.header))]
    header = "".join(
        f'<th scope="col"{_class(column, figures, table.heads)}>{_content(content)}</th>'
        for column, content in enumerate(table.header)
    )
    lines = []
    for number, row in enumerate(table.rows):
        cells = []
        for column, content in enumerate(row):
            if column >= table.heads:
                shade = _shade(table, number, column - table.heads)
                cells.append(f"<td{_class(column, figures, table.heads)}{shade}>{_content(content)}</td>")
            elif column == 0 and table.heads > 1:
                if content != "":
                    span = _span(table, number)
                    cells.append(f'<th scope="rowgroup" rowspan="{span}">{_content(content)}</th>')
            else:
                cells.append(f'<th scope="row">{_content(content)}</th>')
        first = ' class="first"' if table.heads > 1 and row[0] != "" else ""
        lines.append(f"<tr{first}>{''.join(cells)}</tr>")
    caption = f"<caption>{escape(table.caption)}</caption>"
    body = f"<thead><tr>{header}</tr></thead><tbody>{''.join(lines)}</tbody>"
    # What scrolls must be reachable by the keyboard, and then needs a name.
    name = f'role="region" aria-label="{escape(table.caption)}" tabindex="0"'
    # The table's own caption is for those who hear it; it would scroll away with the table, or be as narrow.
    seen = f'<p class="caption" aria-hidden="true">{escape(table.caption)}</p>'
    return f'{seen}<div class="scroll" {name}><table>{caption}{body}</table></div>'


def _class(column: int, figures: list[bool], heads: int) -> str:
    return ' class="figure"' if figures[column] and column >= heads else ""


def _shade(table: document.Table, row: int, column: int) -> str:
    if table.shades is None:
        return ""
    return f' style="--share: {100 * table.shades[row][column]:.1f}%" data-shaded'


def _span(table: document.Table, number: int) -> int:
    rows = 1
    while number + rows < len(table.rows) and table.rows[number + rows][0] == "":
        rows += 1
    return rows


def _figure(figure: document.Figure) -> str:
    key = "".join(f"<li>{sign}<span>{escape(name)}</span></li>" for sign, name in figure.key)
    key = f'<ul class="key">{key}</ul>' if key else ""
    kind = "panels" if len(figure.drawings) > 1 else "single"
    drawings = f'<div class="{kind}">{"".join(figure.drawings)}</div>'
    numbers = ""
    if figure.numbers is not None:
        numbers = f"<details><summary>The numbers of this figure</summary>{_table(figure.numbers)}</details>"
    return f"<figure>{key}{drawings}<figcaption>{escape(figure.caption)}</figcaption>{numbers}</figure>"
