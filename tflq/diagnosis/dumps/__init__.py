"""Reads tensor dumps as boards and tools write them (docs/guides/dumps.md): files, names, layouts, encodings."""
