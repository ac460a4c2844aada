"""The score board as a page of Markdown: losses first. Every number comes from the records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from reproduction.scoreboard.arithmetic import DRAWS, LEAST_PROBABILITY, Difference, bootstrap_counts, differences
from reproduction.scoreboard.plan import (
    DEFAULT,
    HELD_BACK,
    LEAST_SECONDS,
    MOST_TRIALS,
    NAME_OF_DEFAULT,
    RIVALS,
    SETS,
    TIMES_DEFAULT,
)
from reproduction.scoreboard.records import Records

FIGURES = {"error": ("error %", "{:.2f}"), "log_loss": ("log loss", "{:.4f}"), "auc": ("AUC", "{:.4f}")}
_MARKS = {1: "better", 0: "level", -1: "**worse**"}


@dataclass(frozen=True)
class Score:
    """Of one set: the runs of each rival that has any, and how the default differs from it, by figure."""

    name: str
    runs: dict[str, list[dict]]
    failed: dict[str, str]
    found: dict[str, dict[str, Difference]]

    def mean(self, rival: str, figure: str) -> float | None:
        values = [run[figure] for run in self.runs[rival] if figure in run]
        return float(np.mean(values)) if values else None

    def outcome(self, figure: str) -> str | None:
        """Worse than any rival, better than every one, or else level."""
        verdicts = [found[figure].verdict for found in self.found.values() if figure in found]
        if not verdicts:
            return None
        return "worse" if min(verdicts) < 0 else "better" if min(verdicts) > 0 else "level"


def score_sets(records: Records, quick: bool = False) -> list[Score]:
    scores = []
    current = records.current(quick)
    for name in [name for name in SETS if name in current]:
        good = {rival: [run for run in runs if "failed" not in run] for rival, runs in current[name].items()}
        failed = {rival: runs[-1]["failed"] for rival, runs in current[name].items() if "failed" in runs[-1]}
        runs = {rival: good[rival] for rival in [DEFAULT, *RIVALS] if good.get(rival)}
        if DEFAULT in runs:
            scores.append(Score(name, runs, failed, _differences(records, runs)))
    return scores


def _differences(records: Records, runs: dict[str, list[dict]]) -> dict[str, dict[str, Difference]]:
    ours = [records.predictions(run) for run in runs[DEFAULT]]
    counts = bootstrap_counts(len(ours[0].labels))
    rivals = [rival for rival in runs if rival != DEFAULT]
    return {rival: differences(ours, [records.predictions(run) for run in runs[rival]], counts) for rival in rivals}


def write_page(records: Records, quick: bool = False) -> str:
    scores = score_sets(records, quick)
    lines = ["# Score board", ""]
    if not scores:
        return "\n".join([*lines, "Nothing was measured yet.", ""])
    lines += [*_introduction(scores, quick), "", *_losses(scores), "", *_wins(scores), "", *_level(scores), ""]
    lines += [*_rules(scores), ""]
    for score in scores:
        lines += [*_table(score), ""]
    return "\n".join(lines)


def _introduction(scores: list[Score], quick: bool) -> Iterator[str]:
    yield (
        "`SketchClassifier()` as it is, beside rivals whose settings were searched, on the development sets. Written "
        "by `python benchmarks/scoreboard.py --page`; no number was typed in."
    )
    if quick:
        yield ""
        yield "**Small samples of the training rows, to see that everything runs: these numbers say nothing.**"
    yield ""
    yield "| sets where the default is, with 95 % confidence, | " + " | ".join(n for n, _ in FIGURES.values()) + " |"
    yield "|---|" + "---|" * len(FIGURES)
    for outcome, text in (("worse", "worse than some rival"), ("better", "better than every rival"), ("level", "else")):
        counts = [sum(score.outcome(figure) == outcome for score in scores) for figure in FIGURES]
        totals = [sum(score.outcome(figure) is not None for score in scores) for figure in FIGURES]
        yield f"| {text} | " + " | ".join(f"{n} of {total}" for n, total in zip(counts, totals)) + " |"


def _losses(scores: list[Score]) -> Iterator[str]:
    yield "## Losses"
    yield ""
    rows = [
        (score, figure, rival)
        for score in scores
        for figure in FIGURES
        for rival, found in score.found.items()
        if figure in found and found[figure].verdict < 0
    ]
    if not rows:
        yield "None: no rival is significantly better than the default in any figure on any set."
        return
    yield from _comparison(rows)


def _wins(scores: list[Score]) -> Iterator[str]:
    yield "## Wins"
    yield ""
    won = [(score, figure) for score in scores for figure in FIGURES if score.outcome(figure) == "better"]
    if not won:
        yield "None: on no set is the default significantly better than every rival in any figure."
        return
    yield "Better than every rival; the nearest one is shown."
    yield ""
    yield from _comparison([(score, figure, _nearest(score, figure)) for score, figure in won])


def _level(scores: list[Score]) -> Iterator[str]:
    yield "## Level"
    yield ""
    level = [(score, figure) for score in scores for figure in FIGURES if score.outcome(figure) == "level"]
    if not level:
        yield "None."
        return
    yield "Worse than no rival, and not better than every one; the best rival is shown."
    yield ""
    yield from _comparison([(score, figure, _nearest(score, figure)) for score, figure in level])


def _nearest(score: Score, figure: str) -> str:
    """The rival against whom the default's advantage is smallest."""
    found = {rival: each[figure] for rival, each in score.found.items() if figure in each}
    return min(found, key=lambda rival: found[rival].value * found[rival].better)


def _comparison(rows: list[tuple[Score, str, str]]) -> Iterator[str]:
    yield "| set | figure | default | rival | its figure | default less rival (95 % interval) |"
    yield "|---|---|---|---|---|---|"
    for score, figure, rival in rows:
        name, form = FIGURES[figure]
        ours, its = (form.format(score.mean(who, figure)) for who in (DEFAULT, rival))
        difference = _interval(score.found[rival][figure], form)
        yield f"| {score.name} | {name} | {ours} | {_name(rival)} | {its} | {difference} |"


def _rules(scores: list[Score]) -> Iterator[str]:
    runs = [run for score in scores for own in score.runs.values() for run in own]
    seeds = sorted({run["seed"] for run in runs})
    missing = [entrant.rival.name for key, entrant in RIVALS.items() if not any(key in score.runs for score in scores)]
    yield "## Rules"
    yield ""
    yield (
        f"- **Budget.** A rival's settings are searched for {TIMES_DEFAULT} times the seconds that the default takes "
        f"to fit the set, at least one whole fit (which is cut after {LEAST_SECONDS / 60:.0f} minutes, where it goes "
        f"in rounds and the search has less), in up to {MOST_TRIALS} trials: its usual settings, then random ones from "
        "its space below. Lists of rivals, spaces and budgets were fixed before anything was measured."
    )
    yield (
        f"- **Choice.** By log loss on {HELD_BACK}. They also choose rounds and epochs. Then the rival is fitted to "
        f"all training rows; {', '.join(_names(lambda rival: rival.needs_held_back_rows))} cannot learn without "
        "held-back rows and keeps them back. The search is made with the first seed; others take what it found."
    )
    yield (
        f"- **Figures.** Means over seeds {', '.join(map(str, seeds))}. Error is the share of wrong rows, with several "
        "labels of wrong labels. Log loss is of probabilities; those of machines that give none "
        f"({', '.join(_names(lambda rival: rival.gives == 'margins'))}) are a logistic function of their margins, with "
        "slope and bias by the held-back rows (one slope, where classes are more than two). No class counts for less "
        f"than {LEAST_PROBABILITY:g}. AUC is for two classes."
    )
    yield (
        f"- **Intervals.** Paired bootstrap: {DRAWS:,} draws of the test rows, the same for both; a difference counts "
        "where the 95 % interval lies on one side of 0. Runs of seeds are averaged by row."
    )
    yield (
        "- **Time and memory.** Each fit in a process of its own, one after another, the default first; wall and "
        "processor seconds of fit and predict, without writing rows in a rival's own text format; peak resident "
        "memory with rows and libraries."
    )
    if missing:
        yield f"- **Not measured:** {', '.join(missing)}."
    yield ""
    yield "| rival | usual settings | space of search |"
    yield "|---|---|---|"
    for key in [key for key in RIVALS if any(key in score.runs for score in scores)]:
        rival = RIVALS[key].rival
        space = "; ".join(f"{name} {', '.join(map(_word, values))}" for name, values in rival.space.items())
        yield f"| {rival.name} | {_settings(rival.defaults)} | {space} |"
    yield ""
    yield from _circumstances(runs)


def _circumstances(runs: list[dict]) -> Iterator[str]:
    where = [run["circumstances"] for run in runs]
    days = sorted({each["when"][:10] for each in where})
    packages = sorted({(name, number) for each in where for name, number in each["packages"].items()})
    for name in ("sketchnet", "python", "numpy", "torch"):
        packages += sorted({(name, each[name]) for each in where})
    codes = sorted({run["code"] for run in runs if run["rival"] == DEFAULT})
    yield (
        f"Measured {days[0]}{f' to {days[-1]}' if len(days) > 1 else ''} on "
        f"{'; '.join(sorted({each['machine'] for each in where}))}, with "
        f"{', '.join(f'{name} {number}' for name, number in packages)}; source of the default {', '.join(codes)}."
    )


def _names(which) -> list[str]:
    return [entrant.rival.name for entrant in RIVALS.values() if which(entrant.rival)]


def _table(score: Score) -> Iterator[str]:
    data = score.runs[DEFAULT][-1]["data"]
    has_auc = any("auc" in found for found in score.found.values()) or score.mean(DEFAULT, "auc") is not None
    figures = {key: value for key, value in FIGURES.items() if key != "auc" or has_auc}
    classes = f"{data['classes']} labels" if data["labels"] == "several" else f"{data['classes']} classes"
    yield f"## {score.name}"
    yield ""
    yield (
        f"{data['rows']:,} rows, {data['columns']:,} columns, {data['nnz'] / data['rows']:.0f} non-zeros a row, "
        f"{classes}; {data['test_rows']:,} test rows."
    )
    yield ""
    titles = [title for name, _ in figures.values() for title in (name, "default less it")]
    heads = ["model", *titles, "fit s (CPU)", "predict s (CPU)", "peak MiB", "trials, search s", "chosen"]
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    for rival, runs in score.runs.items():
        cells = [_name(rival)]
        for figure, (_, form) in figures.items():
            value = score.mean(rival, figure)
            difference = score.found.get(rival, {}).get(figure)
            cells += ["" if value is None else form.format(value)]
            cells += ["" if difference is None else f"{_interval(difference, form)} {_MARKS[difference.verdict]}"]
        for what in ("fit", "predict"):
            wall, processor = (np.mean([run[f"{what}_{kind}"] for run in runs]) for kind in ("seconds", "cpu_seconds"))
            cells.append(f"{wall:.2f} ({processor:.2f})")
        choice = runs[0].get("choice")
        cells += [f"{np.mean([run['peak_mib'] for run in runs]):.0f}"]
        cells += [f"{choice['trials']}, {choice['search_seconds']:.0f}" if choice else ""]
        cells += [_changed(rival, choice["settings"]) if choice else ""]
        yield "| " + " | ".join(cells) + " |"
    for rival, reason in score.failed.items():
        yield f"| {_name(rival)} | failed: {reason.replace('|', '/')} |"


def _changed(rival: str, settings: dict) -> str:
    usual = RIVALS[rival].rival.defaults
    return _settings({name: value for name, value in settings.items() if value != usual.get(name)}) or "usual settings"


def _settings(settings: dict) -> str:
    return ", ".join(f"{name} {_word(value)}" for name, value in settings.items() if value is not None)


def _word(value) -> str:
    if isinstance(value, dict):  # of labels
        return f"{min(value.values())} to {max(value.values())}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _name(rival: str) -> str:
    return NAME_OF_DEFAULT if rival == DEFAULT else RIVALS[rival].rival.name


def _interval(difference: Difference, form: str) -> str:
    signed = form.replace("{:", "{:+")
    low, high = signed.format(difference.low), signed.format(difference.high)
    return f"{signed.format(difference.value)} ({low} to {high})"
