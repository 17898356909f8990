"""Two sides compared: what was added, removed, renamed, faster or slower, by name and category."""
