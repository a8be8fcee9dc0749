"""Rewrites that several targets share; a target has its own rewrites in its package (docs/internals/rewriting.md)."""
