"""Files for firmware and test benches: C programs, test vectors, and the check of what a target wrote."""
