"""Any trace file becomes one columnar event table."""
