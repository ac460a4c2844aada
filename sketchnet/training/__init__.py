"""Training: tasks, optimisers and their schedules, the loop, checkpoints and history."""

from sketchnet.lazy import load_on_use

# On first use: a module takes only what it needs of the rest.
_WHERE = {
    "Examples": "examples",
    "Model": "model",
    "Supervised": "course",
    "Task": "task",
    "TrainingConfig": "config",
    "build_model": "defaults",
    "choose_device": "defaults",
    "evaluate": "steps",
    "hold_back": "examples",
    "load_model": "model",
    "train": "loop",
}

__all__ = [*_WHERE]
__getattr__, __dir__ = load_on_use(__name__, _WHERE)
