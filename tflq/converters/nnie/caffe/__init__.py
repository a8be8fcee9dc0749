"""Graphs as Caffe 1.0 networks (docs/nnie.md, 6)."""
