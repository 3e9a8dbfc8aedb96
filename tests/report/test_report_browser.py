"""The page in a real browser: it draws, says nothing on the console, and fits a phone."""

import base64
import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragclinic.report.html import render
from ragclinic.report.page import Page
from ragclinic.report.text import Lang

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine"),
]


LOADED = """
new Promise(done => document.readyState === 'complete' ? done(1) : addEventListener('load', () => done(1)))
"""


class Browser:
    """Speaks the DevTools protocol over two pipes: JSON messages, each ended by a zero byte."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        command_read, self._write = os.pipe()
        self._read, event_write = os.pipe()
        # The protocol wants its pipes at file descriptors 3 and 4; the shell moves them there.
        launch = f'exec "$@" 3<&{command_read} 4>&{event_write}'
        self._process = subprocess.Popen(
            ["bash", "-c", launch, "chromium", CHROMIUM, *FLAGS, f"--user-data-dir={profile}"],
            pass_fds=(command_read, event_write),
            stderr=subprocess.DEVNULL,
        )
        os.close(command_read)
        os.close(event_write)
        self._buffer, self._number, self.complaints = b"", 0, list[str]()
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session: str | None = None
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Page.bringToFront")

    def call(self, method: str, **params: object) -> dict[str, Any]:
        """The result of one command; complaints of the page that arrive meanwhile are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if getattr(self, "_session", None):
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            reply = self._next()
            if reply.get("id") == self._number:
                assert "error" not in reply, reply
                result: dict[str, Any] = reply["result"]
                return result
            self._listen(reply)

    def open(self, path: Path, width: int, *, dark: bool = False) -> None:
        """Load a file at this width and let its charts draw."""
        self.complaints.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=path.as_uri())
        self.evaluate(LOADED)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def screenshot(self, path: Path) -> None:
        """Save the whole page as a picture."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(answer["data"]))

    def close(self) -> None:
        """End the browser."""
        with contextlib.suppress(BrokenPipeError, AssertionError, EOFError):
            self._session = None
            self.call("Browser.close")
        self._process.wait(timeout=20)
        os.close(self._write)
        os.close(self._read)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            block = os.read(self._read, 1 << 20)
            if not block:
                raise EOFError("the browser went away")
            self._buffer += block
        message, self._buffer = self._buffer.split(b"\0", 1)
        parsed: dict[str, Any] = json.loads(message)
        return parsed

    def _listen(self, event: dict[str, Any]) -> None:
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.consoleAPICalled":
            self.complaints.append(f"console: {params['args']}")
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(f"exception: {params['exceptionDetails']}")
        elif method == "Log.entryAdded":
            self.complaints.append(f"log: {params['entry'].get('text')}")
        elif method == "Network.requestWillBeSent" and not params["request"]["url"].startswith(("file:", "data:")):
            self.complaints.append(f"network: {params['request']['url']}")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


OVERFLOWING = """
[...document.body.querySelectorAll('*')].filter(e => {
  const box = e.getBoundingClientRect();
  return box.width && (box.right > innerWidth + 0.5 || box.left < -0.5) && !e.closest('.scroll, .prompt, pre');
}).map(e => `${e.tagName}.${e.className}#${e.id}`)
"""
"""What sticks out of the window; inside boxes that scroll by themselves it may."""

DRAWN = """
(() => {
  const pixels = c => c.getContext('2d').getImageData(0, 0, c.width, c.height);
  const heat = document.querySelector('#heat');
  const side = heat.clientHeight - 56;
  const layers = [...heat.querySelectorAll('canvas')].map(pixels);
  const opaque = (x, y) => layers.some(p => p.data[4 * ((8 + y) * p.width + 56 + x) + 3] === 255);
  const widths = [...document.querySelectorAll('#flame-before rect')].map(r => +r.getAttribute('width'));
  return {
    heat: opaque(3, side - 3) && opaque(side - 3, side - 3) && opaque(side - 3, 3),
    cdf: pixels(document.querySelector('#cdf canvas')).data.some(v => v),
    frames: widths.filter(w => w > 0).length,
    widest: Math.max(...widths),
  };
})()
"""
"""Is the plane of the heat map painted up to its last corner, are there curves, have the frames their width?"""


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("dark", [False, True])
def test_page_draws_without_complaint_and_fits_the_window(
    browser: Browser, page: Page, tmp_path: Path, lang: Lang, width: int, dark: bool
) -> None:
    """Every chart has ink, the console is silent, nothing is fetched and nothing sticks out sideways."""
    path = tmp_path / "report.html"
    path.write_text(render(page, lang), "utf-8")
    browser.open(path, width, dark=dark)
    drawn = browser.evaluate(DRAWN)
    assert drawn["heat"]
    assert drawn["cdf"]
    assert drawn["frames"] >= 10
    assert drawn["widest"] > 0.85 * width
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate(OVERFLOWING) == []
    assert browser.complaints == []


def test_theme_button_turns_the_page_dark_and_back(browser: Browser, page: Page, tmp_path: Path) -> None:
    """The ground changes, the charts are drawn again, and nothing complains."""
    path = tmp_path / "report.html"
    path.write_text(render(page), "utf-8")
    browser.open(path, 1280)
    ground = "getComputedStyle(document.body).backgroundColor"
    canvases = "document.querySelectorAll('#heat canvas, #cdf canvas').length"
    light, drawn = browser.evaluate(ground), browser.evaluate(canvases)
    browser.evaluate("document.getElementById('theme').click()")
    assert browser.evaluate(ground) != light
    browser.evaluate("document.getElementById('theme').click()")
    assert browser.evaluate(ground) == light
    assert browser.evaluate(canvases) == drawn
    assert browser.complaints == []


def test_a_page_without_an_after_draws_too(browser: Browser, page_alone: Page, tmp_path: Path) -> None:
    """The charts of one run alone, on a phone."""
    path = tmp_path / "report.html"
    path.write_text(render(page_alone), "utf-8")
    browser.open(path, 400)
    assert browser.evaluate(DRAWN)["frames"] >= 10
    assert browser.evaluate("document.documentElement.scrollWidth") <= 400
    assert browser.complaints == []


def test_an_injected_script_does_not_run(browser: Browser, page: Page, tmp_path: Path) -> None:
    """Should escaping ever fail, the page's policy still stops the script."""
    path = tmp_path / "report.html"
    broken = render(page).replace("</main>", "<script>document.title = 'owned'</script></main>")
    path.write_text(broken, "utf-8")
    browser.open(path, 1280)
    assert browser.evaluate("document.title") != "owned"
    assert any("Content Security Policy" in complaint for complaint in browser.complaints)
