"""From a batch of spans of any system to the rows of a recording: spans, retrieved chunks, parts of prompts.

One place gives spans their meaning, whatever format they came in; a reader only unpacks.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ragclinic.signals.readers.checks import usable
from ragclinic.signals.readers.documents import chunk_table
from ragclinic.signals.readers.encode import Triples, attributes_json, join
from ragclinic.signals.readers.expand import EXPANSIONS, exception_text, from_events
from ragclinic.signals.readers.inventory import Inventory
from ragclinic.signals.readers.names import KEEP, Role, role_of
from ragclinic.signals.readers.prompts import TEMPLATE, VARIABLES, part_table
from ragclinic.signals.readers.reader import Origin, ReadLog, ReadOptions, Rows
from ragclinic.signals.readers.spans import SpanBuilder, SpanColumns, SpanRow, TripleBuilder
from ragclinic.signals.schema import TABLES

TENANT = "tenant.id"


class SpanReading:
    """Interprets the batches of one source, and says at its end which signals were not in it."""

    def __init__(self, origin: Origin, log: ReadLog, options: ReadOptions) -> None:
        self._origin, self._log, self._options = origin, log, options
        self._inventory = Inventory()

    def rows(self, columns: SpanColumns) -> Iterator[Rows]:
        """The tables of one batch; every span of it is counted in the log."""
        if not len(columns):
            return
        columns = usable(columns, self._origin, self._log)
        triples = _expanded(columns)
        roles = [role_of(name) for name in triples.names]
        yield Rows("spans", _span_table(columns, _kept(triples, roles, self._options.tenant)))
        chunks = triples.where(triples.of_keys(_of_use(roles, "document")))
        if len(chunks.owner):
            yield Rows(
                "chunks", self._inventory.chunks(chunk_table(chunks, roles, columns.trace_id, columns.span_id))
            )
        said = triples.where(triples.of_keys(_of_use(roles, "message")))
        if len(said.owner):
            yield Rows("parts", part_table(said, roles, _templates(triples), columns.trace_id, columns.span_id))
        self._inventory.spans(triples, messages=bool(len(said.owner)))

    def finish(self) -> None:
        """Tells the log what the source did not hold."""
        self._inventory.report(self._log)


def read_spans(
    rows: Iterable[tuple[Any, int]],
    parse: Callable[[Any, int], SpanRow],
    origin: Origin,
    log: ReadLog,
    options: ReadOptions,
) -> Iterator[Rows]:
    """The tables of a source whose rows (value, line) `parse` makes spans of, or refuses with a `ValueError`."""
    reading, builder = SpanReading(origin, log, options), SpanBuilder()
    for value, line in rows:
        try:
            builder.add(parse(value, line))
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            log.reject("unreadable span", origin.at(line), str(error))
        if builder.full:
            yield from reading.rows(builder.take())
    yield from reading.rows(builder.take())
    reading.finish()


def _expanded(columns: SpanColumns) -> Triples:
    """The attributes with structures and events spelt out."""
    triples, more = columns.attributes, TripleBuilder()
    wanted = np.array([name in EXPANSIONS for name in triples.names], dtype=np.bool_)
    mask = triples.of_keys(wanted)
    if mask.any():
        found = triples.where(mask)
        for owner, key, text in zip(found.owner.tolist(), found.key.tolist(), found.text.to_pylist(), strict=True):
            flat = EXPANSIONS[found.names[key]](text, int(columns.start_ns[owner]))
            for name, value in flat.items():
                more.add(owner, name, value)
        triples = triples.where(~mask)
    if columns.events:
        starts = {event.row: int(columns.start_ns[event.row]) for event in columns.events}
        for row, flat in from_events(columns.events, starts):
            for name, value in flat.items():
                _add_expanded(more, row, name, value, starts[row])
    # What a span says itself counts more than what was worked out, so it stands last.
    return join(more.build(), triples)


def _add_expanded(more: TripleBuilder, row: int, name: str, value: object, start_ns: int) -> None:
    """An attribute of a detail event may itself be a structure."""
    if name in EXPANSIONS:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        for inner, found in EXPANSIONS[name](text, start_ns).items():
            more.add(row, inner, found)
    else:
        more.add(row, name, value)


def _of_use(roles: list[Role], use: str) -> NDArray[np.bool_]:
    return np.array([role.use == use for role in roles], dtype=np.bool_)


def _kept(triples: Triples, roles: list[Role], tenant: str | None) -> Triples:
    """The attributes a span keeps, with the user's own name of the tenant under ours as well."""
    kept = triples.where(triples.of_keys(_of_use(roles, KEEP.use)))
    if tenant is None or tenant not in kept.names:
        return kept
    named = kept.where(kept.of_keys(np.array([name == tenant for name in kept.names])))
    return join(
        kept, named._replace(key=np.zeros_like(named.key), names=[TENANT], quoted=np.ones_like(named.quoted))
    )


def _templates(triples: Triples) -> dict[int, tuple[str, str]]:
    """Template and variables of the spans that carry both."""
    found: dict[str, dict[int, str]] = {TEMPLATE: {}, VARIABLES: {}}
    for name, texts in found.items():
        chosen = triples.where(triples.of_keys(np.array([n == name for n in triples.names], dtype=np.bool_)))
        texts.update(zip(chosen.owner.tolist(), chosen.text.to_pylist(), strict=True))
    return {row: (text, found[VARIABLES][row]) for row, text in found[TEMPLATE].items() if row in found[VARIABLES]}


def _span_table(columns: SpanColumns, kept: Triples) -> pa.Table:
    schema = TABLES["spans"]
    return pa.table(
        [
            columns.trace_id,
            columns.span_id,
            columns.parent_id,
            columns.name,
            pa.array(columns.start_ns),
            pa.array(columns.end_ns),
            columns.service,
            _errors(columns),
            attributes_json(kept, len(columns)),
        ],
        schema=schema,
    )


def _errors(columns: SpanColumns) -> pa.Array:
    """The errors, with the exception's own words where the status has none."""
    told = {e.row: text for e in columns.events if (text := exception_text(e)) is not None}
    if not told:
        return columns.error
    errors = columns.error.to_pylist()
    for row, text in told.items():
        if errors[row] == UNTOLD_ERROR:
            errors[row] = text
    return pa.array(errors, pa.string())


UNTOLD_ERROR = "error"
"""The error of a span whose status is an error and says nothing."""
