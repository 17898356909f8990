"""Fair measurements of several settings, whether a switch helped, and whether the numbers agree."""
