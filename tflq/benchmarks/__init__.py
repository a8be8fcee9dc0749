"""MLPerf Tiny: its models, its data sets, and accuracy on them."""
