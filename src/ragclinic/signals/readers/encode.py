"""Columns of attributes into one JSON object a span, without a Python loop over them.

This is what makes an import as fast as reading: a million spans carry ten million attributes.
"""

import json
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_NEEDS_ESCAPE = r'["\\\x00-\x1f]'
_HEX_PAIRS = np.frombuffer(b"".join(f"{byte:02x}".encode() for byte in range(256)), dtype="<u2")


class Triples(NamedTuple):
    """Attributes of many spans as columns: whose (row of the span), which (index into `names`), and the value.

    `text` is a string value as it is, any other value as JSON; `quoted` tells them apart.
    """

    owner: NDArray[np.int64]
    key: NDArray[np.int32]
    names: list[str]
    text: pa.Array
    quoted: NDArray[np.bool_]

    def where(self, mask: NDArray[np.bool_]) -> "Triples":
        """The attributes that `mask` chooses."""
        return Triples(
            self.owner[mask], self.key[mask], self.names, self.text.filter(pa.array(mask)), self.quoted[mask]
        )

    def of_keys(self, wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """For each attribute whether its name, by index, is wanted."""
        return wanted[self.key] if len(self.names) else np.zeros(len(self.key), dtype=np.bool_)


def join(first: Triples, second: Triples) -> Triples:
    """Both sets of attributes; where both name the same one, the second wins."""
    if not len(second.owner):
        return first
    shift = len(first.names)
    return Triples(
        np.concatenate([first.owner, second.owner]),
        np.concatenate([first.key, second.key + shift]).astype(np.int32),
        first.names + second.names,
        pa.concat_arrays([first.text, second.text]),
        np.concatenate([first.quoted, second.quoted]),
    )


def attributes_json(triples: Triples, rows: int) -> pa.Array:
    """One JSON object for each of the `rows` spans, keys sorted; of two equal keys the later one counts."""
    known = sorted(set(triples.names))
    place = {name: index for index, name in enumerate(known)}
    rank = np.array([place[name] for name in triples.names], dtype=np.int64)
    wide = triples.owner * (len(known) + 1) + (rank[triples.key] if len(rank) else 0)
    order = np.argsort(wide, kind="stable")
    wide = wide[order]
    last = np.append(wide[1:] != wide[:-1], True) if len(wide) else np.zeros(0, dtype=np.bool_)
    order = order[last]
    names = pa.array([json.dumps(name, ensure_ascii=False) + ":" for name in triples.names], pa.string())
    text = triples.text.take(pa.array(order))
    value = pc.if_else(pa.array(triples.quoted[order]), quote(text), text)
    pieces = pc.binary_join_element_wise(names.take(pa.array(triples.key[order])), value, "")
    offsets = np.searchsorted(triples.owner[order], np.arange(rows + 1)).astype(np.int32)
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), pieces), ",")
    return pc.binary_join_element_wise("{", joined, "}", "")


def quote(text: pa.Array) -> pa.Array:
    """The texts as JSON strings."""
    plain = pc.binary_join_element_wise('"', text, '"', "")
    escape = pc.match_substring_regex(text, _NEEDS_ESCAPE)
    if not pc.any(escape).as_py():
        return plain
    escaped = [json.dumps(value, ensure_ascii=False) for value in text.filter(escape).to_pylist()]
    return pc.replace_with_mask(plain, escape, pa.array(escaped, pa.string()))


def hex_ids(ids: pa.Array) -> pa.Array:
    """Binary identifiers as lower-case hexadecimal text; an empty one becomes null."""
    lengths = pc.binary_length(ids).to_numpy(zero_copy_only=False)
    width = int(lengths[0]) if len(lengths) else 0
    if width and (lengths == width).all():
        return _hex_equal(ids, width)
    return pa.array([value.hex() or None for value in ids.to_pylist()], pa.string())


def _hex_equal(ids: pa.Array, width: int) -> pa.Array:
    start = ids.offset
    first, last = np.frombuffer(ids.buffers()[1], dtype=np.int32)[[start, start + len(ids)]]
    data = np.frombuffer(ids.buffers()[2], dtype=np.uint8)[first:last]
    digits = _HEX_PAIRS[data].tobytes()
    offsets = np.arange(len(ids) + 1, dtype=np.int32) * (2 * width)
    return pa.StringArray.from_buffers(len(ids), pa.py_buffer(offsets.tobytes()), pa.py_buffer(digits))
