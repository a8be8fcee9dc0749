"""Reads the text form of a graph that `tflq.graph.printing` writes."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tflq.arrays import Array, Reals
from tflq.errors import FormatError
from tflq.graph.attributes import Attribute, Attributes
from tflq.graph.dtypes import DType
from tflq.graph.graph import ABSENT, Graph, Node, Tensor, validate
from tflq.graph.printing import FAKE_BOUNDS
from tflq.graph.quantization import Affine, Blockwise, FakeQuantize, Logarithmic, Quantization, Range
from tflq.graph.tokens import TokenReader

_COUNT = re.compile(r"\d+")

Value = Attribute | complex | list["Value"]


def parse_graph(text: str) -> Graph:
    """Return the graph of a text form; tensors are numbered in the order in which the text declares them.

    A constant may be given by its values, or as `zeros`, `fill(v)` or `random(seed)` with the declared shape and type.

    Raises:
        FormatError: The text is no graph; the message names the line.
        GraphError: The graph is inconsistent.
    """
    parser = _Parser(text)
    try:
        graph = parser.parse()
    except (ValueError, TypeError, OverflowError, SyntaxError) as error:
        raise FormatError(f"graph text: line {parser.line}: {error}") from None
    validate(graph, "graph text")
    return graph


class _Parser(TokenReader):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._graph = Graph([], [], (), ())
        self._numbers: dict[str, int] = {}

    # ---- graph

    def parse(self) -> Graph:
        self._skip_lines()
        self._expect("graph")
        if self._peek() != "{":
            self._graph.name = str(self._string()) if self._kind() == "string" else self._next()
        self._expect("{")
        self._expect("\n")
        self._skip_lines()
        while not self._take("}"):
            self._statement()
            self._expect("\n")
            self._skip_lines()
        self._skip_lines()
        if self._kind() != "end":
            self._fail("nothing after the graph")
        return self._graph

    def _statement(self) -> None:
        words = {"input": self._input, "const": self._const, "tensor": self._tensor}
        if self._peek() == "output":
            self._place += 1
            self._graph.outputs += (self._reference(),)
        elif self._peek() in words and self._peek(1).startswith("%"):
            words[self._next()]()
        else:
            self._node()

    def _input(self) -> None:
        self._graph.inputs += (self._declare(self._typed()),)

    def _tensor(self) -> None:
        self._declare(self._typed())

    def _const(self) -> None:
        key, tensor = self._typed()
        self._expect("=")
        data = self._data(tensor)
        data.setflags(write=False)
        self._declare((key, replace(tensor, data=data)))

    def _declare(self, declared: tuple[str, Tensor]) -> int:
        key, tensor = declared
        if key in self._numbers:
            self._place -= 1
            self._fail(f"each tensor once; {key} is declared already")
        self._numbers[key] = self._graph.add_tensor(tensor)
        return self._numbers[key]

    def _written(self, declared: tuple[str, Tensor]) -> int:
        t = self._numbers.get(declared[0])
        is_same_variable = t is not None and declared[1].is_variable and self._graph.tensors[t] == declared[1]
        return t if t is not None and is_same_variable else self._declare(declared)

    def _reference(self) -> int:
        if self._take("_"):
            return ABSENT
        if self._kind() != "tensor" or self._peek() not in self._numbers:
            self._fail("a tensor that an earlier line declares, or _")
        return self._numbers[self._next()]

    def _node(self) -> None:
        results = list[tuple[str, Tensor]]()
        while self._kind() == "tensor":
            results.append(self._typed())
            if not self._take(","):
                self._expect("=")
                break
        if self._kind() != "word":
            self._fail("a tensor, an operator, input, const, tensor or output")
        operator = self._next()
        inputs = self._in_brackets(self._reference)
        attributes = self._attributes()
        index = len(self._graph.nodes)
        name = str(self._string()) if self._kind() == "string" else f"{operator.upper()}_0_{index}"
        node = Node(operator, tuple(inputs), (), Attributes(attributes), name)
        node = self._facts(node)
        outputs = tuple(self._written(result) for result in results)
        self._graph.nodes.append(replace(node, outputs=outputs))

    def _facts(self, node: Node) -> Node:
        while self._kind() == "word":
            key = self._next()
            self._expect("=")
            if key == "version":
                node = replace(node, version=int(str(self._value())))
            elif key == "custom":
                node = replace(node, custom_code=str(self._value()))
            elif key == "options" and isinstance(options := self._value(), bytes):
                node = replace(node, custom_options=options)
            elif key == "arithmetic":
                node = replace(node, arithmetic=self._next())
            elif key == "intermediates":
                node = replace(node, intermediates=tuple(self._in_brackets(self._reference)))
            else:
                self._place -= 2
                self._fail("version, custom, options, arithmetic or intermediates")
        return node

    def _attributes(self) -> dict[str, Attribute]:
        result: dict[str, Attribute] = {}
        if self._take("{"):
            while not self._take("}"):
                key = self._next()
                self._expect("=")
                result[key] = self._attribute()
                if self._peek() != "}":
                    self._expect(",")
        return result

    def _attribute(self) -> Attribute:
        if self._take("array"):
            self._expect("(")
            dtype = np.dtype(self._next())
            self._expect(",")
            data = self._array(dtype)
            self._expect(")")
            return data
        if self._take("("):
            self._place -= 1
            return tuple(self._in_brackets(self._number))
        return self._value()

    def _number(self) -> int | float:
        value = self._value()
        if not isinstance(value, (int, float)):
            self._place -= 1
            self._fail("a number")
        return value

    # ---- types

    def _typed(self) -> tuple[str, Tensor]:
        if self._kind() != "tensor":
            self._fail("a tensor, as %name")
        key = self._next()
        name = key[1:].partition("#")[0] if not key.startswith('%"') else json.loads(key[1 : key.rindex('"') + 1])
        self._expect(":")
        try:
            dtype = DType(self._peek())
        except ValueError:
            self._fail(f"a type: {', '.join(d.value for d in DType)}")
        self._place += 1
        shape, signature = self._shape()
        tensor = Tensor(name, shape, dtype, shape_signature=signature)
        return key, self._described(tensor)

    def _shape(self) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
        self._expect("[")
        shape, signature = list[int](), list[int]()
        while not self._take("]"):
            is_open = self._take("?")
            if not _COUNT.fullmatch(self._peek()):
                self._fail("a size")
            shape.append(int(self._next()))
            signature.append(-1 if is_open else shape[-1])
            if self._peek() != "]":
                self._expect(",")
        return tuple(shape), tuple(signature) if -1 in signature else None

    def _described(self, tensor: Tensor) -> Tensor:
        kinds: dict[str, Callable[[], Quantization]] = {
            "q": self._affine,
            "blocks": self._blocks,
            "log": self._logarithmic,
            "fake": self._fake,
        }
        while self._kind() == "word":
            word = self._next()
            if word in kinds:
                tensor = replace(tensor, quantization=kinds[word]())
            elif word == "range":
                low, high = self._in_brackets(lambda: np.atleast_1d(self._array(np.float32)))
                tensor = replace(tensor, range=Range(_reals(low), _reals(high)))
            elif word == "variable":
                tensor = replace(tensor, is_variable=True)
            elif word == "has_rank":
                tensor = replace(tensor, has_rank=True)
            else:
                self._place -= 1
                self._fail("q(...), blocks(...), log(...), fake(...), range(...), variable or has_rank")
        return tensor

    def _affine(self) -> Affine:
        self._expect("(")
        scale = np.atleast_1d(self._array(np.float32))
        self._expect(",")
        zero_point = np.atleast_1d(self._array(np.int64))
        affine = Affine(_reals(scale), zero_point.astype(np.int64))
        while self._take(","):
            word = self._next()
            if word in ("axis", "bits"):
                self._expect("=")
                number = int(self._next())
                affine = replace(affine, axis=number) if word == "axis" else replace(affine, bits=number)
            elif word in ("unsigned", "narrow"):
                affine = replace(affine, signed=False) if word == "unsigned" else replace(affine, narrow_range=True)
            else:
                self._place -= 1
                self._fail("axis=, bits=, unsigned or narrow")
        self._expect(")")
        return affine

    def _blocks(self) -> Blockwise:
        self._expect("(")
        scales = self._reference()
        self._expect(",")
        zero_points = self._reference()
        self._expect(",")
        size = int(self._next())
        shape = self._attribute() if self._take(",") else ()
        self._expect(")")
        return Blockwise(
            scales, zero_points, size, tuple(int(str(n)) for n in shape) if isinstance(shape, tuple) else ()
        )

    def _logarithmic(self) -> Logarithmic:
        self._expect("(")
        clipping = float(self._next())
        for text in (",", "bits", "="):
            self._expect(text)
        bits = int(self._next())
        self._expect(")")
        return Logarithmic(clipping, bits)

    def _fake(self) -> FakeQuantize:
        self._expect("(")
        levels = int(self._next())
        bounds = {}
        for key in FAKE_BOUNDS:
            self._expect(",")
            bounds[key] = self._array(np.float32).astype(np.float32)
        self._expect(")")
        return FakeQuantize(levels, **bounds)

    # ---- values

    def _data(self, tensor: Tensor) -> Array:
        storage = tensor.dtype.storage
        if self._take("zeros"):
            return np.zeros(tensor.shape, storage)
        if self._take("fill"):
            (value,) = self._in_brackets(self._value)
            return np.full(tensor.shape, value, storage)
        if self._take("random"):
            (seed,) = self._in_brackets(self._value)
            return _drawn(tensor, int(str(seed)))
        if self._kind() == "checksum":
            self._fail("the values, zeros, fill(v) or random(seed): this text was printed without its long constants")
        data = self._array(storage)
        if data.size == 0 and not tensor.shape:
            self._fail("a value")
        if data.shape != tensor.shape:
            self._place -= 1
            self._fail(f"values of shape {tensor.shape}, not {data.shape}")
        return data

    def _array(self, expected: np.dtype[np.generic] | type[np.generic]) -> Array:
        if self._take("empty"):
            shape = self._in_brackets(lambda: int(self._next()))
            return np.empty(shape, self._dtype(expected))
        items = self._nested()
        data = np.asarray(items, self._dtype(expected))
        if data.dtype.kind in "iu" and np.any(data != np.asarray(items, object)):
            self._fail(f"integers for {data.dtype.name}; a number before has a fraction")
        return data

    def _dtype(self, expected: np.dtype[np.generic] | type[np.generic]) -> np.dtype[np.generic]:
        return np.dtype(self._next()) if self._take(":") else np.dtype(expected)

    def _nested(self) -> Value:
        if self._take("complex"):
            real, imaginary = self._in_brackets(self._number)
            return complex(real, imaginary)
        if not self._take("["):
            return self._value()
        items = list[Value]()
        while not self._take("]"):
            items.append(self._nested())
            if self._peek() != "]":
                self._expect(",")
        return items

    def _value(self) -> Attribute:
        kind = self._kind()
        if kind == "string":
            return self._string()
        if kind == "bytes":
            return bytes(ast.literal_eval(self._next()))
        if kind == "number":
            text = self._next()
            return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
        words: dict[str, Attribute] = {"True": True, "False": False, "None": None}
        if self._peek() not in words:
            self._fail("a number, a string, True, False or None")
        return words[self._next()]

    def _string(self) -> str:
        text = self._next()
        return str(json.loads(text) if text.startswith('"') else ast.literal_eval(text))


def _reals(data: Array) -> Reals:
    return data if np.issubdtype(data.dtype, np.floating) else data.astype(np.float32)  # type: ignore[return-value]


def _drawn(tensor: Tensor, seed: int) -> Array:
    """Return seeded values: all integers of the type, with int32 within 2^16; normally distributed real numbers."""
    generator, dtype = np.random.default_rng(seed), tensor.dtype
    if dtype.is_integer:
        reach = 1 << 16
        low, high = max(dtype.minimum, -reach), min(dtype.maximum, reach)
        return generator.integers(low, high, tensor.shape, endpoint=True).astype(dtype.storage)
    if dtype is DType.BOOL:
        return generator.integers(0, 2, tensor.shape).astype(bool)
    return generator.standard_normal(tensor.shape).astype(dtype.storage)
