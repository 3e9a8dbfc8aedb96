"""Files become documents by what is in them; what cannot be read says why and what to do."""

import io
from pathlib import Path

import pypdf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from ragclinic.engine.documents import CannotRead, read, reader_of
from ragclinic.engine.documents.sources import given_sources, sources_in
from ragclinic.errors import BadInput

CHINESE = "大模型推理的显存压力，主要来自键值缓存。"
TRADITIONAL = "大模型推理的顯存壓力，主要來自鍵值快取。"
FRENCH = "Un café très chaud, près de l'été à Orléans."


def make_pdf(text: str = "The valve opens at 40 bar.", title: str = "Manual", lock: str = "") -> bytes:
    """A PDF of one page with this text on it."""
    writer = pypdf.PdfWriter()
    page = writer.add_blank_page(300, 300)
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    page[NameObject("/Resources")] = DictionaryObject(
        {NameObject("/Font"): DictionaryObject({NameObject("/F1"): writer._add_object(font)})}
    )
    content = DecodedStreamObject()
    content.set_data(f"BT /F1 12 Tf 20 200 Td ({text}) Tj ET".encode() if text else b"")
    page[NameObject("/Contents")] = writer._add_object(content)
    writer.add_metadata({"/Title": title})
    if lock:
        writer.encrypt(lock, algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def text_or_refusal(name: str, data: bytes) -> str:
    """The text of a file, or why there is none; any other error is a fault of the reader."""
    try:
        return read(name, data).text
    except CannotRead as refusal:
        return str(refusal)


@pytest.mark.parametrize(
    ("name", "head", "expected"),
    [
        ("a.pdf", b"%PDF-1.7", "pdf"),
        ("a.txt", b"%PDF-1.7", "pdf"),
        ("a.txt", b"\xef\xbb\xbf <!-- c --> <!DOCTYPE html>", "html"),
        ("noname", b"<?xml version='1.0'?>\n<html>", "html"),
        ("a.htm", b"<p>a fragment", "html"),
        ("a.MD", b"# Title", "markdown"),
        ("a.rst", b"Title\n=====", "text"),
        ("Makefile", b"all:", "text"),
    ],
)
def test_content_decides_before_the_suffix(name: str, head: bytes, expected: str) -> None:
    assert reader_of(name, head).id == expected


@pytest.mark.parametrize("text", [CHINESE, TRADITIONAL, "plain", "emoji 👍 and €"], ids=ascii)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_unicode_in_every_form_is_read_alike(text: str, encoding: str) -> None:
    assert read("a.txt", text.encode(encoding)).text == text


@pytest.mark.parametrize("text", [CHINESE, TRADITIONAL, "plain"], ids=ascii)
def test_gb18030_is_recognised(text: str) -> None:
    encoding = "gb18030"
    assert read("a.txt", text.encode(encoding)).text == text


def test_western_text_is_not_taken_for_chinese() -> None:
    assert read("a.txt", FRENCH.encode("cp1252")).text == FRENCH


def test_line_ends_are_the_same_from_every_system() -> None:
    assert read("a.txt", b"a\r\nb\rc\n").text == "a\nb\nc\n"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (
            b"\x89PNG\r\n\x1a\n\0\0",
            "a PNG picture; expected Markdown, text, HTML or PDF; convert it or leave it out",
        ),
        (b"PK\x03\x04\x14\0", "a zip archive or an Office file; expected"),
        (b"abc\0def", "binary data; expected"),
        (bytes(range(1, 32)) * 9, "binary data; expected"),
        (
            b"ok so far \x81\x8d\x8f\x90",
            "byte 10 is not UTF-8, nor is the file GB18030; expected text; save it as UTF-8",
        ),
        (b" \n\t ", "no text in it; expected some; fill it or leave it out"),
        (b"", "no text in it"),
    ],
    ids=["png", "zip", "nul", "control codes", "no encoding", "white space", "empty"],
)
def test_what_is_no_text_says_so(data: bytes, reason: str) -> None:
    with pytest.raises(CannotRead) as caught:
        read("a.txt", data)
    assert str(caught.value).startswith(reason)


def test_text_that_only_begins_like_a_program_is_text() -> None:
    assert read("a.txt", b"MZ is what a DOS program begins with.").text.startswith("MZ is")


def test_markdown_stays_as_it_is_below_its_front_matter() -> None:
    text = "# The *KV* `cache`\n\n| a | b |\n|---|---|\n\n```py\nx = 1\n```\n"
    found = read("guide/kv.md", f"---\ntags: [a]\n---\n{text}".encode())
    assert (found.id, found.title, found.text) == ("guide/kv.md", "The KV cache", text)
    assert read("a.md", b"---\ntitle: 'Named'\n---\n# Other\n").title == "Named"
    assert read("guide/plain.md", b"no heading").title == "plain"


def test_html_reads_as_a_visitor_reads_it() -> None:
    page = """<!doctype html><html><head><title> The
      guide </title><style>p {}</style><script>run()</script></head><body><nav>Home</nav>
      <h2>Valves</h2><p>Open <b>slow</b>ly,
      then<br>wait.</p><ul><li>one<li><p>two</p></ul><table><tr><th>bar<th>time<tr><td>40<td>2 s</table>
      <pre>a:\n    b</pre><p>&lt;end&gt; \u4f60</p><footer>Imprint</footer></body></html>"""
    found = read("a.html", page.encode())
    assert found.title == "The guide"
    assert found.text == (
        "## Valves\n\nOpen slowly, then\nwait.\n\n- one\n- two\n\nbar\ttime\n40\t2 s\n\na:\n    b\n\n<end> 你"
    )


def test_html_in_the_encoding_it_declares() -> None:
    assert read("a.html", f"<meta charset=gbk><p>{CHINESE}".encode("gbk")).text == CHINESE
    assert read("a.html", f"<meta charset=nonsense><p>{CHINESE}".encode()).text == CHINESE


@settings(deadline=None)
@given(st.text(alphabet="<>/abhlp reuid=\"'&;!-\n\x01\x02\x03\x04你", max_size=200))
def test_any_html_is_read_or_refused(page: str) -> None:
    assert not set("\x01\x02\x03\x04") & set(text_or_refusal("a.html", page.encode()))


def test_html_of_absurd_depth_or_emptiness_is_read_too() -> None:
    assert read("a.html", b"<div>" * 4000 + b"deep").text == "deep"
    assert read("a.html", b"near" + b"<br>" * 30_000 + b"far").text == "near\nfar"


def test_a_pdf_gives_its_text_and_title() -> None:
    found = read("manual.pdf", make_pdf())
    assert (found.title, found.text) == ("Manual", "The valve opens at 40 bar.")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (make_pdf()[:600], "PDF cut off: no end mark; expected a whole file; download or copy it again"),
        (make_pdf()[:300] + b"\n%%EOF", "damaged PDF ("),
        (make_pdf(lock="x"), "PDF with a password; expected an open one"),
        (make_pdf(text=""), "PDF without text, pictures only; expected text; run OCR on it first"),
        (b"hello", "begins with b'hello'; expected a PDF"),
    ],
    ids=["cut off", "damaged", "password", "scan", "no PDF"],
)
def test_a_pdf_that_cannot_be_read_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(CannotRead) as caught:
        read("a.pdf", data)
    assert str(caught.value).startswith(reason)


@settings(deadline=None)
@given(st.integers(0, len(make_pdf())), st.binary(max_size=40))
def test_a_pdf_damaged_anywhere_is_read_or_refused(at: int, garbage: bytes) -> None:
    data = make_pdf()
    assert text_or_refusal("a.pdf", data[:at] + garbage + data[at + len(garbage) :])


def test_a_folder_gives_its_files_in_order_without_hidden_ones_and_the_index(tmp_path: Path) -> None:
    for name in ("b.md", "a/z.txt", ".git/config", ".hidden", "index/meta.json", "指南.md"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("text")
    found = sources_in(tmp_path, leave_out=tmp_path / "index")
    assert [source.id for source in found] == ["a/z.txt", "b.md", "指南.md"]


def test_a_broken_link_and_a_file_too_large_say_so_when_loaded(tmp_path: Path) -> None:
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nowhere")
    with (tmp_path / "big.txt").open("wb") as file:
        file.truncate(200_000_000)  # sparse: it takes no room
    big, gone = sources_in(tmp_path)
    with pytest.raises(CannotRead, match="200 MB; expected at most 50 MB; split it or raise --max-file-mb"):
        big.load()
    with pytest.raises(CannotRead, match="not a file; expected a file; mend or remove the link"):
        gone.load()


def test_a_folder_that_is_empty_or_absent_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no files in it; expected Markdown, text, HTML or PDF; put some there"):
        sources_in(tmp_path)
    with pytest.raises(BadInput, match="nowhere: not there; expected a folder of documents; check the path"):
        sources_in(tmp_path / "nowhere")


def test_two_given_documents_of_one_id_are_refused() -> None:
    page = read("a.txt", b"text")
    with pytest.raises(BadInput, match=r"document 'a.txt': given twice"):
        given_sources([page, page])
    with pytest.raises(BadInput, match="documents: none given"):
        given_sources([])
