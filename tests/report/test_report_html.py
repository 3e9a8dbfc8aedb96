"""The page in one file: self-contained, escaped, complete."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from ragclinic import report
from ragclinic.diagnosis.say import say
from ragclinic.diagnosis.types import Remedy, StageShare
from ragclinic.errors import BadInput
from ragclinic.report.bars import slots
from ragclinic.report.charts import chart_data
from ragclinic.report.html import data_block, render, write_page
from ragclinic.report.page import FlameNode, Page, PriceTag, Segment
from ragclinic.report.text import Lang, Words

VENDOR = Path(report.__file__).parent / "vendor"
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`{{7*7}}<!--\u202e\x00"


class Document(HTMLParser):
    """Tags with their attributes, the text of scripts and styles, and all other text."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.text = ""
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        inside = self.tags[-1][0] if self.tags else ""
        if inside == "script" and self.cdata_elem:
            self.scripts.append(data)
        elif inside == "style" and self.cdata_elem:
            self.styles.append(data)
        else:
            self.text += data


def page_data(source: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', source, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_page_loads_nothing(page: Page, lang: Lang) -> None:
    """No tag and no style names a place outside the file, and the policy forbids it besides."""
    document = Document(render(page, lang))
    for tag, attributes in document.tags:
        for name in ("src", "href", "action", "data", "poster", "srcset"):
            assert (attributes.get(name) or "#").startswith(("#", "data:")), (tag, attributes)
    styles = "".join(document.styles) + "".join(a.get("style") or "" for _, a in document.tags)
    assert "@import" not in styles
    assert "url(" not in styles
    policy = next(a["content"] for _, a in document.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none';")


def test_policy_allows_exactly_the_scripts_of_the_page(page: Page) -> None:
    """Each script's hash is listed; an injected one would not run."""
    source = render(page)
    policy = re.search(r"script-src ([^\"]*)", source)
    assert policy is not None
    scripts = re.findall(r"<script>(.*?)</script>", source, re.DOTALL)
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts]
    assert policy[1].replace("&#39;", "'").split() == hashes
    assert len(hashes) == 4


def hostile_page(page: Page) -> Page:
    assert page.prompt is not None
    assert page.pointer is not None
    finding = replace(
        page.diagnosis.findings[0],
        evidence=(HOSTILE,),
        variant=HOSTILE,
        signals_used=(HOSTILE,),
        remedy=Remedy({"llm.model": HOSTILE}, HOSTILE),
    )
    missing = replace(page.diagnosis.missing_signals[0], signal=HOSTILE, how=HOSTILE)
    diagnosis = replace(page.diagnosis, findings=(finding,), missing_signals=(missing,), notes=(HOSTILE,))
    return replace(
        page,
        source=HOSTILE,
        diagnosis=diagnosis,
        before=replace(
            page.before,
            budget=(StageShare(HOSTILE, 1.0, 1.0),),
            flame=FlameNode(HOSTILE, 2.0, (FlameNode(HOSTILE, 1.0),)),
        ),
        prompt=replace(
            page.prompt,
            question=HOSTILE,
            before=(Segment(HOSTILE, "context", kept=False, why=HOSTILE), Segment(HOSTILE, "context")),
        ),
        prices=(replace(page.prices[0], doc=HOSTILE),),
        pointer=replace(page.pointer, common=HOSTILE, first=HOSTILE, second=HOSTILE),
        facts=(replace(page.facts[0], label=HOSTILE, value=HOSTILE),),
    )


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_hostile_text_is_text_everywhere(page: Page, lang: Lang) -> None:
    """Whatever a document, a question or a file name holds, no tag, attribute or script comes of it."""
    source = render(hostile_page(page), lang)
    document = Document(source)
    assert [a.get("type") for tag, a in document.tags if tag == "script"] == [
        "application/json",
        None,
        None,
        None,
        None,
    ]
    assert "img" not in {tag for tag, _ in document.tags}
    assert not [a for _, a in document.tags if any(name.startswith("on") for name in a)]
    assert document.text.count("alert(1)") >= 15
    assert "{{7*7}}" in document.text
    assert not set(source) & {"\u202e", "\x00"}
    source.encode("utf-8")
    assert "alert(1)" in page_data(source)["flame"]["before"]["name"]


def test_data_block_is_sorted_compact_json_without_angle_brackets(page: Page) -> None:
    """It reads back as the very data, and no text in it can end the script."""
    assert page.after is not None
    data = chart_data(page, slots([page.before, page.after]), Words("en"))
    block = str(data_block(data))
    assert json.loads(block) == data == page_data(render(page))
    assert block == json.dumps(data, sort_keys=True, separators=(",", ":"))
    assert "<" not in data_block({"a": HOSTILE})
    assert json.loads(data_block({"a": HOSTILE})) == {"a": HOSTILE}


@pytest.mark.parametrize(("lang", "tag"), [("en", "en"), ("zh", "zh-Hans")])
def test_page_speaks_one_language(page: Page, lang: Lang, tag: str) -> None:
    """Its language is declared, and every heading is of its table."""
    source = render(page, lang)
    assert f'<html lang="{tag}">' in source
    words = Words(lang)
    for section in (
        "budget",
        "findings",
        "heat",
        "latency",
        "flame",
        "prompt",
        "price",
        "pointer",
        "missing",
        "measured",
    ):
        assert f">{words(f'{section}.heading')}</h2>" in source


def test_sections_stand_in_the_order_of_a_person_on_call(page: Page) -> None:
    """Headline first, how it was measured last."""
    charts, ours = ("heat-map", "latency", "flame"), ("prompt", "price", "pointer")
    headings = re.findall(r'<h[12] id="([a-z-]+)"', render(page))
    assert headings == ["headline", "budget", "findings", *charts, *ours, "missing", "measured"]


def test_a_page_alone_leaves_out_what_it_does_not_have(page_alone: Page) -> None:
    """No after, no prompt, no price tags: no empty sections and no before/after words."""
    source = render(page_alone)
    headings = re.findall(r'<h[12] id="([a-z-]+)"', source)
    assert headings == ["headline", "budget", "findings", "heat-map", "latency", "flame", "missing", "measured"]
    assert "flame-after" not in re.sub(r"<script>.*?</script>", "", source, flags=re.DOTALL)


def test_a_page_of_almost_nothing_renders(page_alone: Page) -> None:
    """An unknown diagnosis has a page too, without charts and their scripts."""
    diagnosis = replace(
        page_alone.diagnosis, verdict="unknown", latency_ms=None, budget=(), findings=(), missing_signals=()
    )
    bare = replace(
        page_alone,
        diagnosis=diagnosis,
        plane=(),
        before=replace(page_alone.before, budget=(), total_ms=(), ttft_ms=(), flame=None),
    )
    source = render(bare)
    assert re.findall(r'<h[12] id="([a-z-]+)"', source) == ["headline", "findings", "measured"]
    assert len(source) < 40_000
    assert "The signals do not tell where the time goes." in source


def test_the_numbers_are_in_tables_without_any_script(page: Page) -> None:
    """Who cannot see the charts reads the same numbers."""
    text = re.sub(r"<script.*?</script>", "", render(page), flags=re.DOTALL)
    for number in ("34.9 s", "3.8 s", "29.9 s", "86%", "83%", "20.3 s", "412 MB·s", "3,912", "2,604"):
        assert number in text


def test_vendored_files_are_the_ones_documented() -> None:
    """Each file has the hash of VENDORED.md, each package its licence text."""
    document = (VENDOR / "VENDORED.md").read_text("utf-8")
    files = dict(re.findall(r"\| `([^`]+)` \|[^|]+\|[^|]+\| `([0-9a-f]{64})` \|", document))
    assert set(files) == {p.name for p in VENDOR.iterdir() if p.suffix in (".js", ".css")}
    for name, digest in files.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest
    licences = re.findall(r"\[text\]\((licenses/[^)]+)\)", document)
    assert {f"licenses/{p.name}" for p in (VENDOR / "licenses").iterdir()} == set(licences)
    assert all((VENDOR / path).stat().st_size > 300 for path in licences)


def test_sentences_that_know_chinese_say_it_on_the_page(page: Page) -> None:
    """Evidence, remedy, signals and notes come in the page's language."""
    told = say("lost tokens", "丢失的 token")
    finding = replace(page.diagnosis.findings[0], evidence=(told,), remedy=Remedy({}, told))
    diagnosis = replace(page.diagnosis, findings=(finding,), notes=(told,))
    zh, en = render(replace(page, diagnosis=diagnosis), "zh"), render(replace(page, diagnosis=diagnosis), "en")
    assert (zh.count("丢失的 token"), zh.count("lost tokens")) == (3, 0)
    assert (en.count("丢失的 token"), en.count("lost tokens")) == (0, 3)


def test_price_tags_show_unknown_as_unknown(page: Page) -> None:
    """Without a latency model, texts or a known size of the cache there is a dash, not a zero."""
    bare = PriceTag(rank=None, doc=None, tokens=None, prefill_ms=None, kv_byte_seconds=None, overlap_tokens=None)
    source = render(replace(page, prices=(bare,)))
    row = source.split('id="price"')[1].split("<tbody>")[1].split("</tbody>")[0]
    assert row.count("–") == 7
    assert "cannot tell" in row


def test_page_is_written_whole_or_not_at_all(page_alone: Page, tmp_path: Path) -> None:
    """Missing folders are made; a place that cannot be written to is one clear line and leaves nothing."""
    write_page(page_alone, tmp_path / "new" / "report.html", "zh")
    assert (tmp_path / "new" / "report.html").read_text("utf-8") == render(page_alone, "zh")
    (tmp_path / "file").write_text("")
    with pytest.raises(
        BadInput, match=r"file/report\.html: .*; expected a place to write a report to; choose another"
    ):
        write_page(page_alone, tmp_path / "file" / "report.html")
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["file", "new", "report.html"]
