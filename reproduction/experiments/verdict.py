"""What a measurement says of a published value, and of a claim."""

from __future__ import annotations

from reproduction.experiments.experiment import Claim, Entry, Experiment, Values
from reproduction.experiments.results import Results

CONFIRMED, DENIED, OPEN = "confirmed", "denied", "not measured"
OF_OURS = {word: f"of ours {word}" for word in (CONFIRMED, DENIED, OPEN)}  # ours say nothing of the dissertation


def of_claim(claim: Claim, values: Values) -> str:
    """confirmed, denied, or not measured, if a value that it speaks of is missing."""
    try:
        return CONFIRMED if claim.holds(values) else DENIED
    except KeyError:
        return OPEN


def of_entry(experiment: Experiment, entry: Entry, values: Values) -> str:
    """As good as the published value, or better or worse by more than the slack; "" if that cannot be said."""
    if (entry.series, entry.x) not in values.runs or entry.published is None or experiment.slack is None:
        return ""
    ours = values(entry.series, entry.x)
    excess = (entry.published - ours) if experiment.larger_is_better else (ours - entry.published)
    if abs(excess) <= experiment.slack:
        return "as good"
    return "better" if excess < 0 else "worse"  # also of what is not a number


def count_verdicts(experiment: Experiment, scale: str, results: Results) -> dict[str, int]:
    """How many of the published values and of the published claims got which verdict, and how many claims "of ours"."""
    values = results.values(experiment, scale)
    counts = dict.fromkeys(("as good", "better", "worse", CONFIRMED, DENIED, OPEN, *OF_OURS.values()), 0)
    for entry in experiment.entries(scale):
        verdict = of_entry(experiment, entry, values)
        if verdict:
            counts[verdict] += 1
    for claim in experiment.claims:
        verdict = of_claim(claim, values)
        counts[OF_OURS[verdict] if claim.ours else verdict] += 1
    return counts
