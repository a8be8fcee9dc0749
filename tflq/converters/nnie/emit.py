"""The files: Caffe package, the mapper's cfg and lists, clipping table and README (docs/targets/nnie.md#files)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tflq.converters.calibration import CalibrationSamples, samples_of
from tflq.converters.nnie.caffe.layer import encode_net, prototxt
from tflq.converters.nnie.caffe.network import CaffeNetwork, caffe_network
from tflq.converters.nnie.check import ASSUMED
from tflq.converters.nnie.quantize import MAPPER_KEYS, LayerOptions
from tflq.converters.targets import model_name
from tflq.errors import UnsupportedError
from tflq.graph import Attributes, Graph, Model
from tflq.interpreter.kernels.nnie.logarithm import scheme_of, z_of
from tflq.quoting import json_text, markdown_code
from tflq.schemas import Json


def artifacts_of(graph: Graph, source: Model) -> dict[str, bytes]:
    """Return file name -> content.

    Args:
        graph: quantized, lowered or not.
        source: the model that was quantized; its file's name names the package.

    Raises:
        UnsupportedError: a node without a layer of Caffe, which `check` lists.
    """
    name = model_name(source).replace(".", "_")
    mode = compile_mode(graph)
    high = {n.name: "_hp" for n in graph.nodes if mode == 2 and n.attributes.integer("bits", 8) == 16}
    network = caffe_network(graph, high)
    if network.problems:
        raise UnsupportedError("; ".join(f"{graph.where(i)}: {reason}" for i, reason in network.problems.items()))
    lists = image_lists(name, graph, samples_of(graph))
    table = clipping_table(graph, network.names)
    return {
        f"{name}.prototxt": prototxt(name, network.layers).encode(),
        f"{name}.caffemodel": encode_net(name, network.layers),
        f"{name}.cfg": mapper_cfg(name, graph, mode).encode(),
        **lists,
        f"{name}_clipping.json": (json_text(table) + "\n").encode(),
        "README.md": readme(name, graph, network, mode, bool(lists)).encode(),
    }


def compile_mode(graph: Graph) -> int:
    """Return 0 where all layers have 8 bits, 1 where all have 16, 2 where they differ."""
    bits = {n.attributes.integer("bits") for n in graph.nodes if n.attributes.get("bits") is not None}
    return 2 if len(bits) > 1 else 1 if bits == {16} else 0


FLOAT_MAP, NO_NORM = 0, 0


def list_name(name: str, graph: Graph, number: int) -> str:
    """Return the name of an input's list of samples."""
    return f"{name}_samples.txt" if len(graph.inputs) == 1 else f"{name}_samples{number}.txt"


def mapper_cfg(name: str, graph: Graph, compile_mode: int) -> str:
    """Return the cfg: "[key] value" lines; the four keys of an input repeat in the prototxt's order."""
    attributes = graph.nodes[0].attributes if graph.nodes else Attributes()
    mapper = {name: attributes.integer(name, getattr(LayerOptions(), name)) for name in MAPPER_KEYS}
    pairs: list[tuple[str, int | str]] = [
        ("prototxt_file", f"./{name}.prototxt"),
        ("caffemodel_file", f"./{name}.caffemodel"),
        ("net_type", 0),
        ("batch_num", mapper["batch_num"]),
        ("sparse_rate", 0),
        ("compile_mode", compile_mode),
        ("compress_mode", mapper["compress_mode"]),
        ("is_simulation", mapper["is_simulation"]),
        ("internal_stride", mapper["internal_stride"]),
        ("is_check_prototxt", 0),
        ("log_level", 3),
        ("instruction_name", f"./{name}_inst"),
    ]
    for number in range(len(graph.inputs)):
        pairs += [
            ("image_list", f"./{list_name(name, graph, number)}"),
            ("image_type", FLOAT_MAP),
            ("norm_type", NO_NORM),
            ("mean_file", "null"),
        ]
    return "".join(f"[{key}] {value}\n" for key, value in pairs)


def image_lists(name: str, graph: Graph, samples: CalibrationSamples | None) -> dict[str, bytes]:
    """Return a list for each input: one sample a line, real numbers in the order c, h, w; nothing without samples."""
    if samples is None or not samples.inputs:
        return {}
    return {
        list_name(name, graph, number): "".join(_line(x) for x in array).encode()
        for number, array in enumerate(samples.inputs)
    }


def _line(sample: NDArray[np.float32]) -> str:
    """Return one sample [N, H, W, C] or [N, K] as text that reads back to the same float32."""
    ordered = np.moveaxis(sample, -1, 1) if sample.ndim == 4 else sample
    return " ".join(np.format_float_positional(v, unique=True, trim="0") for v in ordered.reshape(-1)) + "\n"


def clipping_table(graph: Graph, names: Mapping[str, str]) -> dict[str, Json]:
    """Return the table as JSON; `names` are those of the layers."""
    layers: list[Json] = []
    for node in graph.nodes:
        if node.attributes.get("activation_clipping") is None:
            continue
        entry: dict[str, Json] = {
            "layer": names.get(node.name, node.name),
            "operator": node.operator,
            "bits": node.attributes.integer("bits"),
            "activation": _group(node.attributes, "activation"),
        }
        if node.attributes.get("weight_clipping") is not None:
            entry["weight"] = _group(node.attributes, "weight")
        layers.append(entry)
    return {"format": "tflq nnie clipping", "version": 1, "layers": layers}


def _group(attributes: Attributes, what: str) -> Json:
    clipping = attributes.real(f"{what}_clipping")
    scheme = scheme_of(attributes.integer("bits"))
    return {
        "maximum": attributes.real(f"{what}_maximum"),
        "clipping": clipping,
        "clipping_decimal": np.format_float_positional(np.float32(clipping), unique=True, trim="0"),
        "clipping_bits": f"0x{int(np.float32(clipping).view(np.uint32)):08X}",
        "z": z_of(clipping, scheme),
    }


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
    assumed = sorted({n.operator for n in graph.nodes if n.operator in ASSUMED})
    depthwise = [n.name for n in graph.nodes if n.operator == "depthwise_conv_2d"]
    notes = [f"- Inputs and images are N, C, H, W here; outputs are blobs {_outputs(graph, network)}."]
    if assumed:
        notes.append(
            f"- **Assumption** for {', '.join(assumed)}: how NNIE quantizes these layers is not published. Taken here: "
            f"inputs are quantized with one z, constants stay float; Deconvolution is as Convolution."
        )
    if depthwise:
        notes.append(
            f"- {len(depthwise)} depthwise convolutions (first {markdown_code(depthwise[0])}): HiSilicon's guides "
            f"advise to avoid them, others show them running. They are written as grouped convolutions."
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

1. `nnie_mapper {name}.cfg` (or NNIE Mapper in RuyiStudio) quantizes the network and writes the .wk file: its format is
   not published, so it cannot be written here. The mapper chooses its own clipping values from the samples; those in
   {name}_clipping.json are what its library computes from the calibrated maxima.
2. The file of `[gfpq_param_file]`, with which the mapper would take given clipping values, is not published either.
3. Running on the chip or in the vendor's simulator. `tflq run --target nnie` computes what these stand for in
   float32; the chip's accumulators and its 20.12 outputs round on top of that.
"""


def _outputs(graph: Graph, network: CaffeNetwork) -> str:
    return ", ".join(markdown_code(network.blobs[t]) for t in graph.outputs)
