"""What the options of `sketchnet train`, and `--set`, say of the model: settings by the names of the configs."""

from __future__ import annotations

import json

from sketchnet.errors import InputError

_NAMES = {"components": "n_components", "codes": "n_codes", "fixed": "learn"}  # of options that configs call otherwise
_FOR_LABELS, _FOR_CODES = ("fixed", "eta"), ("codes", "binary_codes")


def model_settings(task: str, options: dict, named: list[str]) -> dict:
    """Settings from options by their names, None where nothing was said, and from NAME=VALUE texts of `--set`."""
    said = {option: value for option, value in options.items() if value is not None}
    if task == "autoencoder":
        _refuse(said, _FOR_LABELS, "is not for autoencoders: their projection never learns")
        if "scheme" not in said:
            _refuse(said, ("components",), "needs a --scheme, in an autoencoder")
    else:
        _refuse(said, _FOR_CODES, "is for --task autoencoder")
        if "fixed" in said:
            _refuse(said, ("eta",), "is not for --fixed projections, which are never updated")
    settings = {_NAMES.get(option, option): value for option, value in said.items()}
    if "hidden" in said:
        settings["hidden"] = _widths(said["hidden"])
    if "fixed" in said:
        settings["learn"] = False
    taken = {_NAMES.get(option, option): option.replace("_", "-") for option in said}
    if said.get("pretrain"):
        del taken["pretrain"]  # of how many epochs, --set may tell
    for name, value in map(_setting, named):
        if name == "seed":
            raise InputError("--set seed is not possible; give --seed")
        if name in taken:
            raise InputError(f"--set {name} and --{taken[name]} say the same thing twice; give one of them")
        settings[name] = value
    return settings


def blend_settings(task: str, choice: dict, settings: dict, device: str, seed: int):
    """Return the settings of a blend, or None where a network alone is asked for: by name or by its settings."""
    from sketchnet.experts.settings import BlendSettings
    from sketchnet.training.processes import Processes

    choice = {name: value for name, value in choice.items() if value is not None}
    experts = choice.get("experts", "auto")
    of_network = [name for name in settings if name != "seconds"]
    if experts not in ("auto", "sketch") and of_network:
        raise InputError(f"{of_network[0]} is a setting of the network; give it with --experts sketch, not {experts}")
    if task == "autoencoder" or experts == "sketch":
        network = True
    else:
        apart = device.startswith("cuda") or not Processes.found().alone
        network = experts == "auto" and (bool(of_network) or apart)
        if apart and not network:
            raise InputError(f"--experts {experts} learn on the processor, in one process; --experts sketch may not")
    if network:
        others = [name for name in choice if name != "experts"]
        if others or (task == "autoencoder" and choice):
            raise InputError(f"--{(others or ['experts'])[0].replace('_', '-')} is for blends of experts")
        return None
    return BlendSettings(**choice, seconds=settings.get("seconds"), seed=seed)


def _refuse(said: dict, options: tuple[str, ...], why: str) -> None:
    """The first of these options that was given is bad usage."""
    for option in options:
        if option in said:
            raise InputError(f"--{option.replace('_', '-')} {why}")


def _widths(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(width) for width in text.split(","))
    except ValueError:
        raise InputError(f"--hidden {text} is not possible; write widths, such as 1000,1000") from None


def _setting(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise InputError(f"--set {text} is not possible; write NAME=VALUE, such as dropout=0.5")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
