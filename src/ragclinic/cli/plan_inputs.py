"""Opens what `ragclinic plan` is given by name: a model file, a trace."""

import csv
import json
from pathlib import Path
from typing import Any

from ragclinic.errors import BadInput
from ragclinic.physics.models import Model, from_config, from_gguf, named_model
from ragclinic.physics.simulator import Arrival, azure_arrivals, mooncake_arrivals


def open_model(name: str) -> Model:
    """The model in a GGUF file, in a config.json or a folder that holds one, or of this name in the table.

    Raises:
        BadInput: the file is not there or cannot be used, or the table has no such name.
    """
    path = Path(name)
    if path.is_dir():
        path /= "config.json"
    if path.suffix not in (".json", ".gguf"):
        return named_model(name)
    try:
        if path.suffix == ".gguf":
            with path.open("rb") as stream:
                return from_gguf(stream, str(path))
        values: Any = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise BadInput(
            f"{path}: {error.strerror or error}; expected a config.json or a GGUF file; check the path"
        ) from error
    except ValueError as error:
        raise BadInput(f"{path}: not JSON ({error}); expected a config.json; mend or replace the file") from error
    if not isinstance(values, dict):
        raise BadInput(f"{path}: a JSON {type(values).__name__}; expected an object; give the model's config.json")
    return from_config(values, str(path))


def open_trace(path: Path, most: int | None = None) -> list[Arrival]:
    """The first `most` requests of an Azure trace (CSV) or a Mooncake trace (JSON lines), in order of time.

    Raises:
        BadInput: the file is not there, is of neither form, or holds fewer than two requests.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            if path.suffix == ".csv":
                trace = list(azure_arrivals(csv.DictReader(file), str(path)))
            else:
                trace = list(mooncake_arrivals((_row(line, n, path) for n, line in enumerate(file, 1)), str(path)))
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}; expected a trace; check the path") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not text ({error}); expected a trace as CSV or JSON lines; check it") from error
    if len(trace) < 2:
        raise BadInput(f"{path}: {len(trace)} requests; expected at least 2; give a longer trace")
    return sorted(trace, key=lambda a: a.time_s)[:most]


def _row(line: str, number: int, path: Path) -> dict[str, object]:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise BadInput(
            f"{path}:{number}: not JSON ({error}); expected one object a line; mend the line"
        ) from error
    if not isinstance(found, dict):
        raise BadInput(f"{path}:{number}: {line[:40].strip()}; expected one JSON object a line; mend the line")
    return found
