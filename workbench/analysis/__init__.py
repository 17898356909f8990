"""Event table in, small tables and frozen records out: one question a file, no drawing."""
