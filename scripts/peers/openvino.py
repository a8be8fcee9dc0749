"""OpenVINO against its CPU plug-in: every level of random networks, and the outputs with all fusions.

    scripts/peer openvino [--networks 20] [--seed 1] [--jobs 1] [--json FILE] [--samples 4] [--keras] [--set KEY=VALUE]

A network is drawn from convolutions, sums, products, pools, concatenations, moves and operators that stay float; its
ranges are calibrated on random samples. `--keras` takes those of keras_networks.py instead, float and int8.
Scheme `levels`: each FakeQuantize is an output, which breaks fusions apart; tflq computes each layer from the plug-in's
own levels. Scheme `fused`: the model's output as the plug-in runs it in production, within 1e-5 of its range.
Known differences (docs/targets/openvino.md): `halves`: the plug-in's float32 decides otherwise if real / S is within
2^-11 of a half; `concatenation`: fused ones of operands with separate ranges depart by a level.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np

from peers.campaign import Peer, Row, Verdict, find, parser, report
from peers.keras_networks import random_networks
from tflq.converters.calibration import calibrate
from tflq.converters.openvino import OPENVINO
from tflq.converters.settings import Settings, parse_settings
from tflq.converters.tflite import read_model
from tflq.errors import TflqError, UnsupportedError
from tflq.graph import Affine, Array, DType, Graph, GraphBuilder, Model, Node
from tflq.interpreter import Engine

FLOAT = DType.FLOAT32
HALF = 2.0**-11
NONE = {"fused_activation_function": "none"}


def main(arguments: Sequence[str]) -> int:
    options = parser(__doc__)
    options.add_argument("--samples", type=int, default=4, help="of each network (4)")
    options.add_argument("--keras", action="store_true", help="networks of Keras' layers, every third one int8")
    options.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the target")
    args = options.parse_args(list(arguments))
    peer, settings = find("openvino"), parse_settings(OPENVINO.settings, args.set)
    with ThreadPoolExecutor(args.jobs) as pool, tempfile.TemporaryDirectory() as folder:
        if args.keras:
            files = random_networks(args.networks, args.seed, Path(folder))
            graphs = ((name, read_model(path).main) for name, path, _ in files)
        else:
            graphs = ((f"random_{args.seed}_{n}", drawn(args.seed, n)) for n in range(args.networks))
        rows = pool.map(lambda pair: list(_judged(peer, pair[0], pair[1], settings, args)), graphs)
        return report((row for found in rows for row in found), args.json)


class Drawing:
    """A network that grows."""

    def __init__(self, seed: int, number: int) -> None:
        self.rng = np.random.default_rng([seed, number])
        self.b = GraphBuilder(f"random_{seed}_{number}")
        size = self.rng.integers(6, 15, 2)
        self.shape: tuple[int, ...] = (1, int(size[0]), int(size[1]), int(self.rng.integers(2, 9)))
        self.x = self.b.input("x", self.shape, FLOAT)

    def constant(self, *shape: int) -> int:
        values = self.rng.normal(0, 0.5, shape).astype(np.float32)
        return self.b.constant(f"c{self.rng.integers(1 << 40)}", values)

    def convolution(self, depthwise: bool = False) -> None:
        _, h, w, c = self.shape
        kernel, stride = int(self.rng.choice([1, 3])), int(self.rng.choice([1, 1, 2]))
        out = c if depthwise else int(self.rng.integers(2, 13))
        shape = (1, kernel, kernel, c) if depthwise else (out, kernel, kernel, c)
        activation = str(self.rng.choice(["none", "relu", "relu6"]))
        options = {"padding": "same", "stride_h": stride, "stride_w": stride, "fused_activation_function": activation}
        if depthwise:
            options["depth_multiplier"] = 1
        after = (1, -(-h // stride), -(-w // stride), out)
        operator = "depthwise_conv_2d" if depthwise else "conv_2d"
        self.step(operator, [self.constant(*shape), self.constant(out)], after, **options)

    def step(self, operator: str, more: list[int], shape: tuple[int, ...], **options: object) -> None:
        self.x, self.shape = self.b.add(operator, [self.x, *more], shape, FLOAT, **options), shape  # type: ignore[arg-type]

    def beside(self, operator: str) -> None:
        """Two convolutions of the same tensor, and what joins them."""
        source, shape = self.x, self.shape
        self.convolution(depthwise=True)
        first, self.x, after = self.x, source, self.shape
        self.shape = shape
        self.convolution(depthwise=True)
        if self.shape != after:
            return
        joined = (*after[:3], 2 * after[3]) if operator == "concatenation" else after
        options = {"axis": 3, **NONE} if operator == "concatenation" else NONE
        self.step(operator, [first], joined, **options)

    def pool(self, kind: str) -> None:
        _, h, w, c = self.shape
        if min(h, w) >= 4:
            window = {"filter_height": 2, "filter_width": 2, "stride_h": 2, "stride_w": 2, "padding": "valid", **NONE}
            self.step(f"{kind}_pool_2d", [], (1, h // 2, w // 2, c), **window)

    def function(self) -> None:
        self.step(str(self.rng.choice(["tanh", "logistic", "hard_swish", "elu", "sin", "square"])), [], self.shape)

    def part(self) -> None:
        _, h, w, c = self.shape
        begin, size = np.array([0, 1, 0, 0], np.int32), np.array([1, h - 1, w, c], np.int32)
        self.step("slice", [self.b.constant("begin", begin), self.b.constant("size", size)], (1, h - 1, w, c))


def drawn(seed: int, number: int) -> Graph:
    """Return a network of 3 to 8 steps, always the same one, ending in a product and a softmax."""
    net = Drawing(seed, number)
    steps = [net.convolution, net.convolution, lambda: net.convolution(True), lambda: net.beside("add"), net.function,
             lambda: net.beside("mul"), lambda: net.beside("concatenation"), lambda: net.pool("max"),
             lambda: net.pool("average"), net.part]  # fmt: skip
    for _ in range(int(net.rng.integers(3, 9))):
        if min(net.shape[1:3]) > 2:
            steps[int(net.rng.integers(len(steps)))]()
    axes = net.b.constant("axes", np.array([1, 2], np.int32))
    channels = net.shape[3]
    net.step("mean", [axes], (1, channels), keep_dims=False)
    net.step("fully_connected", [net.constant(5, channels), net.constant(5)], (1, 5), keep_num_dims=False, **NONE)
    net.step("softmax", [], (1, 5), beta=1.0)
    return net.b.build([net.x])


def _judged(peer: Peer, name: str, graph: Graph, settings: Settings, args: argparse.Namespace) -> Iterator[Row]:
    try:
        draw = np.random.default_rng([args.seed, *name.encode()])
        x = draw.normal(size=(32, *graph.tensors[graph.inputs[0]].shape)).astype(np.float32)
        has_scales = any(isinstance(t.quantization, Affine) and not t.is_constant for t in graph.tensors)
        quantized = OPENVINO.quantize(graph if has_scales else calibrate(graph, [x]), settings)
        engine = Engine(quantized, OPENVINO.arithmetic)
        files = OPENVINO.emit(engine.graph, Model([graph], source=f"{name}.tflite"))
        with tempfile.TemporaryDirectory() as folder:
            theirs, outputs = _runtime(peer, Path(folder), files, x[: args.samples])
        yield from _compared(name, engine.graph, x[: args.samples], theirs, outputs)
    except (TflqError, subprocess.CalledProcessError, ValueError) as error:
        verdict = Verdict.REFUSED_BY_TFLQ if isinstance(error, UnsupportedError) else Verdict.FAILED
        yield Row(name, "levels", verdict, 0, str(error)[:300])


def _runtime(peer: Peer, folder: Path, files: Mapping[str, bytes], x: Array) -> tuple[dict[str, Array], Array]:
    for file, data in files.items():
        (folder / file).write_bytes(data)
    xml = next(file for file in files if file.endswith(".xml"))
    np.savez(folder / "x.npz", x=np.ascontiguousarray(x.transpose(0, 1, 4, 2, 3)))
    command = [sys.executable, str(peer.scripts / "dump"), xml, "--inputs", "x.npz", "-o", "dump"]
    environment = {**os.environ, "OPENVINO_VENV": str(peer.target)}
    subprocess.run(command, check=True, cwd=folder, env=environment, capture_output=True)
    with np.load(folder / "dump" / "levels.npz") as levels, np.load(folder / "dump" / "outputs.npz") as outputs:
        return {key: levels[key] for key in levels.files}, outputs[outputs.files[0]]


def _compared(name: str, graph: Graph, x: Array, theirs: Mapping[str, Array], outputs: Array) -> Iterator[Row]:
    """Compare each tensor's levels, computed from the plug-in's before it; with the last ones the fused output."""
    checks, halves, words = 0, list[str](), list[str]()
    values = {graph.inputs[0]: x}
    left = set(theirs)
    for node in graph.nodes:
        values.update(_run(graph, node, values))
        for t in node.outputs:
            tensor = graph.tensors[t]
            if tensor.name not in left or not isinstance(tensor.quantization, Affine):
                continue
            left.remove(tensor.name)
            levels = last(theirs[tensor.name]) + tensor.affine.minimum_code
            steps = np.abs(values[t].astype(int) - levels)
            checks += levels.size
            if steps.any():
                line = f"'{tensor.name}': {np.count_nonzero(steps)} of {steps.size}, by {steps.max()}"
                is_half = steps.max() == 1 and _all_halves(graph, node, values, steps != 0)
                (halves if is_half else words).append(line)
            values[t] = levels.astype(values[t].dtype)
    words += [f"'{key}' has no counterpart" for key in sorted(left)]
    kind = Verdict.DIFFERS if words else Verdict.KNOWN if halves else Verdict.EQUAL
    yield Row(name, "levels", kind, checks, "; ".join([*words, *(f"{line}: halves" for line in halves)]))
    undisturbed = Engine(graph, OPENVINO.arithmetic).run([x])[graph.outputs[0]]
    yield _fused(name, graph, (undisturbed, values[graph.outputs[0]]), last(outputs))


def _fused(name: str, graph: Graph, ours: tuple[Array, Array], theirs: Array) -> Row:
    """Compare with the network's output as it is, and with what follows from the halves as the plug-in decided them."""
    extent = max(1e-30, float(np.ptp(theirs)))
    distance = min(float(np.abs(o.astype(float) - theirs.astype(float)).max()) for o in ours) / extent
    if distance <= 1e-5:
        return Row(name, "fused", Verdict.EQUAL, theirs.size)
    joined = any(node.operator == "concatenation" for node in graph.nodes)
    kinds = ", ".join(node.operator for node in graph.nodes if "quantize" not in node.operator)
    words = f"by {distance:.2g} of the range: {'concatenation' if joined else kinds}"
    return Row(name, "fused", Verdict.KNOWN if joined else Verdict.DIFFERS, theirs.size, words)


def last(x: Array) -> Array:
    """Samples [S, N, C, H, W] as [S, N, H, W, C]; others as they are."""
    return x.transpose(0, 1, 3, 4, 2) if x.ndim == 5 else x


def _run(graph: Graph, node: Node, values: Mapping[int, Array]) -> dict[int, Array]:
    """One node on given values."""
    inputs = tuple(dict.fromkeys(t for t in node.inputs if t in values))
    alone = Graph(graph.tensors, [replace(node, params=None)], inputs, node.outputs, "alone")
    return dict(Engine(alone, OPENVINO.arithmetic).run([values[t] for t in inputs]))


def _all_halves(graph: Graph, node: Node, values: Mapping[int, Array], differing: Array) -> bool:
    """Whether what differs lies at a half: the layer run again without its last rounding."""
    (t,) = node.outputs
    if node.operator == "quantize":
        real = values[node.inputs[0]]
    else:
        tensors = list(graph.tensors)
        tensors[t] = replace(tensors[t], dtype=FLOAT, quantization=None)
        real = _run(replace(graph, tensors=tensors), node, values)[t]
    places = real.astype(np.float64) / float(graph.tensors[t].affine.scale[0])
    return bool((np.abs(places - np.floor(places) - 0.5)[differing] <= HALF).all())
