"""Training: tasks, optimisers and their schedules, the loop, checkpoints and history."""

from importlib import import_module

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


def __getattr__(name: str):
    if name in _WHERE:
        return getattr(import_module(f"sketchnet.training.{_WHERE[name]}"), name)
    raise AttributeError(f"module 'sketchnet.training' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
