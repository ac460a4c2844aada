"""A real browser shows the page: nothing is refused or fails, and on a phone only tables scroll sideways."""

import json
import re
import shutil
import subprocess
from html import escape, unescape

import pytest

from reproduction.report.page import reproduction_page
from sketchnet.report.page import html_of
from tests.reproduction.report.made_up import EXPERIMENTS, write_results

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
--disable-component-update --disable-sync --hide-scrollbars --virtual-time-budget=5000 --window-size=1000,900""".split()
# Browsers do not make windows as narrow as a phone, so the page stands in a frame that is.
OUTER = """<!DOCTYPE html><title>waiting</title><iframe id="phone" width="{width}" height="800" style="border:0"
srcdoc="{page}"></iframe><script>
const errors = []; window.onerror = (message) => errors.push(message);
document.getElementById("phone").onload = (event) => {{
  const inner = event.target.contentDocument, root = inner.documentElement;
  const number = (query) => inner.querySelectorAll(query).length;
  const scrolls = (element) => element.scrollWidth > element.clientWidth;
  const seen = {{ page: root.scrollWidth, window: root.clientWidth, height: root.scrollHeight,
    sections: number("section"), plots: number("svg.plot"),
    tables: [...inner.querySelectorAll(".scroll")].some(scrolls) }};
  document.title = JSON.stringify([seen, errors]);
}};</script>"""

pytestmark = [pytest.mark.soak, pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")]


def look(text, folder, width=390):
    """(what was seen in the page at that width, errors of scripts, what the browser complains of)."""
    (folder / "outer.html").write_text(OUTER.format(width=width, page=escape(text)))
    flags = [*FLAGS, "--enable-logging=stderr", f"--user-data-dir={folder / 'browser'}"]
    command = [CHROMIUM, *flags, "--dump-dom", (folder / "outer.html").as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    seen, errors = json.loads(unescape(re.search("<title>(.*?)</title>", done.stdout)[1]))
    return seen, errors, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("reproduction") / "results.jsonl"
    write_results(path)
    return html_of(reproduction_page(path, EXPERIMENTS)[0])


def test_on_a_phone(page, tmp_path):
    seen, errors, complaints = look(page, tmp_path)
    assert (seen["page"], seen["window"]) == (390, 390)
    assert seen["sections"] == len(EXPERIMENTS) + 2
    assert seen["plots"] == 1 + 1 + 3  # of four starts, three beside the reference
    assert seen["tables"]
    assert seen["height"] > 3000
    assert (errors, complaints) == ([], [])


def test_the_check_can_fail(page, tmp_path):
    wide = page.replace("<main>", '<main><div style="width: 700px">too wide</div><script>alert(1)</script>')
    seen, _, complaints = look(wide, tmp_path)
    assert seen["page"] > 390
    assert complaints  # the script was refused
