"""What a user may say of a blend."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sketchnet.checks import check_choice, check_real
from sketchnet.errors import InputError
from sketchnet.experts.choice import check_metric
from sketchnet.experts.model import EXPERTS
from sketchnet.experts.splits import check_share

EFFORTS = ("quick", "auto", "best")


@dataclass(frozen=True)
class BlendSettings:
    """`experts`: names, or "auto" for those that such rows call for.

    `metric` decides which experts stay: "auto" (the log loss, or squared error), or what scikit-learn can score.
    `effort`: "quick", "auto" or "best". `validation_fraction` of the rows is held back ("auto": a fifth,
    or of so many rows that experts are not fitted again, a tenth), or of `valid_last` the last ones; of few rows each
    is, in turn. After `seconds` no further expert is begun.
    """

    experts: tuple[str, ...] | str = "auto"
    metric: Any = "auto"
    effort: str = "auto"
    validation_fraction: float | str = "auto"
    valid_last: float | None = None
    seconds: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.experts != "auto":
            names = self.experts.split(",") if isinstance(self.experts, str) else self.experts
            names = tuple(check_choice("experts", name, EXPERTS) for name in names)
            if not names or len(set(names)) < len(names):
                raise InputError(f"experts={self.experts!r} is not possible; name one or more, each once")
            object.__setattr__(self, "experts", names)
        check_metric(self.metric)
        check_choice("effort", self.effort, EFFORTS)
        if self.seconds is not None:
            check_real("seconds", self.seconds)
        if self.validation_fraction != "auto":
            check_share("validation_fraction", self.validation_fraction)
        check_share("valid_last", self.valid_last or 0.0)

    def to_dict(self) -> dict:
        settings = asdict(self)
        settings["experts"] = list(self.experts) if isinstance(self.experts, tuple) else self.experts
        settings["metric"] = self.metric if isinstance(self.metric, str) else "scorer"
        return settings
