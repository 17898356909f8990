"""The Run folder: its names, reading it, and writing it whole or not at all."""
