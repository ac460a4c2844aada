"""Training: tasks, optimisers and their schedules, the loop, checkpoints and history."""

from sketchnet.training.config import TrainingConfig
from sketchnet.training.model import Model, load_model
from sketchnet.training.task import Task

__all__ = ["Model", "Task", "TrainingConfig", "load_model"]
