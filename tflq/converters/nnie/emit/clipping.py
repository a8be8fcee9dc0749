"""The clipping table: each layer's maxima, the grid's value below them, and z. For readers; the mapper has its own."""

from __future__ import annotations

import numpy as np

from tflq.graph import Attributes, Graph
from tflq.interpreter.kernels.nnie.logarithm import scheme_of, z_of
from tflq.schemas.nnie import Json


def clipping_table(graph: Graph, suffixes: dict[str, str]) -> dict[str, Json]:
    """Return the table as JSON."""
    layers: list[Json] = []
    for node in graph.nodes:
        if node.attributes.get("activation_clipping") is None:
            continue
        entry: dict[str, Json] = {
            "layer": node.name + suffixes.get(node.name, ""),
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
