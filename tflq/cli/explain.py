"""`tflq explain`: every step of one output element."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tflq.cli import output
from tflq.cli.calibration_options import CalibrationChoice, calibration, refuse_calibration_without_target
from tflq.cli.common import MODEL_ARGUMENT, choose_samples, reporting, sampling
from tflq.cli.explanation_output import against_report, explanation_report, print_explanation, print_side_by_side
from tflq.cli.sides import SIDE_HELP, Choices, Named, model_of, parse_side, running
from tflq.cli.target_options import refuse_settings_without_target, target_settings

if TYPE_CHECKING:
    from tflq.analysis.compare import Running
    from tflq.analysis.explain import Explainer, Explanation


def _index(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, ...]:
    """Read whole numbers between commas, as "0,12,3,17" or "[0, 12, 3, 17]"."""
    try:
        return tuple(int(part) for part in value.strip("[]() ").split(",") if part.strip())
    except ValueError:
        raise click.BadParameter(
            f"'{value}' is no index; write whole numbers with commas, as 0,12,3,17", ctx, param
        ) from None


@click.command("explain", epilog=f"B: {SIDE_HELP.replace('or a tensor dump (.npz, .npy, .bin). ', '')}")
@MODEL_ARGUMENT
@click.option("--tensor", required=True, metavar="NAME", help="A tensor's name, its number, or its operator's name.")
@click.option("--index", required=True, metavar="i,j,k", callback=_index, help="The element, in the model's own axes.")
@click.option("--sample", type=click.IntRange(min=0), default=0, show_default=True, help="Which of the samples.")
@sampling(1)
@click.option("--arithmetic", type=click.Choice(("tflite",)), help="TFLite's integers, the default.")
@click.option("-t", "--target", "target_name", metavar="TARGET", help="The integers of this target.")
@click.option("--against", metavar="B", help="Another computation of the same element, side by side.")
@target_settings
@calibration
@reporting
def command(
    model: str,
    tensor: str,
    index: tuple[int, ...],
    sample: int,
    inputs: tuple[str, ...],
    real: bool,
    samples: int | None,
    seed: int,
    arithmetic: str | None,
    target_name: str | None,
    against: str | None,
    assignments: tuple[str, ...],
    layers: tuple[str, ...],
    as_json: bool,
    calibration: CalibrationChoice,
) -> int:
    """Show every step of one element of MODEL: inputs, weights, products, bias, multiplier, roundings, clamp.

    Exit status 1 if --against differs.
    """
    if target_name is not None and arithmetic is not None:
        raise click.UsageError("--target brings its own arithmetic; leave --arithmetic away")
    a = parse_side(f"{model}@{target_name}" if target_name else model)
    b = None if against is None else parse_side(against, may_lack_model=True)
    if a.is_dump or (b is not None and b.is_dump):
        raise click.UsageError("a dump has no computation to explain; name a model")
    if not a.is_target and not (b is not None and b.is_target):
        refuse_settings_without_target(assignments, layers)
        refuse_calibration_without_target(calibration)
    choices = Choices(assignments, layers, calibration, real)
    return _explain(a, b, (tensor, index, sample), (inputs, samples, seed), choices, as_json)


def _explain(
    a: Named,
    b: Named | None,
    place: tuple[str, tuple[int, ...], int],
    sampled: tuple[tuple[str, ...], int | None, int],
    choices: Choices,
    as_json: bool,
) -> int:
    from tflq.analysis.explain import side_by_side
    from tflq.errors import OptionError

    tensor, index, sample = place
    inputs, samples, seed = sampled
    model = model_of(a)
    chosen = choose_samples(model, inputs, choices.real, samples or sample + 1, seed)
    if sample >= chosen.count:
        raise OptionError(f"--sample {sample}: there are {chosen.count} samples, counted from 0")
    first_side = running(a, model, chosen, model, choices)
    explainer = _explainer(first_side, sample)
    t = explainer.find(tensor)
    first = _checked(explainer.explain(t, index))
    if b is None:
        if as_json:
            output.json_report(explanation_report(first))
        else:
            print_explanation(first)
        return 0
    second_side = running(b, model_of(b, model), chosen, model, choices)
    other = _explainer(second_side, sample)
    second = _checked(other.explain(_counterpart(first_side, second_side, t, other), index))
    found = side_by_side(first, second)
    if as_json:
        output.json_report(against_report(found))
    else:
        print_side_by_side(found, a.text, b.text)
    return 0 if first.stored == second.stored else 1


def _explainer(side: Running, sample: int) -> Explainer:
    from tflq.analysis.explain import Explainer

    return Explainer(side.execution.engine, side.inputs(sample, sample + 1), sample)


def _counterpart(first: Running, second: Running, t: int, other: Explainer) -> int:
    """Return the tensor of the other graph that is the same one."""
    from tflq.analysis.compare import match

    found = {m.first.index: m.second.index for m in match(first.columns, second.columns).matches}
    return found[t] if t in found else other.find(first.execution.graph.tensors[t].name)


def _checked(found: Explanation) -> Explanation:
    """Refuse to show a computation that does not end in what the engine computed."""
    from tflq.errors import TflqError

    for part in found.parts:
        if not part.is_sound:
            raise TflqError(
                f"the explanation of '{part.tensor}' {list(part.index)} ends in {part.steps[-1].value}, the "
                f"interpreter stores {part.stored}; please report it"
            )
    return found
