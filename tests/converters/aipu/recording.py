"""What is recorded of the live Compass tools, and how (test_recorded.py, scripts/peers/compass_recorded.py)."""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.support.tracked import ROOT
from tflq.converters.aipu import AIPU
from tflq.graph import Array, Graph, Range
from tflq.interpreter import Engine

FILE = ROOT / "tests" / "data" / "aipu_layers.json.xz"
DIGITS = 8
"""Hexadecimal digits of a digest: 32 bits tell each of 10 000 tensors from a wrong one."""
CALIBRATED = 8
"""So many samples calibrate; the others are run."""

MODES = (
    *("sym_pt_8", "asym_pc_8", "sym_pc_16", "asym_pt_w8a16", "asym_pt_8", "sym_pc_8", "asym_pc_16"),
    *("sym_pt_16", "symr_pc_8", "symr_ptf_16", "asym_ptf_8", "sym_pcf_8", "sym_pt_w4", "asym_pc_w4", "asym_pt_w12"),
    *(
        "sym_pc_a12",
        "sym_pt_a16t9",
        "asym_pc_8_m10",
        "sym_pt_16_m12",
        "sym_pt_w8a16_r4",
        "sym_pc_16_r0",
        "sym_pt_8_b16",
    ),
    *("asym_pc_8_X3", "sym_pt_8_u", "asym_pt_16_u", "sym_pc_8_Z2"),
)
"""Activations (r: restricted), weights (f: full range), widths, and one more setting."""

UNIFIED = ("sym_pt_8_u", "asym_pt_16_u")
"""For networks with a Concat."""
FAST = ("sym_pt_8_f8", "asym_pc_8_f0", "sym_pt_16_f12", "sym_pc_8_f1", "asym_pt_8_f15", "symr_pc_8_f9")
"""For a Softmax by powers of two."""

_ACTIVATIONS = {"sym": "symmetric", "symr": "symmetric", "asym": "asymmetric"}
_WEIGHTS = {"pt": "per_tensor", "pc": "per_channel"}
_WIDTHS = {
    "8": [],
    "16": ["activation_bits=16", "weight_bits=16", "bias_bits=48", "lut_items_in_bits=10"],
    "w8a16": ["activation_bits=16", "weight_bits=8", "bias_bits=48", "lut_items_in_bits=10"],
    "w4": ["weight_bits=4"],
    "w12": ["weight_bits=12"],
    "a12": ["activation_bits=12", "weight_bits=12", "lut_items_in_bits=10"],
    "a16t9": ["activation_bits=16", "lut_items_in_bits=9"],
}
_MORE = {"m": "multiplier_bits", "r": "remain_shift", "b": "bias_effective_bits"}
_SUMS = ["float_sums=true", "float_library=amd"]
"""As on the machine that recorded."""


def settings_of(mode: str) -> list[str]:
    """One of MODES, as settings of tflq."""
    activations, weights, width, *more = mode.split("_")
    found = [f"activations={_ACTIVATIONS[activations]}", f"weights={_WEIGHTS[weights[:2]]}", *_WIDTHS[width], *_SUMS]
    found += ["activation_range=restricted"] * (activations == "symr") + ["weight_range=full"] * (weights[2:] == "f")
    for one in more:
        if one == "u":
            found.append("unify_concat=true")
        elif one[0] == "f":
            found += ["softmax=fast_exp", f"softmax_adjust_q={one[1:]}"]
        elif one[0] in _MORE:
            found.append(f"{_MORE[one[0]]}={one[1:]}")
        else:
            found.append(f"min_compatible_zhouyi_target={one}")
    return found


def digest_of_files(text: bytes, binary: bytes) -> str:
    return hashlib.sha256(text + binary).hexdigest()[:DIGITS]


def digest_of_tensor(values: Array) -> str:
    """Of the whole numbers of all samples, whatever shape and type they have."""
    return hashlib.sha256(np.ascontiguousarray(values, "<i8").tobytes()).hexdigest()[:DIGITS]


def read_recorded() -> dict[str, Any]:
    """Return kind -> name of a case -> what was recorded of it."""
    recorded: dict[str, Any] = json.loads(lzma.decompress(FILE.read_bytes()))
    return recorded


def write_recorded(recorded: dict[str, Any]) -> None:
    """Write what `read_recorded` returns."""
    text = json.dumps(recorded, separators=(",", ":"), sort_keys=False)
    FILE.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def ranged(graph: Graph, limits: Mapping[str, Sequence[float]]) -> Graph:
    """The graph with ranges of tensors by name."""
    found = graph.copy()
    for place, tensor in enumerate(graph.tensors):
        if tensor.name in limits:
            low, high = (np.asarray([limit], np.float32) for limit in limits[tensor.name])
            found.tensors[place] = replace(tensor, range=Range(low, high))
    return found


def values_of(graph: Graph, samples: Sequence[Array], names: Sequence[str]) -> dict[str, Array]:
    """Quantized values of tensors by name, one row a sample."""
    inputs = []
    for t, x in zip(graph.inputs, samples, strict=True):
        tensor = graph.tensors[t]
        inputs.append(x.astype(tensor.dtype.storage) if tensor.quantization is None else AIPU.encode(x, tensor))
    places = {graph.tensors[t].name: t for t in (*graph.inputs, *(t for node in graph.nodes for t in node.outputs))}
    found = Engine(graph).run(inputs, [places[name] for name in names])
    count = len(samples[0])
    values = {name: np.asarray(found[places[name]]) for name in names}
    return {name: np.broadcast_to(v, (count, *v.shape[1:])).reshape(count, -1) for name, v in values.items()}
