"""Several layers between two dumped tensors: which of them can be the cause, and the tensor to dump next.

The next tensor splits the candidates best: if its dump is correct, the layers before it are excluded; if not, the
layers after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tflq.diagnosis.hypotheses.finding import Finding
from tflq.diagnosis.hypotheses.suspect import LINEAR, Suspect
from tflq.units import short

_LEAST_NODES = 3


def mains_of(s: Suspect) -> tuple[int, ...]:
    """Return the nodes of a layer that hypotheses are tried on.

    A fused layer (convolution, activation, conversion) has one: the node with the weights. A segment of several layers
    has every node with weights.
    """
    linear = [n for n in s.nodes if s.graph.nodes[n].operator in LINEAR]
    if len(linear) < 2 or len(s.nodes) < _LEAST_NODES:
        return (s.main,) if s.nodes else ()
    return tuple(linear)


def next_step(s: Suspect, findings: Sequence[Finding]) -> str:
    """Return the tensor that separates the accused nodes best if dumped; without exact causes the segment's middle."""
    names = [s.graph.nodes[n].name for n in s.nodes]
    accused = Counter(f.node for f in findings if f.is_exact)
    weights = [accused[name] for name in names] if accused else [1] * len(names)
    if sum(w > 0 for w in weights) < 2:
        return ""
    total, before, best = sum(weights), 0, (sum(weights), 0)
    for i, weight in enumerate(weights[:-1]):
        before += weight
        best = min(best, (max(before, total - before), i))
    node = s.graph.nodes[s.nodes[best[1]]]
    tensor = short(s.graph.tensors[node.outputs[0]].name)
    return f"dump '{tensor}': if it is correct, the cause is after {node.name}; if not, in it or before"
