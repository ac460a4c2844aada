"""The page says what the results file has: every number is found again, every label, claim and reason is there."""

import json
import re
from pathlib import Path
from statistics import fmean

import pytest

from reproduction.experiments import LABELS, find_experiment
from reproduction.experiments.experiment import Cell
from reproduction.experiments.results import Results
from reproduction.report.page import reproduction_page
from sketchnet.errors import InputError
from sketchnet.report.markdown import markdown_of
from sketchnet.report.page import html_of
from tests.report.numbers import Numbers
from tests.reproduction.report.made_up import EXPERIMENTS, HOSTILE, write_results


def expected(path, experiments, scale="small"):
    """The numbers of tables and figures, straight from the lines of the file."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    by_cell = {}
    for line in lines:
        by_cell.setdefault((line["scale"], Cell(line["recipe"], line["settings"]).key), []).append(line["found"])
    numbers = {}
    for experiment in experiments:
        for entry in experiment.entries(scale):
            name = f"{experiment.label}/{entry.series}/{entry.x}"
            if entry.published is not None:
                numbers[f"{name}/published"] = entry.published
            found = by_cell.get((scale, entry.cell.key), []) if entry.cell else []
            runs = [each[entry.quantity] for each in found if entry.quantity in each]
            if runs:
                numbers[f"{name}/ours"] = fmean(runs)
            if len(runs) > 1:
                numbers |= {f"{name}/least": min(runs), f"{name}/largest": max(runs)}
    return numbers


def differences(text, numbers):
    """What of the numbers the page lacks, has otherwise, or has beside them; and what it rounds wrongly."""
    wrong = []
    shown = {name: value for name, value, _ in Numbers(text).found if _is_entry(name)}
    wrong += [name for name in {**shown, **numbers} if shown.get(name) != numbers.get(name)]
    for name, value, said in Numbers(text).found:
        number = re.match(r"-?[\d,]+(\.\d+)?(e[-+]\d+)?", said)
        if said.endswith((" min", " kB", " MB")) or not number:
            continue
        decimals = len(number[1] or ".") - 1
        room = 0.5001 * 10.0 ** (int(number[2][1:]) - decimals if number[2] else -decimals)
        if abs(float(number[0].replace(",", "")) - value) > room:
            wrong.append(f"{name} says {said}")
    return wrong


def _is_entry(name):
    return name.rpartition("/")[2] in ("ours", "published", "least", "largest")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("reproduction") / "results.jsonl"
    write_results(path)
    return path


@pytest.fixture(scope="module")
def page(path):
    return reproduction_page(path, EXPERIMENTS)[0]


def test_numbers_are_those_of_the_file(path, page):
    numbers = expected(path, EXPERIMENTS)
    assert len(numbers) > 100
    assert differences(html_of(page), numbers) == []


def test_numbers_of_the_page_in_the_docs_are_those_of_its_file():
    folder = Path(__file__).parents[3] / "reproduction/results"
    experiments = [find_experiment(label) for label in LABELS]
    numbers = expected(folder / "results.jsonl", experiments, "small")
    assert len(numbers) > 300
    assert not differences((folder / "small.html").read_text(), numbers)


def test_the_check_can_fail(path, page):
    text, numbers = html_of(page), expected(path, EXPERIMENTS)
    name, value = next((name, value) for name, value in numbers.items() if name.endswith("Li/1e-6/ours"))
    assert differences(text.replace(repr(value), repr(value + 1e-9)), numbers) == [
        name
    ]  # another number than the file's
    assert differences(text, {**numbers, name: value + 1e-9}) == [name]
    assert differences(text, {key: x for key, x in numbers.items() if key != name}) == [name]  # one from nowhere
    assert differences(text.replace(f">{value:.2f}<", f">{value + 0.02:.2f}<"), numbers)  # rounded wrongly


def test_summary_counts_verdicts(path, page):
    _, summary = reproduction_page(path, EXPERIMENTS)
    text = html_of(page)
    for word, n in [*summary["values"].items(), *summary["claims"].items()]:
        assert f'data-value="{float(n)!r}" data-name="summary/{word}"' in text
    assert sum(summary["values"].values()) == 20 + 5 + 2
    assert summary["claims"] == {"confirmed": 2, "denied": 1, "not measured": 1}
    assert summary["claims of ours"] == {"confirmed": 0, "denied": 1, "not measured": 0}
    for word, n in summary["claims of ours"].items():
        assert f'data-value="{float(n)!r}" data-name="summary/of ours {word}"' in text
    assert summary["measurements"] == len(Results(path)) - 1  # one says why it is missing
    assert summary["labels measured"] == len(EXPERIMENTS) - 1


def test_claims_of_ours_stand_apart_from_the_thesis_s(page, path):
    text, plain = html_of(page), markdown_of(page)
    assert text.count("<h3>What we say</h3>") == plain.count("What we say:") == 1
    said, ours = plain.split("What we say:")
    assert "What we add" not in said
    assert ours.strip().startswith("- **denied**: What we add: fewer are better.")
    assert "**Claims that we make beside it:** 0 confirmed, 1 denied, 0 not measured" in said
    without, _ = reproduction_page(path, EXPERIMENTS[:1])  # nothing is said where there is nothing to count
    assert "that we make" not in markdown_of(without)


def test_every_label_has_its_section_and_command(page):
    text, plain = html_of(page), markdown_of(page)
    for experiment in EXPERIMENTS:
        assert f'<section id="{experiment.label}"' in text
        assert f'<a href="#{experiment.label}">' in text
        command = f"python -m reproduction {experiment.label} --scale small --out"
        assert command in text
        assert command in plain
        for claim in experiment.claims:
            assert claim.text in text
    for said in ("files of norb are not in the data folder", "published only", "2026-11-16", "torch 2.11.0", "2 cores"):
        assert said in text
        assert said in plain
    assert text.count('<svg class="pixels"') == 4
    assert text.count('class="band"') == 4


def test_what_failed_is_not_measured_either(tmp_path):
    """Its line differs from that of what is missing by one word; so do the pages."""
    pages = {}
    for kind in ("missing", "failed"):
        file = tmp_path / kind / "results.jsonl"
        file.parent.mkdir()
        write_results(file, experiments=EXPERIMENTS[:1])
        file.write_text(file.read_text().replace('"missing"', f'"{kind}"'))
        page, summary = reproduction_page(file, EXPERIMENTS[:1])
        pages[kind] = markdown_of(page).replace(f"--out {kind}", "--out it"), summary
    (missing, counts), (failed, same) = pages.values()
    assert same == counts
    assert "no data" in missing
    assert "no data" not in failed
    changed = [b for a, b in zip(missing.splitlines(), failed.splitlines(), strict=True) if a != b]
    assert any("files of norb are not in the data folder" in line and "Failed" in line for line in changed)


def test_text_is_escaped(page):
    text = html_of(page)
    assert HOSTILE in [entry.series for entry in EXPERIMENTS[0].entries("small")]
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "http" not in re.sub(r"http-equiv", "", text)  # nothing is loaded from elsewhere
    assert "<script" not in markdown_of(page)


def test_published_points_are_hollow_and_seeds_have_bars(page):
    text = html_of(page)
    drawn = text[text.index('<section id="fig:made_up"') :]
    drawn = drawn[: drawn.index("</section>")]
    assert drawn.count('<g class="hollow" data-x="1000" data-y="8.5">') == 5
    assert drawn.count('class="bar"') == 5
    assert drawn.count('<g class="point" data-x=') == 20


def test_markdown_has_the_same_numbers(page):
    shown = [text for _, _, text in Numbers(html_of(page)).found]
    plain = markdown_of(page)
    assert all(text in plain for text in shown)


def test_scales(tmp_path):
    path = tmp_path / "results.jsonl"
    write_results(path, "smoke")
    experiments = EXPERIMENTS[:2]
    results = write_results(path, "small", experiments[:1])
    page, _ = reproduction_page(path, experiments)  # each at the largest that was run
    assert "reproduction tab:made_up --scale small" in html_of(page)
    assert "reproduction fig:made_up --scale smoke" in html_of(page)
    cell, seed = experiments[0].cells("full")[0]
    results.add("full", cell, seed, {"error": 1.0}, {})
    page, _ = reproduction_page(path, experiments)  # full was only begun
    assert "reproduction tab:made_up --scale small" in html_of(page)
    page, _ = reproduction_page(path, experiments, "full")
    assert "1 of 22 measurements" in html_of(page)
    with pytest.raises(InputError, match="no results at scale full; it has smoke"):
        reproduction_page(path, experiments[1:], "full")


def test_every_label_of_the_dissertation(tmp_path):
    """With its published values and claims, and made-up numbers for all that it asks for."""
    path, experiments, lines = tmp_path / "results.jsonl", [find_experiment(label) for label in LABELS], {}
    for experiment in experiments:
        wanted = [entry for entry in experiment.entries("smoke") if entry.cell is not None]
        for cell, seed in experiment.cells("smoke"):
            record = {"scale": "smoke", "recipe": cell.recipe, "settings": cell.settings, "seed": seed}
            found = lines.setdefault((cell.key, seed), {**record, "found": {}})["found"]
            for entry in wanted:
                if entry.cell.key == cell.key:
                    found[entry.quantity] = (entry.published or 10.0) + len(found) / 3
    path.write_text("".join(json.dumps(line) + "\n" for line in lines.values()))
    page, summary = reproduction_page(path, experiments)
    assert summary["labels"] == summary["labels measured"] == len(LABELS)
    assert differences(html_of(page), expected(path, experiments, "smoke")) == []
    assert all(f"python -m reproduction {label} --scale smoke" in markdown_of(page) for label in LABELS)


@pytest.mark.parametrize("content", [b"", b"no results\n", b"\xff\xfe\x00", b'{"scale": "small"}\n'])
def test_bad_files(tmp_path, content):
    path = tmp_path / "results.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match="results.jsonl has no results"):
        reproduction_page(path, EXPERIMENTS)
