"""Asks an engine a list of questions as users would: sessions in turn, several at once where there are slots."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import NamedTuple

from ragclinic.engine.pipeline import Engine


class Inquiry(NamedTuple):
    """A question as one user asks it; those of a session follow one another and share their history."""

    text: str
    session: str | None


OnAnswer = Callable[[Inquiry, float], None]


def ask_all(
    engine: Engine,
    inquiries: Sequence[Inquiry],
    users: int = 1,
    budget_s: float | None = None,
    at_least: int = 0,
    on_answer: OnAnswer = lambda _inquiry, _seconds: None,
) -> list[Inquiry]:
    """Asks and returns what was asked, in the order in which it was begun.

    With `budget_s` nothing is begun that the slowest answer so far would carry past it, but `at_least` so many
    are asked whatever the machine. `users` sessions go on side by side.
    """
    begin = time.monotonic()
    asked: list[Inquiry] = []
    slowest_s = 0.0
    lock = threading.Lock()

    def may_begin() -> bool:
        spent = time.monotonic() - begin
        return budget_s is None or len(asked) < at_least or spent + slowest_s <= budget_s

    def session(turns: Sequence[Inquiry]) -> None:
        nonlocal slowest_s
        for inquiry in turns:
            with lock:
                if not may_begin():
                    return
                asked.append(inquiry)
            start = time.monotonic()
            engine.ask(inquiry.text, session=inquiry.session)
            seconds = time.monotonic() - start
            with lock:
                slowest_s = max(slowest_s, seconds)
            on_answer(inquiry, seconds)

    sessions = [list(turns) for _, turns in groupby(inquiries, key=lambda i: i.session)]
    with ThreadPoolExecutor(users) as pool:
        for done in [pool.submit(session, turns) for turns in sessions]:
            done.result()
    return asked
