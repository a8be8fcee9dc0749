"""All files: Caffe package, cfg of the mapper, calibration list, clipping table, and what to do with them."""

from __future__ import annotations

import json
import re
from pathlib import PurePath

from tflq.converters.calibration import samples_of
from tflq.converters.nnie.caffe.network import CaffeNetwork, caffe_network
from tflq.converters.nnie.caffe.prototxt import prototxt
from tflq.converters.nnie.emit.clipping import clipping_table
from tflq.converters.nnie.emit.mapper import image_lists, mapper_cfg
from tflq.converters.nnie.emit.readme import readme
from tflq.errors import UnsupportedError
from tflq.graph import Graph, Model
from tflq.schemas.caffe import BlobLayer, encode_net


def artefacts_of(graph: Graph, source: Model) -> dict[str, bytes]:
    """Return file name -> content.

    Args:
        graph: quantised, lowered or not.
        source: the model that was quantised; its file's name names the package.

    Raises:
        UnsupportedError: a node without a layer of Caffe, which `check` lists.
    """
    name = re.sub(r"[^\w-]+", "_", PurePath(source.source or "model").stem) or "model"
    mode = compile_mode(graph)
    high = {n.name: "_hp" for n in graph.nodes if mode == 2 and n.attributes.integer("bits", 8) == 16}
    network = caffe_network(graph, high)
    if network.problems:
        raise UnsupportedError("; ".join(f"{graph.where(i)}: {reason}" for i, reason in network.problems.items()))
    lists = image_lists(name, graph, samples_of(graph))
    table = clipping_table(graph, high)
    return {
        f"{name}.prototxt": prototxt(name, network.layers).encode(),
        f"{name}.caffemodel": encode_net(name, _with_blobs(network)),
        f"{name}.cfg": mapper_cfg(name, graph, mode).encode(),
        **lists,
        f"{name}_clipping.json": (json.dumps(table, indent=1) + "\n").encode(),
        "README.md": readme(name, graph, network, mode, bool(lists)).encode(),
    }


def compile_mode(graph: Graph) -> int:
    """Return 0 where all layers have 8 bits, 1 where all have 16, 2 where they differ."""
    bits = {n.attributes.integer("bits") for n in graph.nodes if n.attributes.get("bits") is not None}
    return 2 if len(bits) > 1 else 1 if bits == {16} else 0


def _with_blobs(network: CaffeNetwork) -> list[BlobLayer]:
    return [
        BlobLayer(layer.name, layer.type, layer.bottoms, layer.tops, layer.blobs)
        for layer in network.layers
        if layer.blobs
    ]
