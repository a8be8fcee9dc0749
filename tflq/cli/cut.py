"""`tflq cut`: a part of a model as its own .tflite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tflq.cli import output
from tflq.cli.common import MODEL_ARGUMENT, input_names, read_model, reporting

if TYPE_CHECKING:
    from tflq.graph import Graph, Model


@click.command("cut")
@MODEL_ARGUMENT
@click.option(
    "--from",
    "sources",
    multiple=True,
    metavar="TENSOR",
    help="A tensor that becomes an input: its name or index. Repeat it for more; the model's inputs without it.",
)
@click.option(
    "--to",
    "targets",
    multiple=True,
    metavar="TENSOR",
    help="A tensor that becomes an output. Repeat it for more; the model's outputs where none is given.",
)
@click.option(
    "-o",
    "--output",
    "path",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE.tflite",
    help="Where to write.",
)
@reporting
def command(model: str, sources: tuple[str, ...], targets: tuple[str, ...], path: Path, as_json: bool) -> None:
    """Write the operators of MODEL between some tensors and others as a .tflite of their own.

    `tflq inspect --tensors` lists names and indices.
    """
    from dataclasses import replace

    from tflq.converters.tflite import write_model
    from tflq.graph import cut

    found = read_model(model)
    part = cut(found.main, _tensors(found, sources), _tensors(found, targets))
    write_model(replace(found, graphs=[part, *found.graphs[1:]], signatures=[], extra=None), path)
    if as_json:
        output.json_report(_report(part, found.main, path))
        return
    output.line(f"{path}: {output.size(path.stat().st_size)}, {len(part.nodes)} of {len(found.main.nodes)} operators")
    for role, tensors in (("input", part.inputs), ("output", part.outputs)):
        for t in tensors:
            tensor = part.tensors[t]
            output.line(f"  {role:<6} {t} '{tensor.name}' {tensor.dtype.value}{list(tensor.shape)}")


def _tensors(model: Model, texts: tuple[str, ...]) -> list[int]:
    """Return the tensors that the user names, by the names of a signature too."""
    from tflq.graph import find_tensor

    known = {
        **{name: t for s in model.signatures if s.graph == 0 for name, t in s.outputs.items()},
        **input_names(model),
    }
    names = {tensor.name for tensor in model.main.tensors}
    return [known[text] if text in known and text not in names else find_tensor(model.main, text) for text in texts]


def _report(part: Graph, whole: Graph, path: Path) -> dict[str, output.Json]:
    def tensors(indices: tuple[int, ...]) -> list[output.Json]:
        found = [part.tensors[t] for t in indices]
        return [
            {"index": t, "name": tensor.name, "dtype": tensor.dtype.value, "shape": tensor.shape}
            for t, tensor in zip(indices, found, strict=True)
        ]

    return {
        "output": str(path),
        "size_bytes": path.stat().st_size,
        "operators": [node.name for node in part.nodes],
        "operators_of_the_whole": len(whole.nodes),
        "inputs": tensors(part.inputs),
        "outputs": tensors(part.outputs),
    }
