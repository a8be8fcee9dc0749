"""Reads tensor dumps as boards and tools write them (docs/dumps.md): files, names, layouts, encodings."""
