"""Every table and figure of the dissertation as an experiment: `LABELS` finds it by its label."""

from __future__ import annotations

from importlib import import_module

from reproduction.experiments.experiment import SCALES, Experiment
from sketchnet.errors import InputError

# In the order of the dissertation.
LABELS = (
    "fig:rpsynth_k", "fig:rp_k_exec_time", "fig:rp_k_exec_time_gen_proj", "fig:rpsynth_rho", "fig:rpsynth_psi",
    "tab:dr_accuracy_comparison", "fig:fs_mnist", "tab:linear_accuracy_comparison", "tab:dr_time_comparison",
    "tab:linear_time_comparison", "tab:real_world_rp", "tab:tng_rp_auc", "tab:rcv1_rp_auc", "fig:rp_auc",
    "tab:lrp_normalization_sparse", "tab:lrp_normalization_count", "fig:lrp_eta", "tab:lrp_activation_sparse",
    "tab:lrp_activation_count", "fig:lrp_avk", "tab:datasets_nnz", "tab:rp_layer_complexity", "tab:rp_init_cifar",
    "tab:rp_init_mnist", "tab:rp_init_auc", "fig:rp_init_tng", "fig:rp_init_rcv1",
)  # fmt: skip

_TOGETHER = {  # files of several labels; the file of any other one has its name
    "lrp_tables": (
        "tab:lrp_normalization_sparse", "tab:lrp_normalization_count", "tab:lrp_activation_sparse",
        "tab:lrp_activation_count",
    ),
    "synthetic_errors": ("fig:rpsynth_k", "fig:rpsynth_rho", "fig:rpsynth_psi"),
    "projection_times": ("fig:rp_k_exec_time", "fig:rp_k_exec_time_gen_proj"),
    "reduction_comparison": ("tab:dr_accuracy_comparison", "tab:dr_time_comparison"),
    "linear_comparison": ("tab:linear_accuracy_comparison", "tab:linear_time_comparison"),
    "dictionary_sizes": ("tab:tng_rp_auc", "tab:rcv1_rp_auc"),
    "rbm_starts": ("tab:rp_init_auc", "fig:rp_init_tng", "fig:rp_init_rcv1"),
}  # fmt: skip

__all__ = ["LABELS", "SCALES", "find_experiment"]


def find_experiment(label: str) -> Experiment:
    """The experiment of a label, such as "tab:dr_accuracy_comparison"."""
    if label not in LABELS:
        raise InputError(f"{label!r} is no label of the dissertation's; those are {', '.join(LABELS)}")
    file = next((name for name, labels in _TOGETHER.items() if label in labels), None)
    if file is None:
        return import_module(f"reproduction.experiments.{label.replace(':', '_')}").EXPERIMENT
    module = import_module(f"reproduction.experiments.{file}")
    return next(each for each in module.EXPERIMENTS if each.label == label)
