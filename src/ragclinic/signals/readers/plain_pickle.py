"""Reads a pickle without executing it: only what makes lists, tuples, dicts, numbers and strings is understood.

A pickle is a program, and the plain unpickler would run it. This is a reader of the data opcodes of protocols 2
to 5; whatever imports, calls or builds an object has no meaning here and is refused before anything happens.
Beyond that it holds against pickles made to exhaust a machine: the memo is a dict (five bytes make the array of
the unpickler in C 64 GB large), lengths are checked against what is there, and keys of dicts are strings and
numbers (the hash of a tuple nested a million deep overflows the stack).
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any

KEYS = (str, int, float, bytes)
LAST_PROTOCOL = 5


class _Machine:
    """The state of reading: the data and the place in it, the stack with its marked parts below, the memo."""

    __slots__ = ("below", "data", "memo", "place", "stack")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.place = 0
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []
        self.memo: dict[int, Any] = {}

    def take(self, size: int) -> bytes:
        """The next bytes."""
        start, self.place = self.place, self.place + size
        if self.place > len(self.data):
            raise ValueError("it ends too early")
        return self.data[start : self.place]

    def number(self, size: int) -> int:
        """The next bytes as an unsigned number."""
        return int.from_bytes(self.take(size), "little")

    def marked(self) -> list[Any]:
        """What was put on the stack since the last mark."""
        found, self.stack = self.stack, self.below.pop()
        return found

    def items(self, pairs: list[Any]) -> None:
        """Puts keys and values into the dict on top of the stack."""
        target = self.stack[-1]
        if type(target) is not dict or len(pairs) % 2:
            raise ValueError("items are set on what is no dict")
        if any(type(key) not in KEYS for key in pairs[::2]):
            raise ValueError("a key is neither text nor number")
        target.update(zip(pairs[::2], pairs[1::2], strict=True))

    def entries(self, values: list[Any]) -> None:
        """Appends to the list on top of the stack."""
        target = self.stack[-1]
        if type(target) is not list:
            raise ValueError("entries are added to what is no list")
        target.extend(values)


def load_plain(data: bytes) -> Any:
    """The value that a pickle holds.

    Raises:
        ValueError: it asks for more than plain values, or is damaged; nothing of it was executed.
    """
    machine = _Machine(data)
    try:
        while (code := data[machine.place]) != STOP:
            machine.place += 1
            CODES[code](machine)
        return machine.stack[-1]
    except KeyError as error:
        raise ValueError(_unknown(data, machine, error)) from error
    except (ValueError, IndexError) as error:
        what = str(error) if isinstance(error, ValueError) else "it ends too early, or uses what it never made"
        raise ValueError(f"{what}; expected a whole pickle of plain values") from error


def _unknown(data: bytes, machine: _Machine, error: KeyError) -> str:
    code = data[machine.place - 1]
    what = f"opcode {chr(code)!r}" if code not in CODES else f"nothing under {error}"
    return f"{what}; expected a pickle of lists, dicts, numbers and strings only"


def _protocol(machine: _Machine) -> None:
    if machine.number(1) > LAST_PROTOCOL:
        raise ValueError(f"protocol {machine.data[machine.place - 1]}")


def _mark(machine: _Machine) -> None:
    machine.below.append(machine.stack)
    machine.stack = []


def _tuple(machine: _Machine) -> None:
    found = tuple(machine.marked())
    machine.stack.append(found)


def _last(machine: _Machine, size: int) -> None:
    if len(machine.stack) < size:
        raise ValueError("a tuple of what is not there")
    machine.stack[-size:] = [tuple(machine.stack[-size:])]


def _item(machine: _Machine) -> None:
    value, key = machine.stack.pop(), machine.stack.pop()
    machine.items([key, value])


def _entry(machine: _Machine) -> None:
    value = machine.stack.pop()
    machine.entries([value])


def _remember(machine: _Machine, place: int) -> None:
    machine.memo[place] = machine.stack[-1]


def _text(machine: _Machine, length: int) -> None:
    machine.stack.append(machine.take(machine.number(length)).decode("utf-8", "surrogatepass"))


def _bytes(machine: _Machine, length: int) -> None:
    machine.stack.append(machine.take(machine.number(length)))


def _integer(machine: _Machine, size: int) -> None:
    machine.stack.append(int.from_bytes(machine.take(size), "little", signed=True))


# The data opcodes of Python's pickletools, by their byte.
CODES: Mapping[int, Callable[[_Machine], Any]] = {
    0x80: _protocol,
    0x95: lambda m: m.take(8),  # FRAME: how much follows, which is there to be read ahead
    ord("("): _mark,
    ord("0"): lambda m: m.stack.pop(),
    ord("1"): lambda m: m.marked(),
    ord("2"): lambda m: m.stack.append(m.stack[-1]),
    ord("N"): lambda m: m.stack.append(None),
    0x88: lambda m: m.stack.append(True),
    0x89: lambda m: m.stack.append(False),
    ord("J"): lambda m: _integer(m, 4),
    ord("K"): lambda m: m.stack.append(m.number(1)),
    ord("M"): lambda m: m.stack.append(m.number(2)),
    0x8A: lambda m: _integer(m, m.number(1)),
    0x8B: lambda m: _integer(m, m.number(4)),
    ord("G"): lambda m: m.stack.append(struct.unpack(">d", m.take(8))[0]),
    ord("X"): lambda m: _text(m, 4),
    0x8C: lambda m: _text(m, 1),
    0x8D: lambda m: _text(m, 8),
    ord("B"): lambda m: _bytes(m, 4),
    ord("C"): lambda m: _bytes(m, 1),
    0x8E: lambda m: _bytes(m, 8),
    ord("]"): lambda m: m.stack.append([]),
    ord("a"): _entry,
    ord("e"): lambda m: m.entries(m.marked()),
    ord(")"): lambda m: m.stack.append(()),
    ord("t"): _tuple,
    0x85: lambda m: _last(m, 1),
    0x86: lambda m: _last(m, 2),
    0x87: lambda m: _last(m, 3),
    ord("}"): lambda m: m.stack.append({}),
    ord("s"): _item,
    ord("u"): lambda m: m.items(m.marked()),
    ord("h"): lambda m: m.stack.append(m.memo[m.number(1)]),
    ord("j"): lambda m: m.stack.append(m.memo[m.number(4)]),
    ord("q"): lambda m: _remember(m, m.number(1)),
    ord("r"): lambda m: _remember(m, m.number(4)),
    0x94: lambda m: _remember(m, len(m.memo)),
}
STOP = ord(".")
