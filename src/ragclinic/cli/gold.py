"""Reads a file of questions with their evidence and gold answers."""

import tomllib
from pathlib import Path

from pydantic import BaseModel, ValidationError

from ragclinic.diagnosis.compare import Gold
from ragclinic.errors import BadInput
from ragclinic.signals.content import question_key


class _Question(BaseModel):
    text: str
    evidence: str
    answer: str
    also: list[str] = []


class _File(BaseModel):
    question: list[_Question]


def read_gold(path: Path) -> dict[str, Gold]:
    """Evidence and answer by question key.

    Raises:
        BadInput: the file is not there or not of this form.
    """
    try:
        questions = _File.model_validate(tomllib.loads(path.read_text("utf-8"))).question
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}; expected a TOML file; check the path") from error
    except (ValidationError, ValueError) as error:
        first = str(error).splitlines()[0]
        raise BadInput(
            f"{path}: {first}; expected [[question]] with text, evidence, answer and perhaps also; mend it"
        ) from error
    return {question_key(q.text): Gold((q.evidence, *q.also), q.answer) for q in questions}
