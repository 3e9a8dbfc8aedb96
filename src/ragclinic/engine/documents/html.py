"""HTML to the text a visitor reads: blocks apart by blank lines, headings marked, scripts and menus left out."""

import re
from typing import TYPE_CHECKING

from ragclinic.engine.documents.encoding import decode
from ragclinic.engine.documents.types import Extracted, Reader
from ragclinic.errors import MissingExtra

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

SUFFIXES = frozenset({".html", ".htm", ".xhtml"})
_STARTS = re.compile(
    rb"\A(?:\xef\xbb\xbf)?\s*(?:<!--.*?-->\s*)*(?:<\?xml[^>]*>\s*)?<(?:!doctype\s+html|html)\b", re.I | re.S
)
_CHARSET = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([\w-]+)", re.I)
_UNREAD = "script, style, noscript, template, nav, footer, svg, iframe"
_LINE, _PARAGRAPH, _ITEM, _AS_IS = "\x01", "\x02", "\x03", "\x04"
"""Marks for a line break, a blank line, a list item, and around what keeps its own white space."""
_RUN = re.compile(r"[ \t\x01-\x03]+")
_BREAKS = {
    **dict.fromkeys(
        ("p", "div", "section", "article", "main", "blockquote", "ul", "ol", "dl", "table"), _PARAGRAPH
    ),
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6", "pre", "figure", "aside", "header", "hr"), _PARAGRAPH),
    **dict.fromkeys(("li", "tr", "dt", "dd", "br", "figcaption", "caption"), _LINE),
    **dict.fromkeys(("td", "th"), "\t"),
}
_OPENERS = {**{f"h{level}": "#" * level + " " for level in range(1, 7)}, "li": _ITEM}


def claims(suffix: str, head: bytes) -> bool:
    """By how the file begins, or by its suffix where it begins with a fragment."""
    return bool(_STARTS.match(head)) or suffix in SUFFIXES


def read(data: bytes) -> Extracted:
    """The title and the visible text."""
    try:
        from selectolax.lexbor import LexborHTMLParser
    except ImportError as error:
        raise MissingExtra("selectolax", "local") from error
    tree = LexborHTMLParser(_text_of(data))
    title = _line(tree.css_first("title"))
    for node in tree.css(_UNREAD):
        node.decompose()
    if tree.body is None:
        return Extracted(title, "")
    return Extracted(title or _line(tree.body.css_first("h1")), _tidy(_pieces(tree.body)))


def _line(node: "LexborNode | None") -> str:
    return " ".join(node.text().split()) if node else ""


def _text_of(data: bytes) -> str:
    """Decoded as the page itself declares, where it does and that is true."""
    declared = _CHARSET.search(data[:4096])
    if declared:
        try:
            return data.decode(declared.group(1).decode("ascii"))
        except (LookupError, UnicodeError):
            pass
    return decode(data)


def _pieces(body: "LexborNode") -> list[str]:
    """The text and marks around blocks, walked without recursion: pages nest deeper than Python's stack."""
    pieces: list[str] = []
    todo: list[LexborNode | str] = [body]
    while todo:
        node = todo.pop()
        if isinstance(node, str):
            pieces.append(node)
        elif node.tag == "-text":
            pieces.append(re.sub(r"[\s\x00-\x04]+", " ", node.text(deep=False)))
        elif node.tag == "pre":
            pieces += [_PARAGRAPH, _AS_IS, re.sub(r"[\x00-\x04]", "", node.text()).strip("\n"), _AS_IS, _PARAGRAPH]
        else:
            tag = node.tag or ""
            pieces += [_BREAKS.get(tag, ""), _OPENERS.get(tag, "")]
            todo.append(_BREAKS.get(tag, ""))
            todo.extend(reversed(list(node.iter(include_text=True))))
    return pieces


def _tidy(pieces: list[str]) -> str:
    """Joined; outside `pre` a run of spaces and marks is the strongest of them."""
    parts = "".join(pieces).split(_AS_IS)
    parts[::2] = [_RUN.sub(_strongest, part) for part in parts[::2]]
    return "".join(parts).strip()


def _strongest(run: re.Match[str]) -> str:
    before, item, _ = run.group().partition(_ITEM)
    mark = next((m for m in (_PARAGRAPH, _LINE, "\t") if m in before), " ")
    return {_PARAGRAPH: "\n\n", _LINE: "\n"}.get(mark, mark) + ("- " if item else "")


READER = Reader(id="html", claims=claims, read=read)
