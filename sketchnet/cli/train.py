"""`sketchnet train`: files or a data set on disk to a model folder."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from sketchnet.cli.inputs import InputOptions, takes_input_options
from sketchnet.cli.printing import print_note
from sketchnet.errors import InputError

_TASKS = ("auto", "regression", "autoencoder")


@takes_input_options
def train(
    options: InputOptions,
    input: Annotated[list[Path], typer.Argument(metavar="INPUT...", help="Files, or a folder that ingest wrote.")],
    out: Annotated[Path | None, typer.Option(help="Folder of the model. [default: INPUT's name with -model]")] = None,
    test: Annotated[Path | None, typer.Option(help="Rows to measure the finished model on.")] = None,
    valid: Annotated[Path | None, typer.Option(help="Rows to choose and stop by. [default: a part of INPUT]")] = None,
    task: Annotated[
        str, typer.Option(help="auto (labels are classes), regression (numbers) or autoencoder (codes; no labels).")
    ] = "auto",
    regression: Annotated[bool, typer.Option("--regression", help="The same as --task regression.")] = False,
    experts: Annotated[
        str | None,
        typer.Option(help="Which models to blend, such as linear,trees; sketch: the network alone. [default: auto]"),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(help="By what experts are chosen: error, log_loss, roc_auc, average_precision, squared_error."),
    ] = None,
    effort: Annotated[str | None, typer.Option(help="quick, auto or best.")] = None,
    valid_last: Annotated[
        float | None, typer.Option(help="Hold back this share of INPUT's rows, the last ones, as in order of time.")
    ] = None,
    scheme: Annotated[
        str | None, typer.Option(help="Network: the projection in front. [default: count_sketch; of autoencoders none]")
    ] = None,
    components: Annotated[
        int | None,
        typer.Option("--components", "-k", help="Columns of the projected data. [default: 1000; of autoencoders 2000]"),
    ] = None,
    fixed: Annotated[bool, typer.Option("--fixed", help="Network: do not learn the projection.")] = False,
    eta: Annotated[
        float | None, typer.Option(help="Network: probability that a batch updates the projection. [default: 1]")
    ] = None,
    hidden: Annotated[str | None, typer.Option(help="Network: widths of hidden layers, such as 1000,1000.")] = None,
    codes: Annotated[int | None, typer.Option(help="Autoencoder: numbers of a code. [default: 32]")] = None,
    binary_codes: Annotated[bool, typer.Option("--binary-codes", help="Autoencoder: codes near 0 and 1.")] = False,
    pretrain: Annotated[
        bool | None,
        typer.Option(
            "--pretrain/--no-pretrain",
            help="First let each layer learn to model its input. [default: autoencoders alone]",
        ),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Network: any other setting; see docs/network.md."),
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Network: passes over the rows.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Network: rows a step.")] = None,
    seconds: Annotated[float | None, typer.Option(help="Begin no epoch, or expert, after so many.")] = None,
    device: Annotated[
        str, typer.Option(help="auto, cpu or cuda; experts but the network learn on the processor.")
    ] = "auto",
    seed: Annotated[int, typer.Option(help="The same seed gives the same model.")] = 0,
    memory: Annotated[str, typer.Option(help="For reading files, and to keep a fixed projection.")] = "1GiB",
    threads: Annotated[
        int | None, typer.Option(min=1, help="At most so many. [default: OMP_NUM_THREADS, or all cores]")
    ] = None,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write scalars for TensorBoard.")] = False,
    overwrite: Annotated[bool, typer.Option(help="Replace the model in OUT, or forget an unfinished run.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object at the end.")] = False,
) -> None:
    """Train a blend of experts, or a network. Any setting of the network asks for it alone.

    Run it again after an interruption: it goes on where it stopped, to the same model.

    \b
    Examples:
      sketchnet train clicks.svm.gz --test clicks-test.svm.gz
      sketchnet train urls.tsv --text --header --text-column 4 --label-column 2 --out urls-model
      sketchnet train shards --fixed --scheme gaussian --hidden 3000,3000 --set optimiser=sgd --set rate=0.05
      sketchnet train news.svm --task autoencoder --codes 32 --hidden 500,250,125
    """
    from sketchnet.cli.learning import Codes, Labels
    from sketchnet.cli.model_folder import reading_folder
    from sketchnet.cli.progress import progress_steps
    from sketchnet.cli.train_settings import blend_settings, model_settings
    from sketchnet.cli.training_data import check_features, open_beside, open_data
    from sketchnet.experts.folder import train_blend_in
    from sketchnet.training.course import silent
    from sketchnet.training.defaults import choose_device
    from sketchnet.training.examples import hold_back
    from sketchnet.training.loop import train as run
    from sketchnet.training.processes import Processes

    out = out or Path(input[0].name.split(".")[0] + "-model")
    task = _task(task, regression)
    said = {"scheme": scheme, "components": components, "fixed": fixed or None, "eta": eta}
    said |= {"hidden": hidden, "codes": codes, "binary_codes": binary_codes or None, "pretrain": pretrain}
    said |= {"epochs": epochs, "batch_size": batch_size, "seconds": seconds}
    settings = model_settings(task, said, setting or [])
    choice = {"experts": experts, "metric": metric, "effort": effort, "valid_last": valid_last}
    blend = blend_settings(task, choice, settings, device, seed)
    learning = Codes(settings, seed) if task == "autoencoder" else Labels(settings, seed, task == "regression")
    choose_device(device)
    team = Processes.found()
    options.check_used(*input, *(path for path in (valid, test) if path is not None))
    with reading_folder(out, team, overwrite) as work:
        with team.first_goes_ahead():
            begun = time.perf_counter()
            data = open_data(input, work / "train", options, memory, seed, learning.first)
            loaded = time.perf_counter() - begun
            check_features(data, input)
            known = data.descriptions[0]
            like = learning.others({**known, "columns": data.n_columns})
            if settings.get("hashed_columns") is not None:
                del like["columns"]  # any id is allowed
            others = {
                name: open_beside(path, work / name, options, memory, seed, like)
                for name, path in (("valid", valid), ("test", test))
                if path is not None
            }
        examples = _examples(learning, data, input[0])
        beside = {name: _examples(learning, rows, test if name == "test" else valid) for name, rows in others.items()}
        bar = progress_steps(f"training {out.name}") if team.is_first else nullcontext(silent)
        with bar as tick, _scalars(out, tensorboard and team.is_first) as log:

            def report(record: dict) -> None:
                log(record)
                if not as_json:
                    print_note(_sentence(record, learning))

            how: dict[str, Any] = {"memory": memory, "threads": threads, "report": report, "tick": tick}
            model: Any
            if blend is not None:
                how |= {"data": known, "groups": data.groups}
                model = train_blend_in(out, overwrite, learning.task, examples, beside.get("valid"), blend, **how)
            else:
                if "valid" in beside:  # what is wrong with the labels of the others should not wait for the end either
                    chosen_by = beside["valid"]
                else:
                    examples, chosen_by = hold_back(examples, 0.1, seed)
                model = learning.build(examples.data, known)
                model.network.to(choose_device(device, model, examples.data.n_rows))
                if not as_json and team.is_first:
                    print_note(learning.describe(model, examples.data.n_rows, threads))
                how |= {"course": learning.course(model), "overwrite": overwrite, "loaded": loaded}
                run(model, examples, chosen_by, folder=out, **how)
        found = learning.measure(model, others["test"]) if "test" in others else {}
    if team.is_first:
        _tell(out, model.history, found, learning.next_verb, as_json)


def _tell(out: Path, history: list[dict], found: dict, next_verb: str, as_json: bool) -> None:
    """How the finished model did on the test rows, and what to do with it."""
    if as_json:
        best = next((record["best_epoch"] for record in history if "best_epoch" in record), None)
        print_note({"model": str(out), "best_epoch": best, "history": history, "test": found})
        return
    for name, value in found.items():
        if not isinstance(value, list | dict):
            print_note(f"test {name.replace('_', ' ')}: {value:.5g}")
    print_note(f"{out}: done; try `sketchnet {next_verb} {out} FILE`")


def _examples(learning, rows, path: Path | None):
    try:
        return learning.examples(rows)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _sentence(record: dict, learning) -> str:
    """A record of the history, for people."""
    if record.get("stage") == "rbm":
        gap = f", free energy gap {record['free_energy_gap']:.4g}" if "free_energy_gap" in record else ""
        parts = f"layer {record['layer'] + 1}, epoch {record['epoch']}: reconstruction {record['reconstruction']:.4g}"
        return f"pretraining {parts}{gap}, {record['seconds']:.1f} s"
    if record.get("stage") == "rbm_restart":
        where = f"layer {record['layer'] + 1}, epoch {record['epoch']}"
        return f"pretraining {where}: no longer finite, begins again at rate {record['rate']:.4g}"
    if "stage" in record:
        facts = {key: value for key, value in record.items() if key not in ("stage", "seconds")}
        rest = [f"{key.replace('_', ' ')} {_fact(value)}" for key, value in facts.items()]
        if "seconds" in record:  # not in what a run that was cut off at its very end finds done
            rest.append(f"{record['seconds']:.1f} s")
        return f"{record['stage']}: " + ", ".join(rest)
    parts = [f"epoch {record['epoch']}: loss {record['loss']:.4f}"]
    if "valid_error" in record:
        parts.append(learning.error(record))
    return ", ".join([*parts, f"{record['seconds']:.1f} s"])


def _fact(value) -> str:
    return value if isinstance(value, str) else f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _task(task: str, regression: bool) -> str:
    if task not in _TASKS:
        raise InputError(f"--task {task} is not possible; it is {', '.join(_TASKS[:-1])} or {_TASKS[-1]}")
    if regression and task == "autoencoder":
        raise InputError("--regression and --task autoencoder are two tasks; give one of them")
    return "regression" if regression else task


def _scalars(folder: Path, wanted: bool):
    if not wanted:
        return nullcontext(lambda record: None)
    from sketchnet.training.tensorboard import scalars

    return scalars(folder / "tensorboard")
