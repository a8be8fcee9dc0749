"""What a problem is made of: digests, patterns, widths, sizes."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from tests.support.digits_problem import PINNED, model, problem
from tflq.converters.gap9 import NE16
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.errors import OptionError
from tflq.graph import Graph
from tflq.precision.problem import pattern_of
from tflq.precision.trial import Floating, Trial


def test_a_digest_is_the_same_for_the_same_problem() -> None:
    assert problem(8).digest == problem(8).digest
    assert pickle.loads(pickle.dumps(problem(8))).digest == problem(8).digest


def test_a_digest_changes_with_whatever_results_depend_on() -> None:
    of = problem(8)
    assert of.labels is not None
    graph = of.graph.copy()
    weights = graph.nodes[0].inputs[1]
    tensor = graph.tensors[weights]
    assert tensor.data is not None
    data = tensor.data.copy()
    data.flat[-1] ^= 1
    graph.tensors[weights] = replace(tensor, data=data)
    others = [
        replace(of, graph=graph),
        replace(of, target="gap9-sq8"),
        replace(of, assignments=("weight_bits=7",)),
        replace(of, rules=()),
        replace(of, samples=tuple(x[::-1] for x in of.samples)),
        replace(of, labels=of.labels + 1),
        replace(of, labels=None),
        replace(of, reference=of.reference + 1e-9),
        replace(of, in_float=True),
        replace(of, version="0"),
    ]
    digests = [other.digest for other in others]
    assert len({of.digest, *digests}) == len(others) + 1


def test_trials_have_keys_of_their_own() -> None:
    trials = [Trial((8, 4)), Trial((8, 40)), Trial((8, 4), Floating.THIS, 0), Trial((8, 4), Floating.OTHERS, 0)]
    assert len({trial.key for trial in (*trials, Trial((8, 4), Floating.THIS, 1))}) == 5


@pytest.mark.parametrize(
    ("name", "pattern"),
    [("a", "a"), ("a:b", "0"), ("*", "0"), ("other", "0"), ("", "0"), ("conv_2d", "0"), ("x[1]", "0"), (" a", "0")],
)
def test_a_pattern_names_one_layer_alone(name: str, pattern: str) -> None:
    nodes = [replace(model().main.nodes[0], name=name), replace(model().main.nodes[2], name="other")]
    graph = Graph(model().main.tensors, nodes, (), ())
    assert pattern_of(graph, 0) == pattern
    rule = parse_settings(NE16.settings, (), (f"{pattern}:weight_bits=3",)).rules[0]
    assert [rule.matches(i, node.name, node.operator) for i, node in enumerate(nodes)] == [True, False]


def test_only_some_widths() -> None:
    of = problem(4, widths=(3, 8, 11))
    assert all([w.bits for w in layer.widths] == [8, 3] for layer in of.plan.layers)
    assert of.widest == (8,) * 4
    assert of.uniform(5) == (3,) * 4
    assert of.uniform(2) == (3,) * 4


@pytest.mark.parametrize(
    ("target", "rules", "widths", "message"),
    [
        ("nnie", (), (), r"target nnie offers no precision .*allowed are aipu, gap9-ne16"),
        ("gap9-sq8", (), (), "no layer of this model has a choice of precision with these settings"),
        ("gap9-ne16", ("*:weight_bits=6",), (), "no layer of this model has a choice"),
        ("gap9-ne16", PINNED, (4,), "no layer of this model has a choice of precision with 4 bits"),
        ("gap9-ne16", PINNED, (16,), "takes 8, 7, 6, 5, 4, 3, 2 bits, none of which is among the widths asked for"),
    ],
)
def test_without_a_choice(target: str, rules: tuple[str, ...], widths: tuple[int, ...], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        problem(4, target, rules, widths)


@pytest.mark.parametrize(("target", "widths"), [("gap9-ne16", range(2, 9)), ("aipu", (8, 16))])
def test_sizes_are_those_of_the_graph_that_is_made(target: str, widths: range | tuple[int, ...]) -> None:
    """Weights, and for Zhouyi activations and biases, as the quantized graph holds them."""
    of = problem(2, target, ())
    random = np.random.default_rng(5)
    sizes = []
    for _ in range(4):
        bits = tuple(int(b) for b in random.choice(list(widths), len(of.plan.layers)))
        made = find_target(target).quantize(of.graph, of.settings(Trial(bits)))
        sizes.append((of.size_bytes(bits), _bytes(made, target)))
    assert [mine for mine, _ in sizes] == [theirs for _, theirs in sizes]
    assert len(set(sizes)) > 1


def _bytes(graph: Graph, target: str) -> int:
    tensors = {t for node in graph.nodes for t in (*node.inputs, *node.outputs)}
    if target == "gap9-ne16":
        tensors = {node.inputs[1] for node in graph.nodes if len(node.inputs) == 3}
    total = 0
    for tensor in (graph.tensors[t] for t in tensors if t >= 0):
        bits = tensor.affine.bits if tensor.quantization is not None else 8 * tensor.dtype.storage.itemsize
        total += (tensor.size * bits + 7) // 8
    return total
