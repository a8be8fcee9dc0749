"""Products of matrices, and the reshapes upstream of them."""

from __future__ import annotations

from tflq.converters.exchange.emitter import FLOAT32, Emitter, is_same_order
from tflq.converters.exchange.windows import bias
from tflq.converters.passes.patterns import TO_FIRST, shape_first


def fully_connected(e: Emitter) -> None:
    """FULLY_CONNECTED: Gemm with transB = 1, inputs of other ranks as rows.

    Downstream of a flattened image the columns of the weights are permuted from (h, w, c) to (c, h, w).
    """
    source, tensor = e.node.inputs[0], e.tensor(e.node.inputs[1])
    data, (outputs, depth) = tensor.data, tensor.shape
    if data is not None and source in e.flattened:
        data = data.reshape(-1, *e.flattened[source]).transpose(0, 3, 1, 2).reshape(data.shape)
    weights = e.plain(1) if data is None else e.weights(e.node.inputs[1], data, 0)
    shape, rows = e.tensor(source).shape, (e.tensor(source).size // depth, depth)
    if shape == rows:
        x = e.plain(0)
    else:
        x = e.add("Reshape", [e.in_order(source), e.whole("shape", rows)], rows, first=False, label="rows")
    value = e.add("Gemm", [x, weights, *bias(e)], (rows[0], outputs), transB=1)
    value = e.reshaped(value, e.output().shape, "axes")
    e.result(e.transposed(value, TO_FIRST, True, "nchw") if value.rank == 4 else value)


def reshape(e: Emitter) -> None:
    """RESHAPE, SQUEEZE, EXPAND_DIMS: Reshape in the model's order of elements.

    If an emitter simplifies and only fully connected layers read a flattened image, it is stored in the order (c, h, w)
    and their weights are permuted.
    """
    source, t = e.node.inputs[0], e.node.outputs[0]
    old, new, is_first = e.tensor(source).shape, e.tensor(t).shape, False
    if e.simplifies and _is_flattened_for_products(e, source, t):
        e.flattened[t] = (old[1], old[2], old[3])
        value = e.in_layout(source, True)
    else:
        value = e.in_order(source)
        is_first = e.simplifies and len(new) == 4 and is_same_order(shape_first(new))
    new = shape_first(new) if is_first else new
    e.result(e.add("Reshape", [value, e.whole("shape", new)], new, first=is_first))


def _is_flattened_for_products(e: Emitter, source: int, t: int) -> bool:
    old, new = e.tensor(source).shape, e.tensor(t).shape
    if len(old) != 4 or len(new) != 2 or new[0] != old[0] or t in e.graph.outputs or not e.stored(source).is_first:
        return False
    readers = [e.graph.nodes[i] for i in e.readers.get(t, ())]
    if any(n.operator != "fully_connected" or n.inputs[0] != t for n in readers):
        return False
    weights = [e.tensor(n.inputs[1]) for n in readers]
    return all(w.is_constant and w.shape[1] == new[1] for w in weights)


def batch_matmul(e: Emitter) -> None:
    """BATCH_MATMUL: MatMul; adjoint operands are transposed."""
    values = []
    for position, key in enumerate(("adj_x", "adj_y")):
        value = e.plain(position)
        if e.node.attributes.boolean(key, False):
            value = e.transposed(value, (*range(value.rank - 2), value.rank - 1, value.rank - 2))
        values.append(value)
    e.result(e.add("MatMul", values, e.output().shape, FLOAT32, False))
