"""The demo corpora that are on every machine, with questions whose evidence is known.

English is the Python language reference inside CPython itself, Chinese the project's own handbook. Each question
has the exact span that answers it, so that what a prompt kept of the evidence can be counted.
"""

from ragclinic.corpora.documents import chinese, english
from ragclinic.corpora.questions import entries, place
from ragclinic.corpora.records import Corpus, Document, Lang, Question
from ragclinic.corpora.spans import find_span

__all__ = ["Corpus", "Document", "Lang", "Question", "find_span", "load"]


def load(lang: Lang) -> Corpus:
    """The demo corpus of this language.

    Raises:
        BadInput: the documents are not on this machine.
    """
    documents = english() if lang == "en" else chinese()
    questions, skipped = place(entries(lang), documents)
    return Corpus(lang, documents, questions, skipped)
