"""The pages of the two corpora: CPython's own language reference, and the project's Chinese handbook."""

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from ragclinic.corpora.records import Document
from ragclinic.errors import BadInput

_HERE = Path(__file__).resolve().parent

# An installed wheel carries the handbook inside the package; a checkout has it in docs/zh.
HANDBOOK_PLACES = (_HERE / "zh", _HERE.parents[2] / "docs" / "zh")


def english(module: str = "pydoc_data.topics") -> tuple[Document, ...]:
    """One document for each topic of the language reference that comes with the running Python.

    Raises:
        BadInput: this Python was packaged without the topics.
    """
    try:
        topics: Mapping[str, str] = importlib.import_module(module).topics
    except ImportError as error:
        raise BadInput(
            f"{module}: not in this Python; expected the language reference that CPython carries; "
            "install the full standard library, or use the Chinese corpus with --lang zh"
        ) from error
    return tuple(Document(name, text.split("\n", 1)[0], text) for name, text in topics.items())


def chinese(places: Sequence[Path] = HANDBOOK_PLACES) -> tuple[Document, ...]:
    """One document for each page of the handbook, named by its path, as `causes/decode-bound`; no index pages.

    Raises:
        BadInput: the handbook is in none of the `places`.
    """
    folder = next((place for place in places if (place / "README.md").is_file()), None)
    if folder is None:
        looked = " and ".join(str(place) for place in places)
        raise BadInput(f"{looked}: no handbook here; expected its README.md and pages; reinstall ragclinic")
    pages = sorted(page for page in folder.rglob("*.md") if page.name != "README.md")
    return tuple(_page(folder, page) for page in pages)


def _page(folder: Path, page: Path) -> Document:
    text = page.read_text("utf-8")
    return Document(
        id=page.relative_to(folder).with_suffix("").as_posix(),
        title=text.split("\n", 1)[0].removeprefix("# "),
        text=text,
    )
