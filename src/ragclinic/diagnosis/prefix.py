"""The pointer: where two successive prompts part, in which part of the prompt, and what reuse that costs.

A prefix cache reuses what two prompts have in common *from the first token on*. What they share behind the first
difference is lost to it, and would not be if what is stable stood first.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from ragclinic.signals.records import Part, PartRole
from ragclinic.signals.seen import Request

EXCERPT_CHARS = 80
"""Text shown on either side of the place where two prompts part."""


class Pointer(NamedTuple):
    """Where a prompt parts from the one before it.

    `token` is the index of the first token that differs, `part_token` its index inside the part of role `role` at
    `position`. `shareable_tokens` both prompts could have in common in a stable order; `lost_tokens` of these lie
    behind the difference.
    """

    earlier_id: str
    later_id: str
    token: int
    position: int
    role: PartRole
    part_token: int
    shareable_tokens: int
    same_chunks: bool = False

    @property
    def lost_tokens(self) -> int:
        """Tokens that a stable order would share and this one does not."""
        return max(0, self.shareable_tokens - self.token)


class Excerpt(NamedTuple):
    """Text around the place: the end of what both prompts share, and how the earlier and the later go on."""

    common: str
    first: str
    second: str


def predecessors(requests: Sequence[Request]) -> Mapping[str, Request]:
    """For each request with a prompt the one whose prompt it may share: its session's last, else the last."""
    found: dict[str, Request] = {}
    last: Request | None = None
    of_session: dict[tuple[str | None, str], Request] = {}
    for request in requests:
        if not request.parts and request.prompt_tokens is None:
            continue  # answered from a cache: no prompt was read
        key = (request.tenant, request.session) if request.session is not None else None
        before = of_session.get(key, last) if key else last
        if before is not None:
            found[request.id] = before
        last = request
        if key:
            of_session[key] = request
    return found


def point(earlier: Request, later: Request) -> Pointer | None:
    """Where the later prompt parts from the earlier, or None where either's tokens were not recorded."""
    ours, theirs = _told(later), _told(earlier)
    if not ours or not theirs:
        return None
    position, part_token = _first_difference(ours, theirs)
    before = sum(len(p.token_keys or ()) for p in ours[:position])
    return Pointer(
        earlier_id=earlier.id,
        later_id=later.id,
        token=before + part_token,
        position=ours[position].position,
        role=ours[position].role,
        part_token=part_token,
        shareable_tokens=shareable_tokens(earlier, later),
        same_chunks=_same_chunks(ours, theirs),
    )


def excerpt(earlier: Request, later: Request) -> Excerpt | None:
    """The text where the two prompts part, or None where a recording keeps no text."""
    if any(p.text is None and p.role != "template" for p in (*earlier.parts, *later.parts)):
        return None
    first, second = ("\n\n".join(p.text for p in r.parts if p.text) for r in (earlier, later))
    at = _common(first, second)
    return Excerpt(
        first[max(0, at - EXCERPT_CHARS) : at], first[at : at + EXCERPT_CHARS], second[at : at + EXCERPT_CHARS]
    )


def shareable_tokens(earlier: Request, later: Request) -> int:
    """Tokens that both prompts would have in common if what is stable stood first: system prompt, then history.

    Of a system prompt with something volatile inside, all but that. The chunks count where both prompts hold the
    very same ones. Where only counts were recorded, equal roles are taken for equal text.
    """
    system = _same_system(earlier, later)
    tokens = system
    if system:
        tokens += _same_history(earlier, later)
    ours, theirs = _told(later), _told(earlier)
    if system and _same_chunks(ours, theirs):
        tokens += sum(p.tokens for p in ours if p.role == "context")
    return tokens


def _told(request: Request) -> list[Part]:
    """The parts in order up to the first one without token keys; a chat template's own tokens have none."""
    found: list[Part] = []
    for part in request.parts:
        if part.token_keys is None and part.role != "template":
            break
        if part.token_keys is not None:
            found.append(part)
    return found


def _first_difference(ours: Sequence[Part], theirs: Sequence[Part]) -> tuple[int, int]:
    """Index of our part, and of the token in it, at which the prompts differ; the end where they do not."""
    stream = tuple(chain.from_iterable(part.token_keys or () for part in theirs))
    offset = 0
    for index, part in enumerate(ours):
        keys = part.token_keys or ()
        other = stream[offset : offset + len(keys)]
        if keys != other:
            return index, _common(keys, other)
        offset += len(keys)
    return len(ours) - 1, len(ours[-1].token_keys or ())


def _common(one: Sequence[object], other: Sequence[object]) -> int:
    shortest = min(len(one), len(other))
    if one[:shortest] == other[:shortest]:
        return shortest  # most histories: far faster than looking at each token
    return next(i for i in range(shortest) if one[i] != other[i])


def _same_system(earlier: Request, later: Request) -> int:
    one, other = _keys(earlier, "system"), _keys(later, "system")
    if one is None or other is None:
        return min(earlier.role_tokens("system") or 0, later.role_tokens("system") or 0)
    head = _common(one, other)
    shortest = min(len(one), len(other))
    tail = _common(one[::-1][: shortest - head], other[::-1][: shortest - head])
    return head + tail


def _same_history(earlier: Request, later: Request) -> int:
    one, other = _keys(earlier, "history"), _keys(later, "history")
    if one is None or other is None:
        same_session = earlier.session is not None and earlier.session == later.session
        return min(earlier.role_tokens("history") or 0, later.role_tokens("history") or 0) if same_session else 0
    return _common(one, other)


def _keys(request: Request, role: PartRole) -> tuple[int, ...] | None:
    keys = [p.token_keys for p in request.parts if p.role == role]
    known = [k for k in keys if k is not None]
    if len(known) < len(keys):
        return None
    return known[0] if len(known) == 1 else tuple(chain.from_iterable(known))


def _same_chunks(ours: Sequence[Part], theirs: Sequence[Part]) -> bool:
    chunks = [sorted(p.token_keys or () for p in parts if p.role == "context") for parts in (ours, theirs)]
    return bool(chunks[0]) and chunks[0] == chunks[1]
