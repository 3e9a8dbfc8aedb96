"""Every error that RAG Clinic raises on purpose; only `cli/` turns them into exit statuses.

    ClinicError
    ├── BadInput        a file, an index, a setting or a question that cannot be used      exit 2
    ├── MissingExtra    an optional package is not installed; carries the command          exit 2
    └── Unreachable     a server does not answer                                           exit 2

A message has the shape *where: what was found, what was expected; what to do*.
"""


class ClinicError(Exception):
    """The root of all errors raised on purpose; its text is one line a person can act on."""


class BadInput(ClinicError):
    """Something the user gave cannot be used."""


class Unreachable(ClinicError):
    """A server that the settings name does not answer."""


class MissingExtra(ClinicError):
    """An optional package is absent.

    >>> str(MissingExtra("faiss", "local"))
    "faiss is not installed; expected with the extra 'local'; run: pip install 'ragclinic[local]'"
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"{package} is not installed; expected with the extra '{extra}'; run: pip install 'ragclinic[{extra}]'"
        )
