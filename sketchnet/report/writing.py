"""Write a page to its files: all of them, or none."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from sketchnet.report.document import Page
from sketchnet.report.markdown import markdown_of
from sketchnet.report.page import html_of


def write_page(page: Page, html: Path, markdown: Path | None = None) -> None:
    """Write a page as HTML, and as Markdown if that is asked for; after an error both files are as they were."""
    from sketchnet.data.compression import atomic_writing  # here, because it loads NumPy

    texts = {html: html_of(page)} | ({} if markdown is None else {markdown: markdown_of(page)})
    with ExitStack() as both:
        for path, text in texts.items():
            both.enter_context(atomic_writing(path)).write(text.encode())
