"""From findings to a prescription: one set of settings, and the P95 that they predict together."""

from collections.abc import Mapping

from ragclinic.diagnosis.prescription import Prescription
from ragclinic.diagnosis.remedies import WHOLE_COMPILER, compiler, together
from ragclinic.diagnosis.replay import Replay
from ragclinic.diagnosis.types import Diagnosis
from ragclinic.signals.seen import Seen


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
    prediction = Replay(seen).predict(changed) if changed else None
    return Prescription(changed, diagnosis.findings, prediction, dict(seen.settings))


def _running_compiler(settings: Mapping[str, object]) -> Mapping[str, object]:
    """What the compiler does already; a prescription must not do less."""
    if not settings.get("compiler.enabled"):
        return {}
    return {name: settings[name] for name in compiler() if name in settings}
