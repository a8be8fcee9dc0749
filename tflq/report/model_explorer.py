"""Figures of a comparison as node data of Model Explorer, which colors the nodes of its drawing by them.

Source: google-ai-edge/model-explorer, src/server/package/src/model_explorer/node_data_builder.py: an object of graphs,
each {"name", "results": {name of a node's output tensor: {"value"}}, "gradient": [{"stop", "bgColor"}]}.
"""

from __future__ import annotations

import math

from tflq.diagnosis.compare import Comparison
from tflq.quoting import json_text

GRAPH = "main"
"""Name of the main graph in Model Explorer's own reader of .tflite."""
_GRADIENT = ({"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#e57373"})


def node_data(found: Comparison) -> bytes:
    """Return the noise-to-signal ratio of each tensor in dB as JSON, by the tensor's name in the reference.

    A tensor that does not differ has the smallest ratio that occurs.
    """
    ratios = {t.match.second.name: -t.figures.sqnr_db for t in found.tensors}
    least = min((r for r in ratios.values() if math.isfinite(r)), default=0.0)
    results = {name: {"value": round(r if math.isfinite(r) else least, 3)} for name, r in ratios.items() if name}
    graph = {"name": f"{found.first}: noise, dB of the signal", "results": results, "gradient": list(_GRADIENT)}
    return (json_text({GRAPH: graph}) + "\n").encode()
