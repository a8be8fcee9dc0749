"""NE16's jobs as files for a driver: JSON, C structs and a memory image (docs/rules/gap9/ne16.md#jobs)."""

from __future__ import annotations

from tflq.converters.gap9.jobs.filters import is_on_ne16
from tflq.converters.gap9.jobs.memory import LayerMemory, layer_memory
from tflq.converters.gap9.jobs.registers import NAMES, POINTERS
from tflq.errors import UnsupportedError
from tflq.graph import Graph
from tflq.quoting import c_identifiers, json_text
from tflq.schemas import Json

JSON, SOURCE, HEADER, IMAGE = "ne16_jobs.json", "ne16_jobs.c", "ne16_jobs.h", "ne16_memory.bin"
_FORMAT = "tflq ne16 jobs"
_GUARD = "TFLQ_NE16_JOBS_H"
_NOTE = "registers equal to those that ran in NE16's open RTL of 2022, not on a device"


def job_files(graph: Graph) -> dict[str, bytes]:
    """Return file name -> content for a lowered graph; nothing where no layer runs on NE16."""
    layers: list[LayerMemory] = []
    refused: list[Json] = []
    for index, node in enumerate(graph.nodes):
        if is_on_ne16(node):
            try:
                layers.append(layer_memory(graph, index))
            except UnsupportedError as error:
                refused.append({"node": node.name, "reason": str(error)})
    if not layers and not refused:
        return {}
    image, offsets = bytearray(), []
    for layer in layers:
        offsets.append(len(image))
        image.extend(layer.constants + bytes(-len(layer.constants) % 16))
    report: dict[str, Json] = {
        "format": _FORMAT,
        "version": 1,
        "note": _NOTE,
        "registers": list(NAMES),
        "pointers": list(NAMES[:POINTERS]),
        "image": IMAGE,
        "layers": [_layer(layer, offset) for layer, offset in zip(layers, offsets, strict=True)],
        "refused": refused,
    }
    return {
        JSON: f"{json_text(report, indent=None)}\n".encode(),
        SOURCE: _source(layers, offsets),
        HEADER: _header(),
        IMAGE: bytes(image),
    }


def _layer(layer: LayerMemory, offset: int) -> Json:
    kind = "int32" if layer.layer.out_bits == 32 else "int8" if layer.layer.signed else "uint8"
    top, bottom, left, right = layer.layer.padded_in_memory
    return {
        "node": layer.name,
        "mode": layer.layer.mode,
        "image": {"offset": offset, "size_bytes": len(layer.constants), "address": 0},
        "features": {
            "address": layer.at.features,
            "shape": list(layer.features_shape),
            "channels": layer.layer.size_in[2],
            "padded_in_memory": {"top": top, "bottom": bottom, "left": left, "right": right},
            "padding_value": layer.layer.padding_value,
        },
        "output": {
            "address": layer.at.output,
            "shape": list(layer.output_shape),
            "element": kind,
            "channels": layer.outputs,
            "clip": [layer.minimum, layer.maximum],
        },
        "jobs": [[job.get(name, 0) for name in NAMES] for job in layer.jobs],
    }


def _header() -> bytes:
    fields = [f"    uint32_t {name.lower()};" for name in NAMES]
    return (
        "\n".join(
            [
                "/* Written by tflq. Six registers are addresses in the layer's memory: add where it begins. */",
                f"#ifndef {_GUARD}",
                f"#define {_GUARD}",
                "",
                "#include <stdint.h>",
                "",
                "typedef struct {",
                *fields,
                "} tflq_ne16_job_t;",
                "",
                "typedef struct {",
                "    const char *name;",
                "    const tflq_ne16_job_t *jobs;",
                "    uint32_t job_count;",
                f"    uint32_t image_offset; /* in {IMAGE}; to be copied to address 0 of the layer's memory */",
                "    uint32_t image_size;",
                "    uint32_t features; /* address of the input's first pixel in memory */",
                "    uint32_t output;",
                "    uint32_t output_size;",
                "} tflq_ne16_layer_t;",
                "",
                "extern const tflq_ne16_layer_t tflq_ne16_layers[];",
                "extern const uint32_t tflq_ne16_layer_count;",
                "",
                f"#endif /* {_GUARD} */",
                "",
            ]
        )
    ).encode()


def _source(layers: list[LayerMemory], offsets: list[int]) -> bytes:
    names = c_identifiers([layer.name for layer in layers])
    lines = ["/* Written by tflq. */", f'#include "{HEADER}"']
    table = []
    for layer, name, offset in zip(layers, names, offsets, strict=True):
        jobs = layer.jobs
        lines += ["", f"static const tflq_ne16_job_t {name}_jobs[{len(jobs)}] = {{"]
        lines += [f"    {{{', '.join(f'0x{job.get(register, 0):x}' for register in NAMES)}}}," for job in jobs]
        lines.append("};")
        sizes = (len(jobs), offset, len(layer.constants), layer.at.features, layer.at.output, layer.output_bytes)
        table.append(f'    {{"{name}", {name}_jobs, {", ".join(map(str, sizes))}}},')
    # C has no arrays of length 0.
    rows = table or ["    {0},"]
    lines += ["", "const tflq_ne16_layer_t tflq_ne16_layers[] = {", *rows, "};"]
    return "\n".join([*lines, f"const uint32_t tflq_ne16_layer_count = {len(layers)};", ""]).encode()
