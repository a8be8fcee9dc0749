"""Passes: named rewrites in order, with the reason of each, and a record of their changes.

SOURCE = "docs/rules/tpu_mlir.md#convolutions-and-fully-connected-layers"
PASSES = (Pass("fuse_silu", fuse_silu, "x * logistic(x) is one table", SOURCE),)
graph = rewrite_graph(graph, PASSES, owner="tpu-mlir")
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Generic, TypeVar

from tflq.errors import TflqError, UsageError
from tflq.graph.graph import Graph
from tflq.graph.printing import TensorPrinter
from tflq.graph.rewriting.editor import GraphEditor
from tflq.plugins import find_entry_points

ENTRY_POINT_GROUP = "tflq.passes"

E = TypeVar("E", bound=GraphEditor)
Reads = TypeVar("Reads", bound=GraphEditor, contravariant=True)
"""Editor that a pass needs: a pass for every editor runs on the editor of a target, too."""


@dataclass(frozen=True)
class Pass(Generic[Reads]):
    """One rewrite of a graph.

    Attributes:
        name: Verb and noun in snake case; unique in its list, except for a pass that runs again.
        run: Changes the graph of an editor in place.
        why: Reason in one line, for the reader of the list.
        source: Document and section, or the place in the vendor's tool, that the rewrite models.
        evidence: Graphs on which the condition was compared with the vendor's tool; empty if it is tflq's own rewrite.
    """

    name: str
    run: Callable[[Reads], None]
    why: str
    source: str = ""
    evidence: str = ""


@dataclass(frozen=True)
class ExtraPass:
    """A pass that another package adds to the list of an owner, through the entry-point group `tflq.passes`.

    Attributes:
        owner: List that it extends, such as "tpu-mlir".
        rewrite: The pass.
        before: Name of the pass that it precedes; empty for the end of the list.
    """

    owner: str
    rewrite: Pass[GraphEditor]
    before: str = ""


@dataclass(frozen=True)
class Change:
    """The effect of one pass.

    Attributes:
        owner: List of the pass, such as "tpu-mlir".
        name: Name of the pass.
        why: Reason of the pass.
        source: Source of the pass.
        before: Lines of the text form that the pass removed.
        after: Lines that it added.
    """

    owner: str
    name: str
    why: str
    source: str
    before: tuple[str, ...]
    after: tuple[str, ...]


_trace: ContextVar[list[Change] | None] = ContextVar("trace of passes", default=None)


@contextmanager
def trace_passes() -> Iterator[list[Change]]:
    """Record, for the block, each pass that changes something; the list grows while passes run."""
    changes: list[Change] = []
    token = _trace.set(changes)
    try:
        yield changes
    finally:
        _trace.reset(token)


@contextmanager
def pause_trace() -> Iterator[None]:
    """Record no pass within the block: for code that runs passes again, such as a check."""
    token = _trace.set(None)
    try:
        yield
    finally:
        _trace.reset(token)


def select_changes(changes: Sequence[Change], names: Sequence[str]) -> tuple[Change, ...]:
    """Return the changes of the named passes; all changes without names.

    Raises:
        UsageError: No pass of a name changed the graph.
    """
    known = list(dict.fromkeys(change.name for change in changes))
    for name in names:
        if name not in known:
            raise UsageError(f"no pass '{name}' changed the graph; {', '.join(known)} did")
    return tuple(change for change in changes if not names or change.name in names)


def run_passes(editor: E, passes: Iterable[Pass[E]], owner: str = "") -> None:
    """Run passes over a graph in their order, with the passes that other packages add.

    Args:
        editor: Graph to change.
        passes: List of passes.
        owner: Name of the list: the target's name.
    """
    changes = _trace.get()
    for step in _extended(tuple(passes), owner):
        if changes is None:
            step.run(editor)
            continue
        old = _lines(editor)
        step.run(editor)
        change = _describe_change(step, owner, old, _lines(editor))
        if change is not None:
            changes.append(change)


def rewrite_graph(graph: Graph, passes: Iterable[Pass[GraphEditor]], owner: str = "") -> Graph:
    """Return a graph after all passes; the given one stays unchanged. Tensors keep their indices."""
    editor = GraphEditor(graph)
    run_passes(editor, passes, owner)
    return editor.graph()


def graph_pass(name: str, function: Callable[[Graph], Graph], why: str, source: str = "") -> Pass[GraphEditor]:
    """Return a pass that replaces the whole graph: for a step that builds another graph instead of changing one."""
    return Pass(name, lambda editor: editor.load(function(editor.graph())), why, source)


def _lines(editor: GraphEditor) -> list[str]:
    printer, nodes = TensorPrinter(editor.tensors), editor.nodes
    read = {t for node in nodes for t in node.inputs}
    outputs = [f"output {printer.name(t)}" for t in editor.outputs]
    return [*printer.declarations(editor.inputs, nodes, read), *map(printer.node, nodes), *outputs]


def _describe_change(step: Pass[E], owner: str, old: Sequence[str], new: Sequence[str]) -> Change | None:
    if old == new:
        return None
    removed, added = list[str](), list[str]()
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            removed += old[a:b]
            added += new[c:d]
    return Change(owner, step.name, step.why, step.source, tuple(removed), tuple(added))


def _extended(passes: tuple[Pass[E], ...], owner: str) -> tuple[Pass[E], ...]:
    if not owner:
        return passes
    result = list(passes)
    for extra in _extra_passes():
        if extra.owner == owner:
            names = [step.name for step in result]
            if extra.before and extra.before not in names:
                raise TflqError(
                    f"pass '{extra.rewrite.name}' of {ENTRY_POINT_GROUP} wants to precede '{extra.before}'; the passes "
                    f"of {owner} are {', '.join(names)}"
                )
            place = names.index(extra.before) if extra.before else len(result)
            result.insert(place, extra.rewrite)
    return tuple(result)


def _extra_passes() -> Iterator[ExtraPass]:
    for entry in find_entry_points(ENTRY_POINT_GROUP):
        extra = entry.load()
        if not isinstance(extra, ExtraPass):
            raise TflqError(
                f"entry point '{entry.name}' of {ENTRY_POINT_GROUP}: found {type(extra).__name__}, allowed is an "
                f"ExtraPass (docs/internals/extending.md)"
            )
        yield extra
