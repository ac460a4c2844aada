"""PyTorch modules that take sparse rows: fixed and learnable projections, the wide path, whole networks."""

from sketchnet.nn.fixed import FixedProjection
from sketchnet.nn.learnable import LearnableProjection
from sketchnet.nn.network import NetworkConfig, SketchNetwork
from sketchnet.nn.wide import Wide

__all__ = ["FixedProjection", "LearnableProjection", "NetworkConfig", "SketchNetwork", "Wide"]
