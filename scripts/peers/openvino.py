"""OpenVINO against its CPU plug-in: every level of random networks, and the outputs with all fusions.

    scripts/peer openvino [--networks 20] [--seed 1] [--jobs 1] [--json FILE] [--samples 4]

A network is drawn from convolutions, sums, products, pools, concatenations, moves and operators that stay float; its
ranges are calibrated on random samples. Scheme `levels`: each FakeQuantize is an output, which breaks fusions apart.
Scheme `fused`: the model's own output as the plug-in runs it in production, within 1e-5 of its range.
Known differences (docs/openvino.md): `halves`: the plug-in's float32 decides otherwise where real / S lies within 2^-11
of a half; `concatenation`: fused ones of operands with ranges of their own depart by a level.
"""

from __future__ import annotations

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
from tflq.converters.calibration import calibrate
from tflq.converters.openvino import OPENVINO
from tflq.converters.settings import parse_settings
from tflq.errors import TflqError
from tflq.graph import Array, DType, Graph, GraphBuilder, Model, Node
from tflq.interpreter import Engine

FLOAT = DType.FLOAT32
HALF = 2.0**-11
NONE = {"fused_activation_function": "none"}


def main(arguments: Sequence[str]) -> int:
    options = parser(__doc__)
    options.add_argument("--samples", type=int, default=4, help="of each network (4)")
    args = options.parse_args(list(arguments))
    peer = find("openvino")
    with ThreadPoolExecutor(args.jobs) as pool:
        rows = pool.map(lambda number: list(_judged(peer, args.seed, number, args.samples)), range(args.networks))
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


def _judged(peer: Peer, seed: int, number: int, samples: int) -> Iterator[Row]:
    name = f"random_{seed}_{number}"
    try:
        graph = drawn(seed, number)
        draw = np.random.default_rng([seed, number, 1])
        x = draw.normal(size=(32, *graph.tensors[graph.inputs[0]].shape)).astype(np.float32)
        quantised = OPENVINO.quantise(calibrate(graph, [x]), parse_settings(OPENVINO.settings))
        engine = Engine(quantised, OPENVINO.arithmetic)
        ours = engine.run([x[:samples]], range(len(engine.graph.tensors)))
        files = OPENVINO.emit(engine.graph, Model([graph], source=f"{name}.tflite"))
        with tempfile.TemporaryDirectory() as folder:
            theirs, outputs = _runtime(peer, Path(folder), files, x[:samples])
    except (TflqError, subprocess.CalledProcessError) as error:
        yield Row(name, "levels", Verdict.FAILED, 0, str(error)[:300])
        return
    yield _compared(name, engine.graph, ours, theirs)
    yield _fused(name, engine.graph, ours[engine.graph.outputs[0]], outputs)


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


def _fused(name: str, graph: Graph, ours: Array, theirs: Array) -> Row:
    distance = float(np.abs(ours.astype(float) - theirs.astype(float)).max())
    if distance <= 1e-5:  # probabilities
        return Row(name, "fused", Verdict.EQUAL, ours.size)
    joined = any(node.operator == "concatenation" for node in graph.nodes)
    kinds = ", ".join(node.operator for node in graph.nodes if "quantize" not in node.operator)
    words = f"by {distance:.2g}: {'concatenation' if joined else kinds}"
    return Row(name, "fused", Verdict.KNOWN if joined else Verdict.DIFFERS, ours.size, words)


def _compared(name: str, graph: Graph, ours: dict[int, Array], theirs: dict[str, Array]) -> Row:
    """Compare levels in order; of the first tensor that differs say why."""
    checks = 0
    tensors = {t.name: i for i, t in enumerate(graph.tensors) if t.dtype is DType.INT8 and not t.is_constant}
    for key, levels in theirs.items():
        if key not in tensors:
            return Row(name, "levels", Verdict.FAILED, checks, f"'{key}' has no counterpart")
        t = tensors[key]
        codes = ours[t]
        mine = (codes.transpose(0, 1, 4, 2, 3) if codes.ndim == 5 else codes).astype(int) + 128
        checks += levels.size
        steps = np.abs(mine - levels)
        if steps.any():
            words = f"'{graph.tensors[t].name}': {np.count_nonzero(steps)} of {steps.size}, by {steps.max()}"
            is_half = steps.max() == 1 and _all_halves(graph, t, ours, steps != 0)
            verdict = Verdict.KNOWN if is_half else Verdict.DIFFERS
            return Row(name, "levels", verdict, checks, f"{words}{': halves' if is_half else ''}")
    return Row(name, "levels", Verdict.EQUAL, checks)


def _all_halves(graph: Graph, t: int, ours: dict[int, Array], differing: Array) -> bool:
    """Whether what differs lies at a half: the layer run again on our inputs, without its last rounding."""
    node = next(n for n in graph.nodes if t in n.outputs)
    if node.operator == "quantize":
        real = ours[node.inputs[0]]
    else:
        alone = _without_rounding(graph, node, t)
        inputs = {i: ours[i] for i in alone.inputs}
        real = Engine(alone, OPENVINO.arithmetic).run([inputs[i] for i in alone.inputs])[alone.outputs[0]]
    affine = graph.tensors[t].affine
    places = real.astype(np.float64) / float(affine.scale[0])
    places = places.transpose(0, 1, 4, 2, 3) if places.ndim == 5 else places
    return bool((np.abs(places - np.floor(places) - 0.5)[differing] <= HALF).all())


def _without_rounding(graph: Graph, node: Node, t: int) -> Graph:
    tensors = list(graph.tensors)
    tensors[t] = replace(tensors[t], dtype=FLOAT, quantisation=None)
    inputs = tuple(dict.fromkeys(i for i in node.inputs if i >= 0 and not tensors[i].is_constant))
    return Graph(tensors, [replace(node, params=None)], inputs, (t,), "alone")
