"""Prompts out of flat attributes: the parts that the model read, in order.

A message list tells roles only. Where the span carries its template (`llm.prompt_template.*`), the last message is
cut at the template's variables, which is the one public way to know where instructions end and a chunk begins.
"""

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

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
MAX_MESSAGES = 2**17

_VARIABLE = re.compile(r"\{\{?\s*([A-Za-z_]\w*)\s*\}\}?")
_CONTEXT_NAMES = re.compile(r"context|document|passage|chunk|source|reference|knowledge|summaries", re.IGNORECASE)
_QUESTION_NAMES = re.compile(r"question|query|input|user_message", re.IGNORECASE)
_HISTORY_NAMES = re.compile(r"history|messages|memory|conversation", re.IGNORECASE)


class Piece(NamedTuple):
    """A stretch of a prompt and what it is."""

    role: PartRole
    text: str


class _Messages(NamedTuple):
    """Messages of many spans in order: whose, what each is, its text, and whether it is the last of the user's."""

    owner: NDArray[np.int64]
    role: pa.Array
    text: pa.Array
    is_question: NDArray[np.bool_]


def part_table(
    triples: Triples,
    roles: list[Role],
    templates: Mapping[int, tuple[str, str]],
    trace_id: pa.Array,
    span_id: pa.Array,
) -> pa.Table:
    """The parts of all prompts of a batch; `triples` holds messages only, `templates` those of some spans."""
    said = _cut_questions(_messages(triples, roles), templates)
    filled = pc.greater(pc.binary_length(said.text), 0)
    owner = said.owner[np.asarray(filled)]
    text, role = said.text.filter(filled), said.role.filter(filled)
    owners = pa.array(owner)
    columns = {
        "trace_id": trace_id.take(owners),
        "span_id": span_id.take(owners),
        "position": _positions(owner),
        "role": role,
        "tokens": pc.max_element_wise(pc.divide(pc.binary_length(text), BYTES_PER_TOKEN), 1),
        "text": text,
        "token_keys": pa.nulls(len(owner)),
        "rank": pa.nulls(len(owner)),
    }
    schema = TABLES["parts"]
    arrays = [columns[f.name] for f in schema]
    made = [
        a.cast(f.type) if isinstance(a, pa.Array) else pa.array(a, f.type)
        for a, f in zip(arrays, schema, strict=True)
    ]
    return pa.table(made, schema=schema)


def cut(text: str, template: str, variables: str) -> list[Piece]:
    """The text cut where the template has its variables (JSON); whole where it does not fit the template."""
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


def _messages(triples: Triples, roles: list[Role]) -> _Messages:
    """One row a message, whatever generations of names its role and content came under."""
    number = np.array([r.number for r in roles], dtype=np.int64)[triples.key] + 1
    is_role = np.array([r.field == "role" for r in roles])[triples.key]
    found, row = np.unique(triples.owner * MAX_MESSAGES + number, return_inverse=True)
    owner, numbers = found // MAX_MESSAGES, found % MAX_MESSAGES
    who = _last(triples.text, row, is_role, len(found))
    # System instructions stand before the first message and say no role.
    who = pc.fill_null(pc.if_else(pa.array(numbers == 0), "system", who), "user")
    asks = np.asarray(pc.is_in(who, pa.array(sorted(USER_ROLES))))
    role = pc.if_else(
        pc.is_in(who, pa.array(sorted(SYSTEM_ROLES))),
        "system",
        pc.if_else(pc.is_in(who, pa.array(sorted(CONTEXT_ROLES))), "context", "history"),
    )
    question = _last_of_each(owner, asks)
    role = pc.if_else(pa.array(question), "question", role)
    return _Messages(owner, role, _contents(triples.text, row, ~is_role, len(found)), question)


def _last(text: pa.Array, row: NDArray[np.int64], mask: NDArray[np.bool_], rows: int) -> pa.Array:
    """For each row the last value that `mask` chooses, null where there is none."""
    source = np.full(rows, -1, dtype=np.int64)
    source[row[mask]] = np.flatnonzero(mask)
    return text.take(pa.array(source, mask=source < 0))


def _contents(text: pa.Array, row: NDArray[np.int64], mask: NDArray[np.bool_], rows: int) -> pa.Array:
    """The text of each message. Several contents make one text; the same one under two names counts once."""
    single = pc.fill_null(_last(text, row, mask, rows), "")
    several = np.flatnonzero(np.bincount(row[mask], minlength=rows) > 1)
    if not len(several):
        return single
    joined: dict[int, str] = dict.fromkeys(several.tolist(), "")
    for index in np.flatnonzero(mask & np.isin(row, several)).tolist():
        at, more = int(row[index]), text[index].as_py()
        before = joined[at]
        joined[at] = before if more in before else f"{before}\n{more}" if before else more
    chosen = np.zeros(rows, dtype=np.bool_)
    chosen[several] = True
    return pc.replace_with_mask(
        single, pa.array(chosen), pa.array([joined[i] for i in several.tolist()], pa.string())
    )


def _last_of_each(owner: NDArray[np.int64], mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which rows are the last of their owner among those that `mask` chooses; owners stand together."""
    chosen = np.flatnonzero(mask)
    last = np.zeros(len(owner), dtype=np.bool_)
    if len(chosen):
        ends = np.append(owner[chosen][1:] != owner[chosen][:-1], True)
        last[chosen[ends]] = True
    return last


def _cut_questions(said: _Messages, templates: Mapping[int, tuple[str, str]]) -> _Messages:
    """The messages with those questions cut whose template is known."""
    at = [i for i in np.flatnonzero(said.is_question).tolist() if int(said.owner[i]) in templates]
    if not at:
        return said
    whole = {i: cut(said.text[i].as_py(), *templates[int(said.owner[i])]) for i in at}
    source = np.concatenate([np.full(len(whole.get(i, ("",))), i) for i in range(len(said.owner))])
    role, text = said.role.take(pa.array(source)).to_pylist(), said.text.take(pa.array(source)).to_pylist()
    for i, pieces in whole.items():
        first = int(np.searchsorted(source, i))
        role[first : first + len(pieces)] = [piece.role for piece in pieces]
        text[first : first + len(pieces)] = [piece.text for piece in pieces]
    return _Messages(
        said.owner[source], pa.array(role, pa.string()), pa.array(text, pa.string()), said.is_question[source]
    )


def _positions(owner: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1, 2 ... within each owner."""
    index = np.arange(len(owner))
    begins = np.append(True, owner[1:] != owner[:-1])[: len(owner)]
    return index - np.maximum.accumulate(np.where(begins, index, 0))


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
