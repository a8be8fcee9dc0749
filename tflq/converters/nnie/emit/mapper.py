"""What HiSilicon's mapper reads beside the Caffe package: its cfg and lists of samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tflq.converters.calibration import CalibrationSamples
from tflq.converters.nnie.options import MapperOptions
from tflq.graph import Attributes, Graph

FLOAT_MAP, NO_NORM = 0, 0


def list_name(name: str, graph: Graph, number: int) -> str:
    """Return the name of an input's list of samples."""
    return f"{name}_samples.txt" if len(graph.inputs) == 1 else f"{name}_samples{number}.txt"


def mapper_cfg(name: str, graph: Graph, compile_mode: int) -> str:
    """Return the cfg: "[key] value" lines; the four keys of an input repeat in the prototxt's order."""
    options = _options(graph.nodes[0].attributes) if graph.nodes else MapperOptions()
    pairs: list[tuple[str, int | str]] = [
        ("prototxt_file", f"./{name}.prototxt"),
        ("caffemodel_file", f"./{name}.caffemodel"),
        ("net_type", 0),
        ("batch_num", options.batch_num),
        ("sparse_rate", 0),
        ("compile_mode", compile_mode),
        ("compress_mode", options.compress_mode),
        ("is_simulation", options.is_simulation),
        ("internal_stride", options.internal_stride),
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


def _options(attributes: Attributes) -> MapperOptions:
    default = MapperOptions()
    return MapperOptions(**{name: attributes.integer(name, value) for name, value in vars(default).items()})
