"""`tflq verify`: every tensor against TFLite."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import click

from tflq.cli import output
from tflq.cli.common import MODEL_ARGUMENT, STATE_OPTION, choose_samples, chosen_state, read_model, reporting, sampling

if TYPE_CHECKING:
    from tflq.analysis.difference import Difference
    from tflq.analysis.oracle import Oracle
    from tflq.analysis.verify import TensorVerdict, Verdict

DEFAULT_SAMPLES = 100
_PACKAGES = ("auto", "litert", "tensorflow")
_KERNELS = ("BUILTIN_REF", "BUILTIN", "AUTO")


@click.command("verify")
@MODEL_ARGUMENT
@sampling(DEFAULT_SAMPLES)
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
@click.option("--all", "show_all", is_flag=True, help="List every tensor, not only those that differ.")
@reporting
def command(
    model: str,
    inputs: tuple[str, ...],
    real: bool,
    samples: int | None,
    seed: int,
    package: str,
    kernels: str,
    show_all: bool,
    state: str | None,
    as_json: bool,
) -> int:
    """Run MODEL in tflq and in TFLite and compare every tensor bit for bit (NaN equals NaN).

    Without --input the samples are random, within what the model's operators allow. Exit status 1 if anything differs.
    """
    from tflq.analysis.verify import verify
    from tflq.files import read_bytes

    found = read_model(model)
    chosen = choose_samples(found, inputs, real, samples or DEFAULT_SAMPLES, seed)
    with open_oracle(package, kernels) as oracle, output.Bar("verify", chosen.count) as bar:
        verdict = verify(
            found, bytes(read_bytes(model)), chosen, oracle, bar.advance, chosen_state(state) or "independent"
        )
    if as_json:
        output.json_report(_report(model, verdict, None if inputs else seed))
    else:
        print_verdict(model, verdict, show_all)
    return 0 if verdict.is_equal else 1


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
        "equal": verdict.is_equal,
        "not_compared": _unavailable(verdict),
        "tensors": [_tensor_report(tensor) for tensor in verdict.tensors],
    }


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
        "largest": difference.largest,
        "mismatch": difference.mismatch,
        "first": None
        if first is None
        else {"sample": first.sample, "index": first.index, "found": first.found, "expected": first.expected},
        "unavailable": tensor.unavailable,
    }
