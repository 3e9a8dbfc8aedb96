"""The messages of Prometheus remote write, versions 1 and 2, built at run time: no generated code, no compiler.

Field numbers from Prometheus' `prompb/types.proto` and `prompb/io/prometheus/write/v2/types.proto`. Only fields
that carry samples are named; the others are left unread by protobuf itself.
"""

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = "ragclinic.remote_write"
_TYPES = descriptor_pb2.FieldDescriptorProto

# message -> (field name, number, type, repeated); a type in capitals is a message of this table.
MESSAGES: dict[str, tuple[tuple[str, int, str, bool], ...]] = {
    "LABEL": (("name", 1, "string", False), ("value", 2, "string", False)),
    "SAMPLE": (("value", 1, "double", False), ("timestamp", 2, "int64", False)),
    "SPAN": (("offset", 1, "sint32", False), ("length", 2, "uint32", False)),
    "HISTOGRAM": (
        ("count_int", 1, "uint64", False),
        ("count_float", 2, "double", False),
        ("sum", 3, "double", False),
        ("schema", 4, "sint32", False),
        ("zero_threshold", 5, "double", False),
        ("zero_count_int", 6, "uint64", False),
        ("zero_count_float", 7, "double", False),
        ("positive_spans", 11, "SPAN", True),
        ("positive_deltas", 12, "sint64", True),
        ("positive_counts", 13, "double", True),
        ("timestamp", 15, "int64", False),
        ("custom_values", 16, "double", True),
    ),
    "SERIES_1": (
        ("labels", 1, "LABEL", True),
        ("samples", 2, "SAMPLE", True),
        ("histograms", 4, "HISTOGRAM", True),
    ),
    "SERIES_2": (
        ("labels_refs", 1, "uint32", True),
        ("samples", 2, "SAMPLE", True),
        ("histograms", 3, "HISTOGRAM", True),
    ),
    # Both versions at once: version 2 reserves the numbers of version 1, so one message reads either.
    "REQUEST": (
        ("timeseries_1", 1, "SERIES_1", True),
        ("symbols", 4, "string", True),
        ("timeseries_2", 5, "SERIES_2", True),
    ),
}


@cache
def request_class() -> Any:
    """The message class of a write request of either version."""
    file = descriptor_pb2.FileDescriptorProto(
        name="ragclinic_remote_write.proto", package=PACKAGE, syntax="proto3"
    )
    for message_name, fields in MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for name, number, kind, repeated in fields:
            field = message.field.add(name=name, number=number)
            field.label = _TYPES.LABEL_REPEATED if repeated else _TYPES.LABEL_OPTIONAL
            if kind in MESSAGES:
                field.type, field.type_name = _TYPES.TYPE_MESSAGE, f".{PACKAGE}.{kind}"
            else:
                field.type = _TYPES.Type.Value(f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.REQUEST"))
