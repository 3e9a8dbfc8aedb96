"""Writes a result file whole or not at all."""

from pathlib import Path

from ragclinic.errors import BadInput


def write_text(path: Path, text: str) -> None:
    """Writes the text beside its place and moves it there.

    Raises:
        BadInput: the place cannot be written to.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, "utf-8")
        temporary.replace(path)
    except OSError as error:
        raise BadInput(
            f"{path}: {error.strerror or error}; expected a place to write to; choose another"
        ) from error
