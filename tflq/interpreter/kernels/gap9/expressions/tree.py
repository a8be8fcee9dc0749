"""Expressions in the file's order: floating-point operators, with the ranges of their results."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.graph import Attribute, Attributes

INPUT, CONSTANT = "input", "constant"


@dataclass(frozen=True)
class Symbol:
    """One operator, input or constant.

    Attributes:
        operator: TFLite's name, "input" or "constant".
        name: Name of the original node.
        operands: positions of its operands in the expression.
        number: Position of an input among the node's inputs; of a constant, its value.
        range: real range of the result, if the quantizer knows one.
    """

    operator: str
    name: str = ""
    operands: tuple[int, ...] = ()
    number: float = 0.0
    range: tuple[float, float] | None = None


@dataclass(frozen=True)
class Tree:
    """Operators in order of execution.

    Attributes:
        symbols: Operators, each after its operands.
        outputs: positions of the results.
    """

    symbols: tuple[Symbol, ...]
    outputs: tuple[int, ...]

    @property
    def shared_positions(self) -> tuple[int, ...]:
        """Positions of the operators that are read more than once: computed once, kept in 32 bits."""
        read = [o for symbol in self.symbols for o in symbol.operands] + list(self.outputs)
        return tuple(i for i, s in enumerate(self.symbols) if s.operator not in (INPUT, CONSTANT) and read.count(i) > 1)

    def attributes(self) -> dict[str, Attribute]:
        """Return the expression as attributes of a node: plain lists, one entry a symbol."""
        ranges = [s.range or (0.0, 0.0) for s in self.symbols]
        return {
            "symbols": " ".join(s.operator for s in self.symbols),
            "names": " ".join(s.name or "-" for s in self.symbols),
            "operands": tuple(o for s in self.symbols for o in (*s.operands, -1, -1)[:2]),
            "numbers": tuple(s.number for s in self.symbols),
            "ranged": tuple(int(s.range is not None) for s in self.symbols),
            "minima": tuple(low for low, _ in ranges),
            "maxima": tuple(high for _, high in ranges),
            "results": self.outputs,
        }

    @staticmethod
    def from_attributes(attributes: Attributes) -> Tree:
        """Return the expression that a node's attributes define."""
        operators, names = (attributes.text(key).split(" ") for key in ("symbols", "names"))
        flat, ranged = attributes.integers("operands"), attributes.integers("ranged")
        numbers, minima, maxima = (attributes.reals(key) for key in ("numbers", "minima", "maxima"))
        symbols = [
            Symbol(
                operator,
                "" if names[i] == "-" else names[i],
                tuple(o for o in flat[2 * i : 2 * i + 2] if o >= 0),
                numbers[i],
                (minima[i], maxima[i]) if ranged[i] else None,
            )
            for i, operator in enumerate(operators)
        ]
        return Tree(tuple(symbols), attributes.integers("results"))
