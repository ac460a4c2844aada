"""PyTorch modules that take sparse rows: fixed and learnable projections, whole networks.

And what deep networks on dense data get of projections: `init`.
"""

from sketchnet.nn import init
from sketchnet.nn.autoencoder import Autoencoder, AutoencoderConfig
from sketchnet.nn.fixed import FixedProjection
from sketchnet.nn.learnable import LearnableProjection
from sketchnet.nn.network import NetworkConfig, SketchNetwork
from sketchnet.nn.products import Linear

__all__ = [
    "Autoencoder",
    "AutoencoderConfig",
    "FixedProjection",
    "LearnableProjection",
    "Linear",
    "NetworkConfig",
    "SketchNetwork",
    "init",
]
