"""Reads a pickle without executing it: only what makes containers, numbers and strings is understood.

A pickle is a program, and the plain unpickler would run it. Here every opcode that imports, calls or builds an
object is unknown, so that it is refused before anything happens. That costs speed: about 1 MB/s.
"""

import io
import pickle
from typing import Any

# fmt: off
ALLOWED = (
    "PROTO", "FRAME", "STOP", "MARK", "POP", "POP_MARK", "DUP",
    "NONE", "NEWTRUE", "NEWFALSE", "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4",
    "FLOAT", "BINFLOAT",
    "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8",
    "EMPTY_LIST", "LIST", "APPEND", "APPENDS", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3",
    "EMPTY_DICT", "DICT", "SETITEM", "SETITEMS", "EMPTY_SET", "ADDITEMS", "FROZENSET",
    "GET", "BINGET", "LONG_BINGET", "PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE",
)
# fmt: on


class _PlainUnpickler(pickle._Unpickler):
    """The unpickler that is written in Python, with those opcodes only.

    The one in C keeps its memo in an array that five bytes of a hostile pickle can make 64 GB large.
    """

    dispatch = {  # noqa: RUF012  # so declared in the class above it
        getattr(pickle, name)[0]: pickle._Unpickler.dispatch[getattr(pickle, name)[0]] for name in ALLOWED
    }

    def find_class(self, module: str, name: str) -> Any:
        """Never gives anything; a second lock behind the missing opcodes."""
        raise pickle.UnpicklingError(f"asks for {module}.{name}")


def load_plain(data: bytes) -> Any:
    """The containers, numbers and strings that a pickle holds.

    Raises:
        ValueError: it asks for anything else, or is damaged; nothing of it was executed.
    """
    try:
        return _PlainUnpickler(io.BytesIO(data)).load()
    except KeyError as error:
        missing = error.args[0]
        what = f"opcode {chr(missing)!r}" if isinstance(missing, int) else f"nothing under {missing!r}"
        raise ValueError(f"{what}; expected a pickle of lists, dicts, numbers and strings only") from error
    except (pickle.UnpicklingError, EOFError, IndexError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"{error or 'it ends too early'}; expected a whole pickle of plain values") from error
