"""Prompts out of flat attributes: the parts that the model read, in order.

A message list tells roles only. Where the span carries its template (`llm.prompt_template.*`), the last message is
cut at the template's variables, which is the one public way to know where instructions end and a chunk begins.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ragclinic.signals.readers.encode import Triples
from ragclinic.signals.readers.names import Role
from ragclinic.signals.records import PartRole
from ragclinic.signals.schema import TABLES

TEMPLATE = "llm.prompt_template.template"
VARIABLES = "llm.prompt_template.variables"
SYSTEM_ROLES = frozenset({"system", "developer"})
USER_ROLES = frozenset({"user", "human"})
CONTEXT_ROLES = frozenset({"tool", "function"})
BYTES_PER_TOKEN = 4
"""A rough count until the diagnosis cuts the text into units: four letters, or one and a third Chinese signs."""

_VARIABLE = re.compile(r"\{\{?\s*([A-Za-z_]\w*)\s*\}\}?")
_CONTEXT_NAMES = re.compile(r"context|document|passage|chunk|source|reference|knowledge|summaries", re.IGNORECASE)
_QUESTION_NAMES = re.compile(r"question|query|input|user_message", re.IGNORECASE)
_HISTORY_NAMES = re.compile(r"history|messages|memory|conversation", re.IGNORECASE)


class Piece(NamedTuple):
    """A stretch of a prompt and what it is."""

    role: PartRole
    text: str


def part_table(
    triples: Triples,
    roles: list[Role],
    templates: Mapping[int, tuple[str, str]],
    trace_id: pa.Array,
    span_id: pa.Array,
) -> pa.Table:
    """The parts of all prompts of a batch; `triples` holds messages only, `templates` those of some spans."""
    rows = [
        (owner, position, piece)
        for owner, said in _by_span(triples, roles)
        for position, piece in enumerate(pieces(said, templates.get(owner)))
    ]
    owners = pa.array([owner for owner, _, _ in rows], pa.int64())
    columns = {
        "trace_id": trace_id.take(owners),
        "span_id": span_id.take(owners),
        "position": [position for _, position, _ in rows],
        "role": [piece.role for _, _, piece in rows],
        "tokens": [_tokens(piece.text) for _, _, piece in rows],
        "text": [piece.text for _, _, piece in rows],
        "token_keys": pa.nulls(len(rows)),
        "rank": pa.nulls(len(rows)),
    }
    schema = TABLES["parts"]
    return pa.table([pa.array(columns[f.name], f.type) for f in schema], schema=schema)


def pieces(said: list[tuple[str, str]], template: tuple[str, str] | None = None) -> list[Piece]:
    """A prompt's pieces from its messages (role, text) and, where known, its template and variables (JSON)."""
    last_user = max((i for i, (role, _) in enumerate(said) if role in USER_ROLES), default=-1)
    found: list[Piece] = []
    for index, (role, text) in enumerate(said):
        if index == last_user:
            found.extend(_cut(text, *template) if template else [Piece("question", text)])
        else:
            found.append(Piece(_part_role(role), text))
    return [piece for piece in found if piece.text]


def _by_span(triples: Triples, roles: list[Role]) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """For each span its messages in order, as (role, text)."""
    texts = triples.text.to_pylist()
    order = np.argsort(triples.owner, kind="stable")
    spans: dict[int, dict[int, tuple[str, str]]] = {}
    for position in order.tolist():
        role = roles[triples.key[position]]
        said = spans.setdefault(int(triples.owner[position]), {})
        who, what = said.get(role.number, ("system" if role.number < 0 else "user", ""))
        value = texts[position]
        said[role.number] = (value, what) if role.field == "role" else (who, _added(what, value))
    for owner, said in spans.items():
        yield owner, [said[index] for index in sorted(said)]


def _added(text: str, more: str) -> str:
    """Several contents of one message make one text; the same one under two generations of names counts once."""
    return text if more in text else f"{text}\n{more}" if text else more


def _part_role(role: str) -> PartRole:
    if role in SYSTEM_ROLES:
        return "system"
    return "context" if role in CONTEXT_ROLES else "history"


def _cut(text: str, template: str, variables: str) -> list[Piece]:
    """The text cut where the template has its variables; whole where it does not fit the template."""
    values = _values(variables)
    # A chat template is printed with its roles ("Human: ..."): only what surrounds the variables must fit.
    found: list[Piece] = []
    position = 0
    for name in _VARIABLE.findall(template):
        value = values.get(name)
        start = text.find(value, position) if value else -1
        if value and start >= 0:
            found += [Piece("template", text[position:start]), Piece(_variable_role(name), value)]
            position = start + len(value)
    if not found:
        return [Piece("question", text)]
    return [*found, Piece("template", text[position:])]


def _values(variables: str) -> dict[str, str]:
    try:
        told = json.loads(variables)
    except (ValueError, RecursionError):
        return {}
    return {str(k): str(v) for k, v in told.items()} if isinstance(told, Mapping) else {}


def _variable_role(name: str) -> PartRole:
    if _CONTEXT_NAMES.search(name):
        return "context"
    if _HISTORY_NAMES.search(name):
        return "history"
    return "question" if _QUESTION_NAMES.search(name) else "volatile"


def _tokens(text: str) -> int:
    return max(1, len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)
