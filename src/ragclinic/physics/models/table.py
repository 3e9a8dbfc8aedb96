"""Well-known models by name; an unknown name is answered with the nearest known ones."""

from functools import cache
from typing import Any

from ragclinic.errors import BadInput
from ragclinic.physics.models.config import from_config
from ragclinic.physics.models.model import Model
from ragclinic.physics.nearest import nearest

SUFFIXES = ("-instruct", "-chat", "-it", "-hf", "-base")


@cache
def known_models() -> dict[str, dict[str, Any]]:
    """The shipped table: name -> source, published parameter count where known, and configuration."""
    import tomllib  # only a name needs the table
    from importlib import resources

    text = resources.files("ragclinic.physics.models").joinpath("table.toml").read_text("utf-8")
    return tomllib.loads(text)


def named_model(name: str) -> Model:
    """The model of this name, as `llama-3-70b` or `meta-llama/Meta-Llama-3-70B-Instruct`.

    Raises:
        BadInput: the table has no such model; the message lists the nearest names.
    """
    table = known_models()
    row = table.get(_plain(name)) or table.get(_by_source(name) or "")
    if row is None:
        raise BadInput(
            f"model {name}: not in the table; the nearest are {', '.join(nearest(_plain(name), table))}; "
            "give one of these, a config.json or a GGUF file"
        )
    return from_config(row["config"], _plain(name) if _plain(name) in table else str(_by_source(name)))


def _plain(name: str) -> str:
    """The name without organisation, `meta-` and the endings that mark a tuned variant."""
    plain = name.lower().rsplit("/", 1)[-1].removeprefix("meta-").replace("_", "-")
    for suffix in SUFFIXES:
        plain = plain.removesuffix(suffix)
    return plain


def _by_source(name: str) -> str | None:
    wanted = name.lower()
    for known, row in known_models().items():
        source = str(row["source"]).split(" ", 1)[0].lower()
        if wanted in (source, source.rsplit("/", 1)[-1]):
            return known
    return None
