"""Graphs as Caffe 1.0 networks (docs/targets/nnie.md#files)."""
