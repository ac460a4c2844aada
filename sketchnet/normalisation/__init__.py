"""Scales learnt from the training data: moments of projected rows, the largest values of columns."""

from sketchnet.normalisation.moments import Moments

__all__ = ["Moments"]
