"""From findings to a prescription: one set of settings, and the P95 that they predict together.

A fault too small to be a finding may matter once the large ones are cured: behind 3,000 tokens of context nobody
notices 100 of history computed again, behind 500 one does. So what costs nothing is tried on top of the rest.
"""

from collections.abc import Mapping

from ragclinic.diagnosis.prescription import Prescription
from ragclinic.diagnosis.remedies import STABLE_ORDER, WHOLE_COMPILER, compiler, together
from ragclinic.diagnosis.replay import Replay
from ragclinic.diagnosis.types import Diagnosis
from ragclinic.signals.seen import Seen

AFTERWARDS = (STABLE_ORDER,)
"""Remedies that cost nothing and change no answer."""
WORTH = 0.03
"""Share of the predicted mean time (0..1) that a remedy must take away on top of the others; less is noise."""


def prescribe(seen: Seen, diagnosis: Diagnosis) -> Prescription:
    """The settings that answer the findings together; settings that stand so already are left out.

    The compiler is one pass over the chunks: where a finding needs any of it, all of it is prescribed, since its
    steps do not interfere and what merging leaves is ranked anyway.
    """
    remedies = [finding.remedy.settings for finding in diagnosis.findings]
    if any("compiler.enabled" in remedy for remedy in remedies):
        remedies += [WHOLE_COMPILER, _running_compiler(seen.settings)]
    settings = together(remedies)
    changed = {n: v for n, v in settings.items() if n not in seen.settings or seen.settings[n] != v}
    if "compiler.enabled" in changed:
        # What stood ready while it was off starts to act now, and is to be read in the file.
        changed = {n: v for n, v in settings.items() if n in changed or n in WHOLE_COMPILER}
    if not changed:
        return Prescription({}, diagnosis.findings, None, dict(seen.settings))
    replay = Replay(seen)
    also: dict[str, object] = {}
    for remedy in AFTERWARDS:
        more = {
            n: v for n, v in remedy.items() if n in seen.settings and seen.settings[n] != v and n not in changed
        }
        before, after = replay.mean_ms({**changed, **also}), replay.mean_ms({**changed, **also, **more})
        if more and before is not None and after is not None and after < (1 - WORTH) * before:
            also |= more
    everything = {**changed, **also}
    return Prescription(
        everything, diagnosis.findings, replay.predict(everything), dict(seen.settings), frozenset(also)
    )


def _running_compiler(settings: Mapping[str, object]) -> Mapping[str, object]:
    """What the compiler does already; a prescription must not do less."""
    if not settings.get("compiler.enabled"):
        return {}
    return {name: settings[name] for name in compiler() if name in settings}
