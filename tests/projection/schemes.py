"""One law of each kind, for tests that hold for all of them."""

import pytest

from sketchnet.projection import SRHT, Achlioptas, CountSketch, Gaussian, Li

LAWS = {
    "gaussian": lambda k, d: Gaussian(k),
    "achlioptas": lambda k, d: Achlioptas(k),
    "achlioptas-1": lambda k, d: Achlioptas(k, s=1),
    "li": lambda k, d: Li(k),
    "li-5": lambda k, d: Li(k, s=5),
    "srht": lambda k, d: SRHT(k),
    "srht-sparse": lambda k, d: SRHT(k, form="sparse", density=min(1.0, 60 / d)),
    "srht-sign": lambda k, d: SRHT(k, form="sparse", density=min(1.0, 60 / d), entries="sign"),
    "count_sketch": lambda k, d: CountSketch(k),
}
every_law = pytest.mark.parametrize("law", LAWS)
