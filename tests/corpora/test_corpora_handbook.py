"""The Chinese handbook holds what it promises: pages, sections, links, and sums that are right."""

import re
from pathlib import Path

import pytest

from ragclinic.engine.settings import Settings

HANDBOOK = Path(__file__).resolve().parents[2] / "docs" / "zh"
CAUSES = (
    "context-overfull",
    "context-redundant",
    "overlap-waste",
    "tail-chunks-idle",
    "prefix-unstable",
    "answer-recomputed",
    "not-streaming",
    "weights-reloaded",
    "prefill-bound",
    "decode-bound",
    "queue-saturated",
    "healthy",
)
SECTIONS = ("现象", "怎样变成秒", "手工确认", "容易误判", "对策与代价", "算例", "相关页面")
PAGES = sorted(HANDBOOK.rglob("*.md"))
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")
SETTING = re.compile(rf"`((?:{'|'.join(Settings.model_fields)})\.\w+)(?=[` ])")
NUMBER = r"\(?\d[\d,]*(?:\.\d+)?\)?"
SUM = re.compile(rf"(?<![\d.,/×÷−+–-])({NUMBER}(?: ?[×÷−+/] ?{NUMBER})+) ([=≈]) (\d[\d,]*(?:\.\d+)?)")


def page_id(page: Path) -> str:
    return page.relative_to(HANDBOOK).as_posix()


def result(expression: str) -> float:
    """The value of a sum written with × ÷ − + and thousands commas."""
    plain = expression.replace(",", "")
    for printed, python in (("×", "*"), ("÷", "/"), ("−", "-")):
        plain = plain.replace(printed, python)
    assert re.fullmatch(r"[\d.()*/+\- ]+", plain), expression
    return float(eval(plain))  # noqa: S307 - digits and operators only, checked above


@pytest.mark.parametrize("cause", CAUSES)
def test_each_cause_has_a_page_with_all_its_sections(cause: str) -> None:
    """The page opens with the id and goes through the same steps as every other."""
    text = (HANDBOOK / "causes" / f"{cause}.md").read_text("utf-8")
    assert text.startswith(f"# {cause}：")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == list(SECTIONS)
    for section in text.split("\n## ")[1:]:
        assert len(section) > 40, section


def test_there_are_no_other_causes_and_at_least_twelve_ideas() -> None:
    """The index names what is detected here, no more and no less."""
    assert {p.stem for p in (HANDBOOK / "causes").iterdir()} == set(CAUSES)
    assert len(list((HANDBOOK / "concepts").glob("*.md"))) >= 12


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_to_pages_that_are_there(page: Path) -> None:
    """Relative links only, so that the pages can be read anywhere."""
    for target, _ in LINK.findall(page.read_text("utf-8")):
        assert (page.parent / target).resolve().is_file(), target


def test_the_index_links_every_page() -> None:
    """No page is an orphan."""
    linked = {target for target, _ in LINK.findall((HANDBOOK / "README.md").read_text("utf-8"))}
    assert linked == {page_id(p) for p in PAGES} - {"README.md"}


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_the_sums_on_a_page_are_right(page: Path) -> None:
    """Every `a × b ÷ c = d` is worked out again: `=` to the digits shown, `≈` within 3 %."""
    for expression, sign, shown in SUM.findall(page.read_text("utf-8")):
        stated = float(shown.replace(",", ""))
        half_digit = 0.5 * 10.0 ** -len(shown.partition(".")[2])
        slack = half_digit + 1e-9 if sign == "=" else max(half_digit, 0.03 * stated) + 1e-9
        assert abs(result(expression) - stated) <= slack, f"{expression} {sign} {shown}"


def test_the_sums_are_really_found() -> None:
    """A pattern that matches nothing would pass every page."""
    found = [m for p in PAGES for m in SUM.findall(p.read_text("utf-8"))]
    assert len(found) >= 100
    text = "KV：2 × 32 × 8 × 128 × 2 = 131072 字节，20 × 1,024 ÷ 2 ≈ 10240 块，1 + (10 − 4) ÷ 3 = 3"
    assert [result(e) for e, _, _ in SUM.findall(text)] == [131072, 10240, 3]


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_a_page_is_plain_markdown_of_a_readable_length(page: Path) -> None:
    """One title, closed code fences, a table row's cells equal in number, and neither a stub nor a book."""
    text = page.read_text("utf-8")
    assert text.count("```") % 2 == 0
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    assert len(re.findall(r"^# ", prose, re.MULTILINE)) == 1
    assert 1500 <= len(text) <= 4000
    for table in re.findall(r"(?:^\|.*\|\n)+", prose, re.MULTILINE):
        assert len({row.count("|") for row in table.splitlines()}) == 1, table


def test_settings_that_the_handbook_names_exist() -> None:
    """A remedy can be typed into a prescription as it is written here."""
    named = {name for page in PAGES for name in SETTING.findall(page.read_text("utf-8"))}
    assert named >= {"compiler.budget_tokens", "prompt.order", "cache.answers"}
    assert named <= Settings().flat().keys()
