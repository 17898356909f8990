"""A Run: lazily computed answers over one folder, or over one trace from anywhere."""
