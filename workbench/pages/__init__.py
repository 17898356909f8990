"""Pages: static HTML and plain text for every result, readable without a kernel or JavaScript."""
