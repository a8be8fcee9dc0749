"""Networks as C99 programs, made from recordings of their kernels (docs/guides/c99.md)."""
