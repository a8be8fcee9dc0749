"""Names of values: plain words, unique, made of the names of the model's tensors."""

from __future__ import annotations

import re

from tflq.graph import Graph

_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_]+")


class Names:
    """Gives out names; none twice."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def fresh(self, wanted: str) -> str:
        """Return the wanted name, with a number behind it where it is taken."""
        name, number = wanted, 1
        while name in self._used:
            number += 1
            name = f"{wanted}_{number}"
        self._used.add(name)
        return name


def plain_name(name: str, index: int) -> str:
    """Return a tensor's name with letters, digits and underscores only.

    Of the names that TFLite's converter joins by semicolons the first one stays; an output number (":0") goes. So
    "model/activation/Relu;model/conv2d/BiasAdd" becomes model_activation_Relu.
    """
    first = re.sub(r":\d+$", "", name.split(";")[0])
    plain = _NOT_PLAIN.sub("_", first).strip("_")
    if not plain:
        return f"tensor_{index}"
    return plain if not plain[0].isdigit() else f"t_{plain}"


def tensor_names(graph: Graph, names: Names) -> dict[int, str]:
    """Return a name for each tensor: inputs and outputs first, then what is computed, constants last."""
    computed = [t for node in graph.nodes for t in node.outputs]
    order = dict.fromkeys([*graph.inputs, *graph.outputs, *computed, *range(len(graph.tensors))])
    return {t: names.fresh(plain_name(graph.tensors[t].name, t)) for t in order}
