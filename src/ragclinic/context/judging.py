"""Says of every sentence of every passage what became of it."""

from collections.abc import Iterator, Sequence

from ragclinic.context.candidates import Candidates
from ragclinic.context.compiled import Judged, Kept, Why
from ragclinic.context.fill import Filling
from ragclinic.context.scoring import Column
from ragclinic.context.stretches import Span


def kept_spans(found: Candidates, filling: Filling, scores: Column) -> Iterator[Kept]:
    """Give the kept text as spans of passages in reading order; one that crosses into another passage is cut."""
    for run in filling.runs:
        spans: list[Span] = []
        for number in range(run.first, run.last + 1):
            for span in found.places[number].own:
                if spans and spans[-1].passage == span.passage:
                    spans[-1] = Span(span.passage, spans[-1].start, span.end)
                else:
                    spans.append(span)
        best = float(scores[run.first : run.last + 1].max())
        yield from (Kept(*span, best) for span in spans)


def judged(
    found: Candidates, filling: Filling, scores: Column, repeats: Sequence[int | None], tokens_in: int
) -> tuple[Judged, ...]:
    """Give every sentence of every passage, in their order, with what became of it.

    `repeats` are the sentences that duplicates repeat. Tokens of sentences that were not counted, and of parts of
    sentences, are estimated from their characters.
    """
    rate = tokens_in / max(1, sum(len(passage.text) for passage in found.passages))
    entries: list[tuple[Span, int, Why]] = []
    owner: dict[int, Span] = {}
    for number, place in enumerate(found.places):
        owner[number] = place.own[0]
        why: Why = "kept" if number in filling.taken else "below the cut"
        entries.extend((span, number, why if repeats[number] is None else "duplicate") for span in place.own)
        entries.extend((span, number, "overlap") for span in place.copies)
    entries.sort(key=lambda entry: entry[0])
    at = {span: place for place, (span, _, _) in enumerate(entries)}
    result = []
    for span, number, why in entries:
        twin = repeats[number] if why == "duplicate" else number if why == "overlap" else None
        whole = len(found.places[number].own) == 1 and why != "overlap"
        counted = filling.counted.get(number) if whole else None
        result.append(
            Judged(
                passage=span.passage,
                start=span.start,
                end=span.end,
                tokens=round(rate * (span.end - span.start)) if counted is None else counted,
                score=float(scores[number]),
                why=why,
                twin=None if twin is None else at[owner[twin]],
            )
        )
    return tuple(result)
