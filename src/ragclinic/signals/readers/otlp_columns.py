"""OTLP protobuf spans straight into columns, without a Python object for each span or attribute.

`ptars` decodes protobuf into Arrow by a message's description. OTLP's own is recursive (a value may hold values),
which Arrow is not, so the description here leaves lists and maps as bytes; the few there are, are parsed singly.
"""

import base64
import json
from collections.abc import Iterator, Mapping
from functools import lru_cache, reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from ragclinic.signals.readers.encode import Triples, hex_ids
from ragclinic.signals.readers.interpret import UNTOLD_ERROR
from ragclinic.signals.readers.names import DETAIL_EVENTS, FIRST_TOKEN_EVENTS, RESULT_EVENTS
from ragclinic.signals.readers.otlp_values import value_of
from ragclinic.signals.readers.spans import MAX_NS, Event, SpanColumns

_TYPE = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "string": _TYPE.TYPE_STRING,
    "bytes": _TYPE.TYPE_BYTES,
    "bool": _TYPE.TYPE_BOOL,
    "int64": _TYPE.TYPE_INT64,
    "double": _TYPE.TYPE_DOUBLE,
    "fixed64": _TYPE.TYPE_FIXED64,
    "int32": _TYPE.TYPE_INT32,
}
# opentelemetry/proto/trace/v1 and common/v1, the fields that are read: number, name, type ("*" is repeated).
_MESSAGES: Mapping[str, tuple[tuple[int, str, str], ...]] = {
    "AnyValue": (
        (1, "string", "string"),
        (2, "bool", "bool"),
        (3, "int", "int64"),
        (4, "double", "double"),
        (5, "array", "bytes"),
        (6, "kvlist", "bytes"),
        (7, "bytes", "bytes"),
    ),
    "KeyValue": ((1, "key", "string"), (2, "value", "AnyValue")),
    "Event": ((1, "time", "fixed64"), (2, "name", "string"), (3, "attributes", "KeyValue*")),
    "Status": ((2, "message", "string"), (3, "code", "int32")),
    "Span": (
        (1, "trace_id", "bytes"),
        (2, "span_id", "bytes"),
        (4, "parent_id", "bytes"),
        (5, "name", "string"),
        (7, "start", "fixed64"),
        (8, "end", "fixed64"),
        (9, "attributes", "KeyValue*"),
        (11, "events", "Event*"),
        (15, "status", "Status"),
    ),
    "Scope": ((2, "spans", "Span*"),),
    "Resource": ((1, "attributes", "KeyValue*"),),
    "ResourceSpans": ((1, "resource", "Resource"), (2, "scopes", "Scope*")),
    "Export": ((1, "resources", "ResourceSpans*"),),
}
_STATUS_ERROR = 2
_WANTED_EVENTS = FIRST_TOKEN_EVENTS | RESULT_EVENTS | DETAIL_EVENTS | {"exception"}


def columns_of(messages: list[bytes], first_line: int) -> SpanColumns:
    """The spans of some exports as columns; `line` counts spans from `first_line`.

    Raises:
        ValueError: one of them is no OTLP export of spans.
    """
    resources = _decoder().list_to_record_batch(messages).column(0).flatten()
    scopes, scope_owner = _children(resources.field("scopes"))
    spans, span_scope = _children(scopes.field("spans"))
    services = _services(resources)
    status = spans.field("status")
    failed = pc.fill_null(pc.equal(pc.struct_field(status, "code"), _STATUS_ERROR), False)
    told = pc.struct_field(status, "message")
    told = pc.if_else(pc.equal(pc.coalesce(told, ""), ""), UNTOLD_ERROR, told)
    start = _nanoseconds(spans.field("start"))
    return SpanColumns(
        trace_id=hex_ids(spans.field("trace_id")),
        span_id=hex_ids(spans.field("span_id")),
        parent_id=_parents(spans.field("parent_id")),
        name=spans.field("name"),
        start_ns=start,
        end_ns=_nanoseconds(spans.field("end")),
        service=services.take(pa.array(scope_owner[span_scope])),
        error=pc.if_else(failed, told, pa.scalar(None, pa.string())),
        line=np.arange(first_line, first_line + len(spans), dtype=np.int64),
        attributes=_triples(spans.field("attributes")),
        events=tuple(_events(spans.field("events"))),
    )


@lru_cache(maxsize=1)
def _decoder() -> Any:
    import ptars

    file = descriptor_pb2.FileDescriptorProto(
        name="ragclinic_otlp.proto", package="ragclinic.otlp", syntax="proto3"
    )
    for name, members in _MESSAGES.items():
        message = file.message_type.add(name=name)
        if name == "AnyValue":
            message.oneof_decl.add(name="value")
        for number, member, kind in members:
            plain = kind.removesuffix("*")
            added = message.field.add(name=member, number=number, label=3 if kind.endswith("*") else 1)
            if plain in _SCALARS:
                added.type = _SCALARS[plain]
            else:
                added.type, added.type_name = _TYPE.TYPE_MESSAGE, f".ragclinic.otlp.{plain}"
            if name == "AnyValue":
                added.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    described = pool.FindFileByName(file.name)
    return ptars.HandlerPool([described]).get_for_message(described.message_types_by_name["Export"])


def _children(lists: pa.Array) -> tuple[pa.Array, NDArray[np.int64]]:
    """The entries of all lists, one after another, and for each the row of its list."""
    return lists.flatten(), np.asarray(pc.list_parent_indices(lists), dtype=np.int64)


def _parents(ids: pa.Array) -> pa.Array:
    """Parent identifiers; a root has none, an empty one, or zeros."""
    there = pc.greater(pc.binary_length(ids), 0)
    texts = pc.replace_with_mask(pa.nulls(len(ids), pa.string()), there, hex_ids(ids.filter(there)))
    return pc.if_else(
        pc.fill_null(pc.match_substring_regex(texts, "^0*$"), True), pa.scalar(None, pa.string()), texts
    )


def _nanoseconds(values: pa.Array) -> NDArray[np.int64]:
    times = np.asarray(values, dtype=np.uint64)
    return np.where(times > MAX_NS, 0, times).astype(np.int64)


def _services(resources: pa.Array) -> pa.Array:
    names = [""] * len(resources)
    attributes = pc.struct_field(resources.field("resource"), "attributes")
    for row, pairs in enumerate(attributes.to_pylist()):
        for pair in pairs or ():
            if pair["key"] == "service.name" and pair["value"]:
                names[row] = pair["value"]["string"] or ""
    return pa.array(names, pa.string())


def _triples(attributes: pa.Array) -> Triples:
    pairs, owner = _children(attributes)
    keys = pairs.field("key").dictionary_encode()
    value = pairs.field("value")
    part = {name: pc.struct_field(value, name) for _, name, _ in _MESSAGES["AnyValue"]}
    double, floating = part["double"], np.zeros(len(pairs), dtype=np.bool_)
    if double.null_count < len(double):
        finite = pc.fill_null(pc.is_finite(double), True)
        floating = np.asarray(pc.invert(finite))
    text = pc.coalesce(
        part["string"], part["int"].cast(pa.string()), part["bool"].cast(pa.string()), _double_text(double)
    )
    quoted = np.asarray(pc.is_valid(part["string"])) | floating
    structured = [
        pc.is_valid(part[name]) for name in ("array", "kvlist", "bytes") if part[name].null_count < len(pairs)
    ]
    if structured:
        mask = reduce(pc.or_, structured)
        text, quoted = _with_structures(text, quoted, value, mask)
    triples = Triples(owner, np.asarray(keys.indices, dtype=np.int32), keys.dictionary.to_pylist(), text, quoted)
    return triples if text.null_count == 0 else triples.where(np.asarray(pc.is_valid(text)))


def _double_text(values: pa.Array) -> pa.Array:
    """Doubles as JSON prints them: 1.0 stays a fraction."""
    there = values.is_valid()
    text = values.filter(there).cast(pa.string())
    signs = [pc.match_substring(text, sign) for sign in (".", "e", "n")]  # n: nan, inf
    whole = pc.invert(reduce(pc.or_, signs))
    text = pc.if_else(whole, pc.binary_join_element_wise(text, ".0", ""), text)
    return pc.replace_with_mask(pa.nulls(len(values), pa.string()), there, text)


def _with_structures(
    text: pa.Array, quoted: NDArray[np.bool_], value: pa.Array, mask: pa.Array
) -> tuple[pa.Array, NDArray[np.bool_]]:
    found = [_structure_text(entry) for entry in value.filter(mask).to_pylist()]
    return pc.replace_with_mask(text, mask, pa.array(found, pa.string())), quoted | np.asarray(mask)


def _structure_text(value: Mapping[str, Any]) -> str | None:
    """A list or map as JSON, bytes in base64, None where it cannot be parsed."""
    if value["bytes"] is not None:
        return base64.b64encode(value["bytes"]).decode("ascii")
    number, data = (5, value["array"]) if value["array"] is not None else (6, value["kvlist"])
    parsed = AnyValue()
    try:
        (parsed.array_value if number == 5 else parsed.kvlist_value).ParseFromString(data)
        return json.dumps(value_of(MessageToDict(parsed)), ensure_ascii=False)
    except (DecodeError, ValueError, TypeError, RecursionError):
        return None


def _events(lists: pa.Array) -> Iterator[Event]:
    """The events that say something here; of the many chunks of one stream only the first."""
    events, owner = _children(lists)
    if not len(events):
        return
    names = events.field("name")
    wanted = pc.is_in(names, pa.array(sorted(_WANTED_EVENTS)))
    streamed = np.asarray(pc.is_in(names, pa.array(sorted(FIRST_TOKEN_EVENTS))))
    seen: set[int] = set()
    for index in np.flatnonzero(np.asarray(wanted)).tolist():
        row = int(owner[index])
        if streamed[index]:
            if row in seen:
                continue
            seen.add(row)
        event = events[index].as_py()
        attributes = {pair["key"]: _plain(pair["value"]) for pair in event["attributes"] or ()}
        yield Event(row, event["name"], min(event["time"], MAX_NS), attributes)


def _plain(value: Mapping[str, Any] | None) -> Any:
    if value is None:
        return None
    simple = next((value[n] for n in ("string", "int", "double", "bool") if value[n] is not None), None)
    return (
        simple
        if simple is not None
        else _structure_text(value)
        if any(v is not None for v in value.values())
        else None
    )
