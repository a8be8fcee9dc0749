"""Differences between two models: structure, quantization, attributes, constants."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tflq.arrays import is_same
from tflq.diagnosis.compare.params import IntegerDifference, array_difference
from tflq.diagnosis.inspection import describe_quantization
from tflq.graph import ABSENT, Affine, Graph, Model, Node, Tensor


@dataclass(frozen=True)
class Finding:
    """One difference.

    Attributes:
        kind: "operator", "attribute", "type", "shape", "quantization", "constant", "interface" or "file".
        where: the operator or tensor.
        words: Description of the difference.
        constant: Figures of a constant with different values.
    """

    kind: str
    where: str
    words: str
    constant: IntegerDifference | None = None


def model_differences(first: Model, second: Model) -> tuple[Finding, ...]:
    """Compare two models; operators are aligned in order of execution, tensors by the operators that use them.

    A tensor's name is not compared.
    """
    findings: list[Finding] = []
    if len(first.graphs) != len(second.graphs):
        findings.append(Finding("file", "graphs", f"{len(first.graphs)} against {len(second.graphs)}"))
    for number, (a, b) in enumerate(zip(first.graphs, second.graphs, strict=False)):
        findings += _Pair(a, b, f"graph {number}: " if number else "").findings()
    findings += _file(first, second)
    return tuple(findings)


class _Pair:
    def __init__(self, first: Graph, second: Graph, prefix: str) -> None:
        self._first, self._second, self._prefix = first, second, prefix
        self._seen: set[tuple[int, int]] = set()

    def findings(self) -> Iterator[Finding]:
        for role in ("inputs", "outputs"):
            ours, theirs = getattr(self._first, role), getattr(self._second, role)
            if len(ours) != len(theirs):
                yield Finding("interface", f"{self._prefix}{role}", f"{len(ours)} against {len(theirs)}")
            for a, b in zip(ours, theirs, strict=False):
                yield from self._tensor(a, b, f"{role[:-1]} ")
        for tag, i1, i2, j1, j2 in _aligned(self._first, self._second):
            if tag == "equal":
                for i, j in zip(range(i1, i2), range(j1, j2), strict=True):
                    yield from self._node(i, j)
            else:
                yield from self._unaligned(range(i1, i2), range(j1, j2))

    def _unaligned(self, ours: range, theirs: range) -> Iterator[Finding]:
        yield from (Finding("operator", self._where(self._first, i), "only in the first model") for i in ours)
        yield from (Finding("operator", self._where(self._second, j), "only in the second model") for j in theirs)

    def _where(self, graph: Graph, index: int) -> str:
        return f"{self._prefix}{graph.where(index)}"

    def _node(self, i: int, j: int) -> Iterator[Finding]:
        a, b = self._first.nodes[i], self._second.nodes[j]
        where = self._where(self._first, i)
        for name in sorted({*a.attributes, *b.attributes}):
            ours, theirs = a.attributes.get(name), b.attributes.get(name)
            if not is_same(ours, theirs):
                yield Finding("attribute", where, f"{name} is {_text(ours)} against {_text(theirs)}")
        if (a.version, a.custom_code, a.custom_options) != (b.version, b.custom_code, b.custom_options):
            yield Finding("operator", where, f"version or custom options differ: {a.version} against {b.version}")
        if len(a.inputs) != len(b.inputs) or len(a.outputs) != len(b.outputs):
            yield Finding("operator", where, f"{_arity(a)} against {_arity(b)}")
        for position, (t, u) in enumerate(zip(a.inputs, b.inputs, strict=False)):
            if (t == ABSENT) != (u == ABSENT):
                yield Finding("operator", where, f"input {position} is given in one model only")
            elif t != ABSENT:
                yield from self._tensor(t, u, f"{where} input {position} ")
        for t, u in zip(a.outputs, b.outputs, strict=False):
            yield from self._tensor(t, u, f"{where} output ")

    def _tensor(self, t: int, u: int, role: str) -> Iterator[Finding]:
        if (t, u) in self._seen:
            return
        self._seen.add((t, u))
        a, b = self._first.tensors[t], self._second.tensors[u]
        where = f"{role}'{a.name}'"
        if a.dtype is not b.dtype:
            yield Finding("type", where, f"{a.dtype.value} against {b.dtype.value}")
        if a.shape != b.shape:
            yield Finding("shape", where, f"{list(a.shape)} against {list(b.shape)}")
        if a.quantization != b.quantization:
            yield Finding("quantization", where, _quantization(a, b))
        if a.is_constant != b.is_constant or a.is_variable != b.is_variable:
            yield Finding("constant", where, "constant or variable in one model only")
        if a.data is not None and b.data is not None and a.dtype is b.dtype and a.shape == b.shape:
            difference = array_difference("value", a.data, b.data, _channel_axis(a, role))
            if difference is not None:
                yield Finding("constant", where, difference.words, difference)


def _aligned(first: Graph, second: Graph) -> list[tuple[str, int, int, int, int]]:
    ours, theirs = ([_key(g, n) for n in g.nodes] for g in (first, second))
    return list(difflib.SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes())


def _key(graph: Graph, node: Node) -> tuple[object, ...]:
    """Return the key that aligns operators: type, custom code, output shapes."""
    return (node.operator, node.custom_code, tuple(graph.tensors[t].shape for t in node.outputs))


def _channel_axis(tensor: Tensor, role: str) -> int:
    quantization = tensor.quantization
    if isinstance(quantization, Affine) and quantization.axis is not None:
        return quantization.axis
    return len(tensor.shape) - 1 if "(depthwise_conv_2d " in role and tensor.shape else 0


def _quantization(a: Tensor, b: Tensor) -> str:
    """Describe the first channel with another scale or zero point, else both quantizations."""
    x, y = a.quantization, b.quantization
    if isinstance(x, Affine) and isinstance(y, Affine) and x.scale.size == y.scale.size > 1:
        for name, ours, theirs in (("scale", x.scale, y.scale), ("zero point", x.zero_point, y.zero_point)):
            difference = array_difference(name, np.asarray(ours), np.asarray(theirs))
            if difference is not None:
                return replace(difference, name=name).words
    return f"{describe_quantization(x) or 'none'} against {describe_quantization(y) or 'none'}"


def _file(first: Model, second: Model) -> Iterator[Finding]:
    if first.version != second.version:
        yield Finding("file", "schema version", f"{first.version} against {second.version}")
    if (first.description or "") != (second.description or ""):
        yield Finding("file", "description", f"'{first.description}' against '{second.description}'")
    for name in sorted({*first.metadata, *second.metadata}):
        if first.metadata.get(name) != second.metadata.get(name):
            yield Finding("file", f"metadata '{name}'", "differs or is in one model only")
    keys = [sorted(s.key for s in m.signatures) for m in (first, second)]
    if keys[0] != keys[1]:
        yield Finding("file", "signatures", f"{keys[0]} against {keys[1]}")


def _arity(node: Node) -> str:
    return f"{len(node.inputs)} inputs and {len(node.outputs)} outputs"


def _text(value: object) -> str:
    return "absent" if value is None else str(value)
