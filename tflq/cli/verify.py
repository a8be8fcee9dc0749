"""`tflq verify`: every tensor against TFLite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from tflq.cli import output
from tflq.cli.baseline import Asked
from tflq.cli.baseline_output import check_baseline, freeze_run, write_junit
from tflq.cli.calibration_options import CalibrationChoice, calibration
from tflq.cli.common import STATE_OPTION, choose_samples, chosen_state, read_model, reporting, sampling
from tflq.cli.target_options import target_settings

if TYPE_CHECKING:
    from tflq.analysis.difference import Difference
    from tflq.analysis.known_differences import KnownElements
    from tflq.analysis.oracle import Oracle
    from tflq.analysis.verify import TensorVerdict, Verdict

DEFAULT_SAMPLES = 100
_PACKAGES = ("auto", "litert", "tensorflow")
_KERNELS = ("BUILTIN_REF", "BUILTIN", "AUTO")


@click.command("verify")
@click.argument("model", type=click.Path(), required=False)
@sampling(DEFAULT_SAMPLES)
@click.option(
    "--freeze",
    "frozen",
    type=click.Path(path_type=Path),
    metavar="FILE.json",
    help="Do not ask TFLite: write what this run gives, for --baseline to check later.",
)
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="FILE.json",
    help="Repeat the run that --freeze wrote and say what has changed; MODEL, if given, takes the place of its model.",
)
@click.option("-t", "--target", "target_name", metavar="TARGET", help="With --freeze: the integers of this target.")
@target_settings
@calibration
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE.xml", help="Write the result as JUnit XML too.")
@click.option(
    "--oracle",
    "package",
    type=click.Choice(_PACKAGES),
    default="auto",
    show_default=True,
    help="The package that holds TFLite; auto takes litert, else tensorflow.",
)
@click.option(
    "--kernels",
    type=click.Choice(_KERNELS),
    default="BUILTIN_REF",
    show_default=True,
    help="TFLite's reference kernels, its optimised ones, or what it uses by default (with XNNPACK).",
)
@STATE_OPTION
@click.option("--strict", is_flag=True, help="Exit status 1 for differences that are known, too.")
@click.option("--all", "show_all", is_flag=True, help="List every tensor, not only those that differ.")
@reporting
def command(
    model: str | None,
    inputs: tuple[str, ...],
    real: bool,
    samples: int | None,
    seed: int,
    frozen: Path | None,
    baseline: Path | None,
    target_name: str | None,
    assignments: tuple[str, ...],
    layers: tuple[str, ...],
    junit: Path | None,
    package: str,
    kernels: str,
    strict: bool,
    show_all: bool,
    state: str | None,
    as_json: bool,
    calibration: CalibrationChoice,
) -> int:
    """Run MODEL in tflq and in TFLite and compare every tensor bit for bit (NaN equals NaN).

    Without --input the samples are random, within what the model's operators allow. Exit status 1 if anything differs
    that docs/operators.md does not list as known.
    """
    if baseline is not None:
        if frozen is not None or inputs or samples or target_name or assignments or layers or not calibration.is_empty:
            raise click.UsageError("--baseline repeats a frozen run: model aside, what it runs stands in the file")
        return check_baseline(baseline, model, junit, as_json)
    if model is None:
        raise click.UsageError("name a MODEL, or a run to repeat with --baseline FILE.json")
    count = samples or DEFAULT_SAMPLES
    asked = Asked(model, target_name, assignments, layers, calibration, inputs, real, count, seed, state)
    if frozen is not None:
        if junit is not None:
            raise click.UsageError("--freeze checks nothing; leave --junit away")
        return freeze_run(asked, frozen, as_json)
    if target_name or assignments or layers or not calibration.is_empty:
        raise click.UsageError("TFLite runs the model as it is; a target's run is checked with --freeze and --baseline")
    return _verify(asked, open_oracle(package, kernels), strict, show_all, junit, as_json)


def _verify(asked: Asked, opened: Oracle, strict: bool, show_all: bool, junit: Path | None, as_json: bool) -> int:
    from tflq.analysis.verify import verify
    from tflq.files import read_bytes

    model = asked.model
    found = read_model(model)
    chosen = choose_samples(found, asked.inputs, asked.real, asked.samples, asked.seed)
    state = chosen_state(asked.state) or "independent"
    with opened as oracle, output.Bar("verify", chosen.count) as bar:
        verdict = verify(found, bytes(read_bytes(model)), chosen, oracle, bar.advance, state)
    if junit is not None:
        write_junit(junit, model, [(t.name, _failure(t, strict), t.unavailable) for t in verdict.tensors])
    if as_json:
        output.json_report(_report(model, verdict, None if asked.inputs else asked.seed))
    else:
        print_verdict(model, verdict, show_all)
    return 0 if verdict.is_equal or (verdict.is_explained and not strict) else 1


def _failure(tensor: TensorVerdict, strict: bool) -> str | None:
    difference = tensor.difference
    if tensor.unavailable is not None or difference.is_equal or (tensor.is_explained and not strict):
        return None
    return f"{difference.differing} of {difference.elements} elements differ; {_first(difference)}"


def open_oracle(package: str, kernels: str) -> Oracle:
    """Return TFLite by the words of the command line."""
    from tflq.analysis.oracle import Oracle
    from tflq.analysis.oracle.package import Kernels, Package

    chosen_package = next(name for name in get_args(Package) if name == package)
    chosen_kernels = next(name for name in get_args(Kernels) if name == kernels)
    return Oracle(chosen_package, chosen_kernels)


def print_verdict(model: str, verdict: Verdict, show_all: bool) -> None:
    """Print the table of tensors and the sentence that sums it up."""
    shown = [t for t in verdict.tensors if show_all or not t.difference.is_equal]
    if shown:
        columns = ("operator", "tensor", "type", "differing", "of", "largest", "first difference")
        output.table(columns, [_row(t) for t in shown], right=("operator", "differing", "of", "largest"))
        output.line()
    total = verdict.total
    output.line(
        f"{model}: {total.differing} of {total.elements} elements differ from TFLite: {len(verdict.compared)} tensors, "
        f"{verdict.samples} samples, {verdict.identity}"
    )
    for known in verdict.known:
        output.line(f"known: {known.elements} elements, because {known.reason}")
    for reason, count in _unavailable(verdict).items():
        output.line(f"not compared: {count} tensors that TFLite does not return ({reason})")
    if not verdict.compared:
        output.line("nothing was compared: TFLite returned no tensor")


def _unavailable(verdict: Verdict) -> dict[str, int]:
    counts: dict[str, int] = {}
    for tensor in verdict.tensors:
        if tensor.unavailable is not None:
            counts[tensor.unavailable] = counts.get(tensor.unavailable, 0) + 1
    return counts


def _row(tensor: TensorVerdict) -> tuple[str, ...]:
    difference = tensor.difference
    return (
        "-" if tensor.operator is None else str(tensor.operator),
        output.short(tensor.name),
        f"{tensor.dtype}[{','.join(map(str, tensor.shape))}]",
        str(difference.differing) if tensor.unavailable is None else "-",
        str(difference.elements) if tensor.unavailable is None else "-",
        output.number(difference.largest) if difference.differing else "",
        tensor.unavailable or _first(difference),
    )


def _first(difference: Difference) -> str:
    if difference.mismatch is not None:
        return difference.mismatch
    first = difference.first
    if first is None:
        return ""
    return f"sample {first.sample} at {list(first.index)}: {first.found}, TFLite {first.expected}"


def _report(model: str, verdict: Verdict, seed: int | None) -> dict[str, output.Json]:
    identity = verdict.identity
    return {
        "model": model,
        "oracle": {"package": identity.package, "version": identity.version, "kernels": identity.kernels},
        "samples": verdict.samples,
        "seed": seed,
        "elements": verdict.total.elements,
        "differing": verdict.total.differing,
        "known": _known(verdict.known),
        "unknown": sum(t.unknown for t in verdict.compared),
        "equal": verdict.is_equal,
        "not_compared": _unavailable(verdict),
        "tensors": [_tensor_report(tensor) for tensor in verdict.tensors],
    }


def _known(known: tuple[KnownElements, ...]) -> list[output.Json]:
    return [{"elements": k.elements, "reason": k.reason} for k in known]


def _tensor_report(tensor: TensorVerdict) -> dict[str, output.Json]:
    difference = tensor.difference
    first = difference.first
    return {
        "index": tensor.index,
        "name": tensor.name,
        "dtype": tensor.dtype,
        "shape": tensor.shape,
        "operator": tensor.operator,
        "elements": difference.elements,
        "differing": difference.differing,
        "known": _known(tensor.known),
        "largest": difference.largest,
        "mismatch": difference.mismatch,
        "first": None
        if first is None
        else {"sample": first.sample, "index": first.index, "found": first.found, "expected": first.expected},
        "unavailable": tensor.unavailable,
    }
