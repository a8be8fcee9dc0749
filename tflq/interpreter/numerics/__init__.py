"""Numbers: fixed-point primitives, proven float maps, tables, functions and random numbers, step by step as TFLite."""
