"""A prescription as TOML that the engine runs with, each changed setting under the finding that asks for it.

What a file of settings leaves out falls to the engine's defaults, which are a treated pipeline's. So everything in
which the recorded service differs from the defaults is written too: only what is prescribed may change.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import tomlkit
from tomlkit.items import Table

from ragclinic.diagnosis.say import in_language, say
from ragclinic.diagnosis.types import Finding, Prediction
from ragclinic.engine.settings import Settings

ONCE_CURED = say(
    "Too small a part of P95 to be a finding, but once the rest is cured it takes a noticeable part of it away.",
    "原本只占 P95 很小一部分，不算病因；其余治好之后，它能再减少可观的一部分。",
)
"""Why a setting stands there that answers no finding."""

SAME_PASS = say(
    "The same pass ranks what is left against the question and fills this budget.",
    "同一遍处理还会把剩下的句子按与问题的相关程度排序，装满这个预算。",
)


@dataclass(frozen=True, slots=True)
class Prescription:
    """Settings to change (dotted names), the findings that they answer, and the P95 predicted with all of them.

    Findings whose remedy no setting can be stand in `findings` too: their advice is text. `recorded` are the
    settings that the service ran with, empty where they are unknown. `also` names the settings that answer no
    finding but take time away once the findings are cured.
    """

    settings: Mapping[str, object]
    findings: tuple[Finding, ...] = ()
    prediction: Prediction | None = None
    recorded: Mapping[str, object] = field(default_factory=dict)
    also: frozenset[str] = frozenset()

    def to_toml(self, lang: str = "en") -> str:
        """The text of the file, its comments in this language.

        Raises:
            BadInput: a setting's name or value is not one that the engine knows.
        """
        return _to_toml(self, lang)


def _to_toml(prescription: Prescription, lang: str) -> str:
    defaults = Settings().flat()
    recorded = prescription.recorded
    kept = {name: value for name, value in recorded.items() if name in defaults and value != defaults[name]}
    result = {**kept, **prescription.settings}
    Settings().with_changes(result)
    document = tomlkit.document()
    for line in _head(prescription, lang):
        document.add(tomlkit.comment(line))
    for group in dict.fromkeys(name.partition(".")[0] for name in defaults):
        names = [n for n in defaults if n in result and n.partition(".")[0] == group and result[n] is not None]
        if names:
            document.add(tomlkit.nl())
            document.add(group, _table(names, result, prescription, lang))
    return tomlkit.dumps(document)


def _head(prescription: Prescription, lang: str) -> list[str]:
    lines = [
        say("Written by ragclinic diagnose. Run with it as it is.", "由 ragclinic diagnose 写出，可直接使用。")
    ]
    if prescription.prediction is not None:
        lines.append(
            say(
                "Predicted P95 of the total time with all of it: {ms:,.0f} ms ({low:,.0f} to {high:,.0f}, 80 %).",
                "全部采用后，预测总时间的 P95：{ms:,.0f} ms（80 % 区间 {low:,.0f} 到 {high:,.0f}）。",
                ms=prescription.prediction.p95_ms,
                low=prescription.prediction.low_ms,
                high=prescription.prediction.high_ms,
            )
        )
    advice = [f for f in prescription.findings if not f.remedy.settings]
    return [in_language(line, lang) for line in lines] + [
        f"{f.cause}: {in_language(f.remedy.why, lang)}" for f in advice
    ]


def _table(names: list[str], result: Mapping[str, object], prescription: Prescription, lang: str) -> Table:
    table = tomlkit.table()
    said: set[str] = set()
    for name in names:
        key = name.partition(".")[2]
        if name not in prescription.settings:
            unchanged = tomlkit.item(result[name])
            unchanged.comment(in_language(say("as it was", "未改变"), lang))
            table.add(key, unchanged)
            continue
        for finding in prescription.findings:
            if name in finding.remedy.settings and finding.cause not in said:
                said.add(finding.cause)
                for line in _why(finding, lang):
                    table.add(tomlkit.comment(line))
        if name in prescription.also:
            table.add(tomlkit.comment(in_language(ONCE_CURED, lang)))
        if name == "compiler.budget_tokens" and not any(
            f.remedy.settings.get(name) for f in prescription.findings
        ):
            table.add(tomlkit.comment(in_language(SAME_PASS, lang)))
        table.add(key, result[name])
    return table


def _why(finding: Finding, lang: str) -> list[str]:
    lines = [f"{finding.cause}: {in_language(sentence, lang)}" for sentence in finding.evidence]
    if finding.predicted_p95_ms is not None:
        lines.append(
            in_language(
                say(
                    "Predicted P95 with this alone: {ms:,.0f} ms.",
                    "只采用这一条时预测的 P95：{ms:,.0f} ms。",
                    ms=finding.predicted_p95_ms,
                ),
                lang,
            )
        )
    return [*lines, in_language(finding.remedy.why, lang)]
