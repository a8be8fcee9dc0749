"""Which transposes NNTool removes, as far as columns of fully connected layers depend on it (docs/gap9.md, 17.15)."""
