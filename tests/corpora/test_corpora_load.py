"""The demo corpora and their questions."""

import re
from pathlib import Path

import pytest

from ragclinic.corpora import Corpus, Lang, Question, load
from ragclinic.corpora.documents import chinese, english
from ragclinic.corpora.questions import Entry, entries, place
from ragclinic.corpora.records import Document
from ragclinic.errors import BadInput

LANGS: tuple[Lang, ...] = ("en", "zh")
COUNTS: dict[Lang, int] = {"en": 40, "zh": 20}
REPEATS: dict[Lang, int] = {"en": 6, "zh": 3}


@pytest.fixture(params=LANGS)
def corpus(request: pytest.FixtureRequest) -> Corpus:
    lang: Lang = request.param
    return load(lang)


def bare(text: str) -> str:
    """Letters and digits only, lower case: what an identical repeat keeps."""
    return "".join(c for c in text.lower() if c.isalnum())


def pieces(text: str) -> list[str]:
    """Words of English, neighbouring characters of Chinese."""
    if re.search("[\u4e00-\u9fff]", text):
        plain = bare(text)
        return [plain[i : i + 2] for i in range(len(plain) - 1)]
    return re.findall(r"\w+", text.lower())


def entry(**changes: object) -> Entry:
    return {"id": "q", "text": "?", "doc": "a", "evidence": "two words", "answer": "two", "session": "s"} | changes


def test_every_question_of_the_file_is_asked_or_named_as_skipped(corpus: Corpus) -> None:
    """40 English and 20 Chinese questions; the Chinese pages are our own, so that none is ever skipped."""
    assert len(corpus.questions) + len(corpus.skipped) == COUNTS[corpus.lang]
    assert corpus.lang == "en" or corpus.skipped == ()


def test_the_english_evidence_is_in_this_python() -> None:
    """A new Python may reword a sentence or two; more means that the question file needs a look."""
    assert len(load("en").skipped) <= 4


def test_evidence_stands_in_its_document_as_it_is(corpus: Corpus) -> None:
    """Evidence is an exact span, so that it can be looked for in a prompt."""
    texts = {document.id: document.text for document in corpus.documents}
    for question in corpus.questions:
        assert question.evidence in texts[question.doc], question.id


def test_evidence_is_a_sentence_or_two(corpus: Corpus) -> None:
    """60 to 300 characters: long enough to answer alone, short enough to be kept or lost as one."""
    for question in corpus.questions:
        assert 60 <= len(" ".join(question.evidence.split())) <= 300, question.id


def test_the_gold_answer_follows_from_the_evidence(corpus: Corpus) -> None:
    """At least three quarters of the answer's words stand in the evidence."""
    for question in corpus.questions:
        wanted = pieces(question.answer)
        known = set(pieces(question.evidence))
        assert sum(piece in known for piece in wanted) >= 0.75 * len(wanted), question.id


def test_ids_of_documents_and_questions_are_unique(corpus: Corpus) -> None:
    """An id names one thing."""
    for ids in ([d.id for d in corpus.documents], [q.id for q in corpus.questions]):
        assert len(set(ids)) == len(ids)


def test_documents_have_a_title_and_text(corpus: Corpus) -> None:
    """No empty page, and a title without markup."""
    for document in corpus.documents:
        assert document.text.strip()
        assert document.title.strip()
        assert not document.title.startswith("#")


def test_same_as_points_to_an_earlier_question_with_the_same_evidence(corpus: Corpus) -> None:
    """A repeat comes after what it repeats, and is answered by the same span."""
    seen: dict[str, Question] = {}
    for question in corpus.questions:
        if question.same_as is not None:
            earlier = seen[question.same_as]
            assert earlier.same_as is None
            assert (earlier.doc, earlier.evidence, earlier.answer) == (
                question.doc,
                question.evidence,
                question.answer,
            )
        seen[question.id] = question


def test_some_questions_repeat_and_some_rephrase(corpus: Corpus) -> None:
    """As users do; one identical repeat is among the first eight, which is all a slow machine asks."""
    texts = {q.id: q.text for q in corpus.questions}
    repeats = [q for q in corpus.questions if q.same_as is not None]
    identical = [q for q in repeats if bare(q.text) == bare(texts[q.same_as or ""])]
    assert len(repeats) == REPEATS[corpus.lang]
    assert 0 < len(identical) < len(repeats)
    assert any(q in identical for q in corpus.questions[:8])
    assert all(q.text != texts[q.same_as or ""] for q in identical)


def test_only_marked_questions_are_alike(corpus: Corpus) -> None:
    """A repeat that is not marked would make the cache look better than it is."""
    first: dict[str, str] = {}
    for question in corpus.questions:
        earlier = first.setdefault(bare(question.text), question.id)
        assert earlier in (question.id, question.same_as)


def test_sessions_are_chats_of_a_few_questions_in_a_row(corpus: Corpus) -> None:
    """Three to five neighbours share a session and no session is taken up again."""
    order = [q.session for q in corpus.questions]
    starts = [s for i, s in enumerate(order) if i == 0 or order[i - 1] != s]
    assert len(set(starts)) == len(starts)
    assert all(3 <= order.count(s) <= 5 for s in starts)


def test_a_question_whose_evidence_is_gone_is_skipped_and_named() -> None:
    """Another Python may lack a topic or word it otherwise."""
    documents = [Document("a", "A", "these two\n   words stand here")]
    asked = [entry(id="found"), entry(id="gone", evidence="three words"), entry(id="no-doc", doc="b")]
    questions, skipped = place(asked, documents)
    assert [(q.id, q.evidence) for q in questions] == [("found", "two\n   words")]
    assert skipped == ("gone", "no-doc")


@pytest.mark.parametrize("lang", LANGS)
def test_entries_with_same_as_are_filled_from_the_earlier_one(lang: Lang) -> None:
    """A repeat states its text and session only; there is one place to mend its evidence."""
    assert all(e.keys() >= {"id", "text", "doc", "evidence", "answer", "session"} for e in entries(lang))


def test_a_python_without_the_topics_says_what_to_do() -> None:
    """Some distributions leave pydoc's data out."""
    with pytest.raises(BadInput, match=r"^no\.such\.topics: not in this Python; expected .*--lang zh$"):
        english("no.such.topics")


def test_a_missing_handbook_names_the_places_it_looked_at(tmp_path: Path) -> None:
    """Only a broken installation lacks it."""
    with pytest.raises(BadInput, match=rf"^{re.escape(str(tmp_path))}: no handbook here; .*reinstall"):
        chinese([tmp_path])


def test_the_handbook_of_an_installed_package_is_found_before_the_checkout(tmp_path: Path) -> None:
    """A wheel carries the pages beside the module; the index page is not a document."""
    for name, text in {"README.md": "# Index", "causes/a.md": "# A: 甲\n\n正文", "b.md": "# B\n"}.items():
        page = tmp_path / "zh" / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, "utf-8")
    documents = chinese([tmp_path / "zh", tmp_path / "elsewhere"])
    assert [(d.id, d.title) for d in documents] == [("b", "B"), ("causes/a", "A: 甲")]


def test_spans_that_also_answer_stand_in_some_document(corpus: Corpus) -> None:
    with_others = [q for q in corpus.questions if q.also]
    assert with_others
    for question in with_others:
        for span in question.spans:
            assert any(span in d.text for d in corpus.documents), question.id


def test_a_span_that_also_answers_may_be_missing_from_this_corpus() -> None:
    asked = [entry(also=["other words", "not there"])]
    questions, _ = place(asked, [Document("a", "A", "two words"), Document("b", "B", "other\nwords")])
    assert questions[0].spans == ("two words", "other\nwords")
