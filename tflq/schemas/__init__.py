"""The formats as data: the TFLite schema as typed tables, and the targets' specifications."""
