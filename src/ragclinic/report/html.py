"""A page of HTML in one file that works offline: styles, scripts and data are inside.

Whatever came from a recording is escaped by the template engine. Should that ever fail, the page's own content
policy lets nothing be loaded or sent and runs no script but the ones whose hashes it lists.
"""

import base64
import hashlib
import json
from importlib import resources
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import ragclinic
from ragclinic.errors import BadInput
from ragclinic.report import bars, charts, compare_rows, numbers
from ragclinic.report.json_ import Json
from ragclinic.report.page import Page
from ragclinic.report.prompt_blocks import blocks
from ragclinic.report.terminal_diagnosis import prediction
from ragclinic.report.text import Lang, Words, setting
from ragclinic.report.tiles import gauge, tiles

LANG_TAGS = {"en": "en", "zh": "zh-Hans"}
LIBRARIES = (
    ("heat", "echarts.heat.min.js", "Apache ECharts 6.1 (Apache-2.0)"),
    ("cdf", "uPlot.min.js", "uPlot 1.6 (MIT)"),
    ("flame", "d3-flame-graph.min.js", "d3-flame-graph 5.0 (Apache-2.0), d3 (ISC)"),
)
"""For each part of the data the script that draws it, and whose work it is; see vendor/VENDORED.md."""


def render(page: Page, lang: Lang = "en") -> str:
    """The page as a text that is a whole HTML file (to be written as UTF-8)."""
    words = Words(lang)
    runs = [("before", page.before)] + ([("after", page.after)] if page.after else [])
    data = charts.chart_data(page, bars.slots(run for _, run in runs), words)
    sources = _scripts(data)
    return (
        _environment(words)
        .get_template("page.html")
        .render(
            t=words,
            lang=LANG_TAGS[lang],
            page=page,
            diagnosis=page.diagnosis,
            comparison=page.comparison,
            runs=runs,
            bars=bars.bars(runs, page.diagnosis.slo_ms) if page.before.budget else None,
            tiles=tiles(page, words),
            gauge=gauge(page.comparison) if page.comparison else None,
            compared=compare_rows.rows(page.comparison, words) if page.comparison else [],
            rows=compare_rows,
            prediction=lambda finding: prediction(finding, words),
            data=data,
            data_block=data_block(data),
            scripts=[Markup(s) for s in sources],  # noqa: S704 - our own files
            styles=[Markup(_read("vendor", "uPlot.min.css")), Markup(_read("templates", "style.css"))],  # noqa: S704
            policy=_policy(sources),
            version=ragclinic.__version__,
            credits=[credit for part, _, credit in LIBRARIES if data[part]],
        )
    )


def write_page(page: Page, path: Path, lang: Lang = "en") -> None:
    """Write the page to a file, whole or not at all.

    Raises:
        BadInput: the place cannot be written to.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    text = render(page, lang)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, "utf-8")
        temporary.replace(path)
    except OSError as error:
        raise BadInput(
            f"{path}: {error.strerror or error}; expected a place to write a report to; choose another"
        ) from error


def data_block(data: Json) -> Markup:
    """The data as sorted, compact JSON that no text in it can break out of: `<` is written as an escape."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704 - nothing left that HTML would read


def _scripts(data: dict[str, Json]) -> list[str]:
    """The scripts that this page needs, libraries first."""
    return [*(_read("vendor", file) for part, file, _ in LIBRARIES if data[part]), _read("templates", "page.js")]


def _policy(scripts: list[str]) -> str:
    hashes = (base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts)
    allowed = " ".join(f"'sha256-{h}'" for h in hashes)
    return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {allowed}"


def _environment(words: Words) -> Environment:
    environment = Environment(
        loader=PackageLoader("ragclinic.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: (
            words.said(value) if isinstance(value, str) and not isinstance(value, Markup) else value
        ),
    )
    for show in (numbers.duration, numbers.percent, numbers.count, numbers.times, numbers.byte_seconds):
        environment.filters[show.__name__] = show
    environment.filters["known"] = lambda value, show=None: (
        compare_rows.UNKNOWN if value is None else environment.filters[show](value) if show else value
    )
    environment.filters["blocks"] = blocks
    environment.filters["setting"] = lambda pair: setting(*pair)
    return environment


def _read(folder: str, name: str) -> str:
    text = resources.files("ragclinic.report").joinpath(folder, name).read_text("utf-8")
    return text.replace("\r\n", "\n")  # as the browser hashes it
