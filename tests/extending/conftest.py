"""The tests of the example package run where the package is installed: test_extending.py runs them."""

collect_ignore = ["power_of_two"]
