"""The names nearest to one that is not known."""

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """The `count` known names most like `name`, the likest first."""
    import difflib  # only an error needs it

    return difflib.get_close_matches(name.lower(), list(known), n=count, cutoff=0.0)
