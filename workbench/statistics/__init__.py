"""Change test, comparison of step times, and the noise floor of a machine; knows no torch."""
