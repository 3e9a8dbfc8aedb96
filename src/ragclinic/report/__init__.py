"""A diagnosis made readable: terminal, self-contained HTML, JSON."""
