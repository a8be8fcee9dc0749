"""`tflq tune`: from which layer on a network needs more bits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tflq.benchmarks.scoring import load_named as labelled_samples
from tflq.cli import output
from tflq.cli.calibration_options import CalibrationChoice, calibrated, calibration
from tflq.cli.common import MODEL_ARGUMENT, choose_samples, read_model, reporting, sampling
from tflq.cli.target_options import target_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from tflq.analysis.executions import Execution
    from tflq.analysis.inputs import Samples
    from tflq.graph import Model
    from tflq.precision.backward import BackwardSearch, Rules

DEFAULT_SAMPLES = 32


@click.command("tune")
@MODEL_ARGUMENT
@click.option("-t", "--target", "target_name", default="aipu", show_default=True, metavar="TARGET")
@click.option(
    "--drop",
    type=click.FloatRange(min=0),
    default=0.01,
    show_default=True,
    help="How much lower than in floating point the score may be.",
)
@click.option(
    "--accuracy",
    metavar="TASK=DIR",
    help="The score is the share of right answers on a labelled data set of `tflq bench`; without it the smallest "
    "cosine of the outputs and the float model's.",
)
@target_settings
@calibration
@click.option(
    "--write-template",
    "template_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write what was found, for --template of `tflq convert`.",
)
@sampling(DEFAULT_SAMPLES)
@reporting
def command(
    model: str,
    target_name: str,
    drop: float,
    accuracy: str | None,
    assignments: tuple[str, ...],
    layers: tuple[str, ...],
    calibration: CalibrationChoice,
    template_path: Path | None,
    inputs: tuple[str, ...],
    real: bool,
    samples: int | None,
    seed: int,
    as_json: bool,
) -> int:
    """Find the last layer of MODEL from which on all need more bits, by halving from the back.

    First the layers from there to the end get 16 bits; where that is not enough they run in floating point, which files
    cannot hold: that says how far the network is from what 16 bits give. The status is 1 where nothing is near enough.
    """
    from tflq.analysis.executions import for_target
    from tflq.analysis.similarity import measured_similarities
    from tflq.api.convert import write_template
    from tflq.converters.precision import find_promotable
    from tflq.converters.settings import parse_settings
    from tflq.precision.backward import Backward
    from tflq.precision.strategy import follow

    target = find_promotable(target_name)
    original = read_model(model)
    chosen = choose_samples(original, inputs or calibration.files, real, samples or DEFAULT_SAMPLES, seed)
    ranged = calibrated(original, calibration, real)

    def execution(rules: tuple[str, ...]) -> Execution:
        settings = parse_settings(target.settings, assignments, (*layers, *rules))
        return for_target(ranged.main, target, settings)

    score, reference = _score(original, execution, chosen, accuracy)
    strategy = Backward(len(original.main.nodes), target.promotions, reference, drop)
    found = follow(strategy, lambda _, settings: [score(rules) for rules in settings])
    if template_path is not None and found.chosen is not None:
        settings = parse_settings(target.settings, assignments, (*layers, *found.rules))
        measured = measured_similarities(execution(found.rules), ranged, chosen)
        write_template(template_path, target, settings, ranged, measured)
    if as_json:
        output.json_report({"model": model, "target": target_name, **_report(found)})
    else:
        _print(original, found)
    return 0 if found.chosen is not None else 1


def _score(
    model: Model, execution: Callable[[tuple[str, ...]], Execution], samples: Samples, accuracy: str | None
) -> tuple[Callable[[Rules], float], float]:
    """Return how settings are judged, and the figure of floating point."""
    from tflq.analysis.executions import in_float
    from tflq.analysis.similarity import similarities

    data = None if accuracy is None else labelled_samples(accuracy, model.main, "accuracy")
    if data is None:

        def cosine(rules: tuple[str, ...]) -> float:
            tried = execution(rules)
            return similarities(tried, model, samples).of_outputs(tried)

        return cosine, 1.0
    from tflq.benchmarks.accuracy import measure as count

    return (lambda rules: count(execution(rules), data).percent / 100), count(in_float(model), data).percent / 100


def _report(found: BackwardSearch) -> dict[str, output.Json]:
    return {
        "reference": found.reference,
        "largest_drop": found.largest_drop,
        "first": None if found.chosen is None else found.chosen.first,
        "stage": None if found.chosen is None else found.chosen.stage,
        "score": found.best.score if found.chosen is None else found.chosen.score,
        "layers": list(found.rules),
        "tried": [{"first": t.first, "stage": t.stage, "score": t.score} for t in found.tried],
    }


def _print(model: Model, found: BackwardSearch) -> None:
    rows = [(str(t.first), t.stage, f"{t.score:.6f}", f"{found.reference - t.score:.6f}") for t in found.tried]
    output.table(("from layer", "promoted to", "score", "drop"), rows, right=("from layer", "score", "drop"))
    output.line()
    if found.chosen is None:
        best = found.best
        output.line(
            f"nothing is within {found.largest_drop:g} of {found.reference:.6f}; nearest is {best.score:.6f}, layers "
            f"from {best.first} on promoted to {best.stage}"
        )
    elif not found.rules:
        output.line(f"no layer needs more: the drop is {found.reference - found.chosen.score:.6f}")
    else:
        node = model.main.nodes[found.chosen.first]
        output.line(f"from layer {found.chosen.first} ({node.operator} '{node.name}') on: {found.chosen.stage}")
        output.line(f"--layer {found.rules[0]}")
