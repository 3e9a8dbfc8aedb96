"""The settings that cure, in one table: findings, prescription and prediction all speak of these.

Names and defaults are the engine's own (`engine/settings.py`); a default is read from there, never repeated here.
"""

from collections.abc import Iterable, Mapping

from ragclinic.engine.settings import Settings

BUDGET_TOKENS = Settings().compiler.budget_tokens
STABLE_ORDER: Mapping[str, object] = {"prompt.order": "stable-first"}
DOCUMENT_ORDER: Mapping[str, object] = {"prompt.chunk_order": "document"}
ANSWER_CACHE: Mapping[str, object] = {"cache.answers": True}
STREAMING: Mapping[str, object] = {"delivery.stream": True}
KEEP_LOADED: Mapping[str, object] = {"llm.keep_loaded": True}


def compiler(
    deduplicate: bool = False, merge_overlap: bool = False, budget_tokens: int = 0
) -> Mapping[str, object]:
    """The context compiler switched on to do just this; a budget of 0 is none."""
    return {
        "compiler.enabled": True,
        "compiler.deduplicate": deduplicate,
        "compiler.merge_overlap": merge_overlap,
        "compiler.budget_tokens": budget_tokens,
    }


WHOLE_COMPILER = compiler(deduplicate=True, merge_overlap=True, budget_tokens=BUDGET_TOKENS)


def together(remedies: Iterable[Mapping[str, object]]) -> dict[str, object]:
    """The settings of several remedies at once: of two values the one that does more.

    >>> together([compiler(deduplicate=True), compiler(budget_tokens=400)])["compiler.deduplicate"]
    True
    """
    found: dict[str, object] = {}
    for remedy in remedies:
        for name, value in remedy.items():
            found[name] = _stronger(found[name], value) if name in found else value
    return found


def _stronger(one: object, other: object) -> object:
    if isinstance(one, bool) and isinstance(other, bool):
        return one or other
    if isinstance(one, int) and isinstance(other, int):
        # Only a budget can meet another number: the smaller one does more, and 0 is none.
        return min((n for n in (one, other) if n > 0), default=0)
    return other
