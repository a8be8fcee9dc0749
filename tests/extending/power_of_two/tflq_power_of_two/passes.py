"""A pass for an existing target: tpu-mlir computes no double negation."""

from __future__ import annotations

from tflq.graph.rewriting import ExtraPass, GraphEditor, Pass, Value, find_matches, op

DOUBLE_NEGATION = op("neg", op("neg", Value("x")))


def remove_double_negation(editor: GraphEditor) -> None:
    """Replace -(-x) by x."""
    for match in find_matches(editor, DOUBLE_NEGATION):
        editor.redirect(match.root.outputs[0], match.values["x"])
        editor.remove_unread((match.root, *match.inner))


EXTRA = ExtraPass("tpu-mlir", Pass("remove_double_negation", remove_double_negation, "-(-x) is x"), before="fuse_silu")
