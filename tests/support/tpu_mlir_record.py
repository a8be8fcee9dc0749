"""Runs TPU-MLIR on networks together (tpu_mlir_recorded.py)."""

from __future__ import annotations

import json
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from peers.campaign import find
from peers.tpu_mlir import Tool, feeds

from tests.support.tpu_mlir_recorded import MODES, TYPES, lowered, network, problems, together
from tflq.converters.tpu_mlir.emit import artifacts_of
from tflq.converters.tpu_mlir.quantize import float_network
from tflq.errors import TflqError
from tflq.graph import Model

GROUP = 64
KEYS = ("multiplier", "multipliers", "rshift", "rshifts", "pool_scale", "pool_offset")
MOVES = ("tpu.Reshape", "tpu.Permute", "tpu.Cast", "tpu.Squeeze", "tpu.Unsqueeze")


def record(names: Sequence[str]) -> list[dict[str, Any]]:
    """Return what the tool makes of networks; those that it or tflq refuses are left out."""
    taken = [name for name in names if _is_taken(name)]
    tool = Tool(find("tpu_mlir"))
    return [g for start in range(0, len(taken), GROUP) for g in _recorded(tool, taken[start : start + GROUP])]


def _is_taken(name: str) -> bool:
    try:
        for mode in MODES:
            lowered(network(name)[0], mode)
    except TflqError as error:
        sys.stderr.write(f"{name}: {error}\n")
        return False
    return True


def _recorded(tool: Tool, names: list[str]) -> Iterator[dict[str, Any]]:
    """Yield one group; where the tool refuses it, its halves."""
    graph, inputs = together(names)
    found: dict[str, Any] = {"names": names, "layers": {}, "differs": {}}
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        made = artifacts_of(lowered(graph, "sym"), Model([graph]))
        (place / "net.onnx").write_bytes(next(data for key, data in made.items() if key.endswith(".onnx")))
        found["table"] = next(data for key, data in made.items() if key.endswith("_cali_table")).decode()
        (place / "table").write_text(found["table"])
        np.savez(place / "x.npz", **feeds(float_network(graph).onnx, inputs))  # type: ignore[arg-type]
        for mode in MODES:
            made = artifacts_of(lowered(graph, mode), Model([graph]))
            modes = [place / key for key in made if key.endswith("_qtable")]
            for path in modes:
                path.write_bytes(made[path.name])
            words = tool(folder=str(place), table="table", asymmetric=mode == "asym", chip="bm1684x",
                         qtable=modes[0].name if modes else None)  # fmt: skip
            if words:
                sys.stderr.write(f"{len(names)} from {names[0]}: {words[:200]}\n")
                if len(names) > 1:
                    half = len(names) // 2
                    yield from _recorded(tool, names[:half])
                    yield from _recorded(tool, names[half:])
                return
            written = "asym" if mode == "asym" else "sym"
            with np.load(place / f"{written}.npz") as file:
                tensors = {key: file[key] for key in file.files}
            layers = list(_layers(json.loads((place / f"{written}.json").read_text()), tensors))
            differs = {words.split(": ")[0]: words for words in problems(lowered(graph, mode), inputs, layers)}
            for name, words in differs.items():
                sys.stderr.write(f"{mode} {names[int(name[1:].split('_')[0])]}: {words}\n")
            found["layers"][mode], found["differs"][mode] = layers, sorted(differs)
    yield found


def _layers(layers: list[dict[str, Any]], tensors: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for layer in layers:
        for output in () if layer["op"].startswith("top.") else layer["outputs"]:
            name = output["name"]
            if name not in tensors or output["type"] not in TYPES or name.endswith(("_i32", "_slice")):
                continue
            value = tensors[name]
            kind = output["type"]
            row = {"name": name, "type": kind, "size": value.size, "is_move": layer["op"] in MOVES}
            row |= {key: layer["attributes"][key] for key in KEYS if key in layer["attributes"]}
            if "scale" in output:
                row |= {"scale": output["scale"], "zero_point": output["zero_point"]}
            if output["type"] in ("i8", "u8"):
                low, high = np.iinfo(TYPES[kind]).min, np.iinfo(TYPES[kind]).max
                inside = np.ascontiguousarray(np.clip(value, low, high).astype(TYPES[kind]))
                row["crc"] = zlib.crc32(inside.tobytes())
            else:
                if kind == "f16" and np.any(value != value.astype(np.float16)):
                    row["unrounded"] = True
                row["mean"] = float(np.abs(value.astype(np.float64)).mean())
            yield row
