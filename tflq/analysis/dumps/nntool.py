"""Dumps of NNTool: tensor/<node>, tensor/<fusion>//<member>, const/<name>, and the graph's input and output."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tflq.graph import Array

_KEY = re.compile(r"(tensor|const|symbol)/.+|(input|output_q)(#\d+)?")
_TENSOR = "tensor/"


def node_names(arrays: Mapping[str, Array]) -> Mapping[str, Array]:
    """Return the tensors of a dump of NNTool by node, a fusion's by its members; any other archive as it is.

    What a fusion writes stands there twice, under its own name and under that of its last member: the member's stays.
    Constants, nodes with several outputs and what stands beside the tensors are left out.
    """
    if not any(name.startswith(_TENSOR) for name in arrays) or not all(_KEY.fullmatch(name) for name in arrays):
        return arrays
    tensors = {name.removeprefix(_TENSOR): array for name, array in arrays.items() if name.startswith(_TENSOR)}
    fusions = {name.partition("//")[0] for name in tensors if "//" in name}
    several = {name.partition("#")[0] for name in tensors if "#" in name}
    kept = {n: array for n, array in tensors.items() if n not in fusions and n.partition("#")[0] not in several}
    return {name.rpartition("//")[2]: array for name, array in kept.items()}
