"""The page of a single training run: settings, learning curves, times, and what the model is worth on given rows."""

from __future__ import annotations

from sketchnet.report.axes import axis_for
from sketchnet.report.document import Block, Code, Content, Facts, Figure, Number, Page, Quiet, Section, Table, Text
from sketchnet.report.on_rows import OnRows, sections_on_rows
from sketchnet.report.plot import PANEL, Curve, key_of, plot
from sketchnet.report.rounding import decimals_for, shown, time_shown

_NO_SETTINGS = ("job", "classes", "encoder", "trials")  # long, and of use to programs alone


def run_page(name: str, config: dict, history: list[dict], classes: list[str], size: dict, on: OnRows | None) -> Page:
    """`config` and `history` are those of the model's folder, `size` has `parameters` and `bytes` of the weights."""
    kind = config["task"]["kind"]
    sections = [Section("summary", "Summary", [Facts(_summary(kind, config, history, classes, size, on))])]
    sections += _experts(history) if "experts" in config else _learning(kind, history)
    if on is not None:
        sections += sections_on_rows(kind, classes, on)
    sections += [Section("times", "Times", [_stages(history)]), Section("settings", "Settings", _settings(config))]
    return Page(
        f"Model {name}", "A training run of sketchnet: what was asked for, how it went, what came out.", sections
    )


def _number(value: float, name: str, text: str | None = None) -> Number:
    return Number(float(value), shown(value) if text is None else text, name)


def _summary(kind: str, config: dict, history: list[dict], classes: list[str], size: dict, on) -> list:
    data = config.get("data") or {}
    rows: list[tuple[str, Content]] = [("Task", kind + (f", {len(classes)} classes" if classes else ""))]
    if "rows" in data:
        entries = _number(data["entries"], "data/entries") if "entries" in data else "unknown"
        rows.append(("Learnt from", (_number(data["rows"], "data/rows"), " rows with ", entries, " non-zeros")))
    rows += _facts_of_blend(config) if "experts" in config else _facts_of_network(config["network"], history)
    rows.insert(-1, ("Size", (_number(size["parameters"], "size/parameters"), " parameters, ", _bytes(size["bytes"]))))
    if on is not None:
        speed = on.rows / max(on.seconds, 1e-9)
        what = "encoded" if kind == "autoencoder" else "predicted"
        rows.append(("Speed", (_number(speed, "speed", f"{speed:,.0f}"), f" rows a second ({on.rows:,} rows {what})")))
        rows += [(f"{key.replace('_', ' ').capitalize()} on {on.name}", value) for key, value in _figures(on).items()]
    return rows


def _facts_of_network(network: dict, history: list[dict]) -> list[tuple[str, Content]]:
    columns = _number(network["n_columns"], "network/n_columns")
    widths = "-".join(map(str, network["hidden"])) or "no hidden layer"
    scheme = network.get("scheme")
    projection = f" columns, {scheme} to {network['n_components']}, " if scheme else " columns, "
    last, epochs = history[-1] if history else {}, str(len(_epochs(history)))
    best: Content = f"training is not finished; {epochs} epochs so far"
    if "best_epoch" in last:
        time = Number(float(last["seconds"]), time_shown(last["seconds"]), "history/seconds")
        best = (_number(last["best_epoch"], "history/best_epoch"), " of ", epochs, ", in ", time)
    return [("Network", (columns, projection, f"hidden {widths}")), ("Best epoch", best)]


def _facts_of_blend(config: dict) -> list[tuple[str, Content]]:
    columns = _number(config["columns"], "columns")
    return [("Columns", (columns,)), ("Blend of", ", ".join(config["experts"]))]


def _experts(history: list[dict]) -> list[Section]:
    """What each expert that was tried had on held-back rows, what it cost, and what it has in the blend."""
    blend = next((record for record in history if record.get("stage") == "blend"), {})
    rows: list[list[Content]] = []
    for record in history:
        if "valid_loss" not in record:
            continue
        name = record["stage"]
        share: Content = _number(blend[name], f"blend/{name}") if name in blend else Quiet("not taken")
        rows.append([name, _number(record["valid_loss"], f"expert/{name}/valid_loss"), share, _seconds(record, name)])
    if "loss" in blend:
        rows.append(["the blend", _number(blend["loss"], "blend/loss"), "", ""])
    header = ["expert", "loss of held-back rows", "share of the answer", "seconds"]
    table = Table("Experts that were tried; all losses are after calibration", header, rows)
    return [Section("experts", "Experts", [table])] if rows else []


def _figures(on: OnRows) -> dict[str, Number]:
    return {key: _number(x, f"metrics/{key}") for key, x in on.metrics.items() if not isinstance(x, list)}


def _bytes(n: int) -> Number:
    size, unit = float(n), "bytes"
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            break
        size /= 1000
    return Number(float(n), f"{shown(size)} {unit}", "size/bytes")


def _epochs(history: list[dict]) -> list[dict]:
    return [record for record in history if "epoch" in record and "stage" not in record]


def _learning(kind: str, history: list[dict]) -> list[Section]:
    epochs = _epochs(history)
    blocks: list[Block] = []
    if epochs:
        kinds: list[tuple[str, tuple]] = [("loss", (("loss", "training"), ("valid_loss", "validation")))]
        if kind != "autoencoder" and any("valid_error" in record for record in epochs):
            kinds.append(("error", (("valid_error", "validation"),)))
        drawings: list[str] = []
        key: list[tuple[str, str]] = []
        for title, lines in kinds:
            curves = []
            for name, words in lines:
                points = [(record["epoch"], record[name]) for record in epochs if name in record]
                if points:
                    curves.append(Curve(words, points, number=0 if words == "training" else 1))
            x = axis_for("epoch", [at for curve in curves for at, _ in curve.points], whole=True)
            y = axis_for(title, [value for curve in curves for _, value in curve.points])
            drawings.append(plot(curves, x, y, f"{title} by epoch", frame=PANEL, title=title.capitalize()))
            key = key or key_of(curves)
        best = next((record["best_epoch"] for record in history if "best_epoch" in record), None)
        caption = "Loss and error by epoch." + (f" Epoch {best} is kept." if best else "")
        blocks.append(Figure(caption, drawings, key, _epoch_table(epochs)))
    rbms = [record for record in history if record.get("stage") == "rbm"]
    if rbms:
        blocks.append(_rbms(rbms))
    return [Section("learning", "Learning curves", blocks)] if blocks else []


def _epoch_table(epochs: list[dict]) -> Table:
    names = list(dict.fromkeys(name for record in epochs for name in record if name != "epoch"))
    digits = {name: decimals_for([record[name] for record in epochs if name in record]) for name in names}
    rows = [
        [
            str(record["epoch"]),
            *(
                Number(float(record[name]), shown(record[name], digits[name]), f"epoch/{record['epoch']}/{name}")
                if name in record
                else ""
                for name in names
            ),
        ]
        for record in epochs
    ]
    return Table("What training noted after each epoch", ["epoch", *(name.replace("_", " ") for name in names)], rows)


def _rbms(records: list[dict]) -> Figure:
    """Pretraining, a panel for each layer: their reconstructions are on different scales."""
    drawings, rows = [], []
    for layer in dict.fromkeys(record["layer"] for record in records):
        points = [(record["epoch"], record["reconstruction"]) for record in records if record["layer"] == layer]
        x = axis_for("epoch", [at for at, _ in points], whole=True)
        y = axis_for("reconstruction error", [value for _, value in points])
        title = f"Layer {layer + 1}"
        curves = [Curve(title, points, number=layer)]
        drawings.append(plot(curves, x, y, f"Reconstruction by epoch of layer {layer + 1}", frame=PANEL, title=title))
        rows += [[title, str(at), _number(value, f"rbm/{layer}/{at}")] for at, value in points]
    table = Table("Reconstruction error by epoch", ["layer", "epoch", "reconstruction"], rows)
    return Figure("Pretraining: what each layer's RBM gives back of its input.", drawings, numbers=table)


def _stages(history: list[dict]) -> Table:
    rows: list[list[Content]] = []
    layers, restarts = {}, {}
    for number, record in enumerate(history):
        stage = record.get("stage")
        if stage == "rbm":
            layers[record["layer"]] = record  # the last epoch has the time of all
        elif stage == "rbm_restart":
            restarts[record["layer"]] = record
        elif stage is not None:
            rest = [f"{key.replace('_', ' ')} {x:.4g}" for key, x in record.items() if isinstance(x, int | float)]
            rest = [text for text in rest if not text.startswith("seconds")]
            rows.append([stage, _seconds(record, f"stage/{number}"), Quiet(", ".join(rest))])
    for layer, record in layers.items():
        calmer = Quiet(f"began again at rate {restarts[layer]['rate']:.4g}") if layer in restarts else ""
        rows.append([f"pretraining of layer {layer + 1}", _seconds(record, f"rbm/{layer}"), calmer])
    epochs = _epochs(history)
    if epochs:
        rows.append([f"{len(epochs)} epochs, with all before them", _seconds(epochs[-1], "epochs"), ""])
    until = next((record["seconds_to_best"] for record in history if "seconds_to_best" in record), None)
    if until is not None:  # which earlier versions did not note
        rows.append(["of these, to the end of the best epoch", _number(until, "history/seconds_to_best"), ""])
    return Table("Stages of training, in seconds", ["stage", "seconds", "found"], rows)


def _seconds(record: dict, name: str) -> Content:
    return _number(record["seconds"], f"{name}/seconds") if "seconds" in record else ""


def _settings(config: dict) -> list[Block]:
    tables: list[Block] = [Text(("sketchnet ", Code(str(config.get("sketchnet", "not known")))))]
    parts = {part: config.get(part) or {} for part in ("network", "training", "data")} | (config.get("experts") or {})
    for part, settings in parts.items():
        content = {key: x for key, x in settings.items() if key not in _NO_SETTINGS}
        rows = [[key, Code(_setting(value))] for key, value in content.items()]
        if rows:
            tables.append(Table(part.capitalize(), ["setting", "value"], rows))
    return tables


def _setting(value) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "not set" if value is None else str(value)
