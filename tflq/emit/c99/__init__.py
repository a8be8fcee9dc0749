"""Networks as C99 programs, made from recordings of their kernels (docs/c99.md)."""
