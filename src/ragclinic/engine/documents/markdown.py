"""Markdown stays as it is, front matter aside: a model reads headings, lists and code well as they stand."""

import re

from ragclinic.engine.documents.encoding import decode
from ragclinic.engine.documents.types import Extracted, Reader
from ragclinic.errors import MissingExtra

SUFFIXES = frozenset({".md", ".markdown", ".mdx", ".mdown", ".mkd"})
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?\n)?---[ \t]*(?:\n|\Z)", re.DOTALL)
_TITLE = re.compile(r"^title:[ \t]*(.+?)[ \t]*$", re.MULTILINE)
_TITLE_CHARS = 65_536
"""How far a title is looked for; parsing costs a second a megabyte."""


def claims(suffix: str, head: bytes) -> bool:
    """By suffix alone: any text is Markdown too."""
    del head
    return suffix in SUFFIXES


def read(data: bytes) -> Extracted:
    """The text below the front matter; the title is the front matter's, else the first heading's."""
    text = decode(data)
    title = ""
    if front := _FRONT_MATTER.match(text):
        if named := _TITLE.search(front.group(1) or ""):
            title = named.group(1).strip("\"'")
        text = text[front.end() :]
    return Extracted(title or _first_heading(text[:_TITLE_CHARS]), text)


def _first_heading(text: str) -> str:
    try:
        from markdown_it import MarkdownIt
    except ImportError as error:
        raise MissingExtra("markdown-it-py", "local") from error
    tokens = MarkdownIt("commonmark").parse(text)
    heading = next((i for i, token in enumerate(tokens) if token.type == "heading_open"), None)
    if heading is None:
        return ""
    parts = tokens[heading + 1].children or []
    return "".join(
        part.content or " " for part in parts if part.type in ("text", "code_inline", "softbreak")
    ).strip()


READER = Reader(id="markdown", claims=claims, read=read)
