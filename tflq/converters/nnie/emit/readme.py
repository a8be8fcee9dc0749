"""The README of the output: what the files are, and what only HiSilicon's tools can do."""

from __future__ import annotations

from tflq.converters.nnie.caffe.network import CaffeNetwork
from tflq.converters.nnie.emit.mapper import list_name
from tflq.graph import Graph

_MODES = {
    0: "8 bits in every layer",
    1: "16 bits in every layer",
    2: "16 bits in the layers whose name ends in _hp, 8 bits in the others",
}


def readme(name: str, graph: Graph, network: CaffeNetwork, compile_mode: int, has_lists: bool) -> str:
    """Return the text."""
    lists = [list_name(name, graph, number) for number in range(len(graph.inputs))]
    samples = (
        f"| {', '.join(lists)} | calibration samples: one a line, real numbers in the order c, h, w |"
        if has_lists
        else f"| {', '.join(lists)} | **not written**: the ranges came without samples. Write one sample a line, real "
        f"numbers in the order c, h, w, or convert again with --calibrate |"
    )
    depthwise = [n.name for n in graph.nodes if n.operator == "depthwise_conv_2d"]
    notes = [f"- Inputs and images are N, C, H, W here; outputs are blobs {_outputs(graph, network)}."]
    if depthwise:
        notes.append(
            f"- {len(depthwise)} depthwise convolutions (first {depthwise[0]}): HiSilicon's guides advise to avoid "
            f"them, others show them running. They are written as grouped convolutions."
        )
    return f"""# {name} for HiSilicon NNIE

| file | what it is |
|---|---|
| {name}.prototxt, {name}.caffemodel | the float network for Caffe 1.0 |
| {name}.cfg | the mapper's settings; compile_mode {compile_mode}: {_MODES[compile_mode]} |
{samples}
| {name}_clipping.json | each layer's calibrated maxima, their clipping values on NNIE's grid, and z: for information |

{chr(10).join(notes)}

## What only HiSilicon's tools can do

1. `nnie_mapper {name}.cfg` (or NNIE Mapper in RuyiStudio) quantises the network and writes the .wk file: its format is
   not published, so it cannot be written here. The mapper chooses its own clipping values from the samples; those in
   {name}_clipping.json are what its library computes from the calibrated maxima.
2. The file of `[gfpq_param_file]`, with which the mapper would take given clipping values, is not published either.
3. Running on the chip or in the vendor's simulator. `tflq run --target nnie` computes what the codes stand for in
   float32; the chip's accumulators and its 20.12 outputs round on top of that.
"""


def _outputs(graph: Graph, network: CaffeNetwork) -> str:
    return ", ".join(f"`{network.blobs[t]}`" for t in graph.outputs)
