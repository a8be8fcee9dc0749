"""NE16's jobs: what a filter is to the accelerator, its registers, its cycles (docs/gap9.md, 20 and 21)."""
