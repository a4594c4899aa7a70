"""A real browser for tests: Chromium, driven through ChromeDriver by the WebDriver protocol (W3C, 2018)."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from typing import Any

_FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1200,800"),
)
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
# In seconds: for an answer of the driver, and for its end.
_PATIENCE = 60
_local = urllib.request.build_opener(urllib.request.ProxyHandler({}))
KEYS = {"Left": "\ue012", "Right": "\ue014", "End": "\ue010", "Home": "\ue011"}


def browser_and_driver() -> tuple[str, str] | None:
    """The programs, if both are on this machine."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


class Browser:
    """One window."""

    def __init__(self, address: str, session: str) -> None:
        self._session = f"{address}/session/{session}"

    def open(self, url: str) -> None:
        """Go to a page, and forget what the browser had to say of the one before."""
        call("POST", f"{self._session}/url", {"url": "about:blank"})
        self.complaints()
        call("POST", f"{self._session}/url", {"url": url})

    def run(self, script: str, *arguments: object) -> Any:
        """The value that a script returns."""
        return call("POST", f"{self._session}/execute/sync", {"script": script, "args": arguments})

    def click(self, selector: str) -> None:
        """Click an element as a person would: what covers it gets the click."""
        found = call("POST", f"{self._session}/element", {"using": "css selector", "value": selector})
        call("POST", f"{self._session}/element/{found[_ELEMENT]}/click", {})

    def press(self, key: str) -> None:
        actions = [{"type": kind, "value": KEYS[key]} for kind in ("keyDown", "keyUp")]
        call("POST", f"{self._session}/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def text(self, selector: str) -> str:
        """What a person sees of an element."""
        return str(self.run("return document.querySelector(arguments[0]).innerText", selector))

    def complaints(self) -> list[str]:
        """What the browser has logged: errors of scripts, violations of policies, failed requests."""
        return [entry["message"] for entry in call("POST", f"{self._session}/se/log", {"type": "browser"})]


def call(method: str, url: str, content: object = None) -> Any:
    body = None if content is None else json.dumps(content).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method=method)
    with _local.open(request, timeout=_PATIENCE) as answer:
        return json.load(answer)["value"]


@contextlib.contextmanager
def open_browser(browser: str, driver: str) -> Iterator[Browser]:
    """A browser with an empty profile, until the end of the block."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
        subprocess.Popen(
            [driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ}
        ) as process,
    ):
        try:
            assert process.stdout is not None
            port = next(found[1] for line in process.stdout if (found := re.search(r"success\D*on port (\d+)", line)))
            address = f"http://127.0.0.1:{port}"
            options = {"binary": browser, "args": [*_FLAGS, f"--user-data-dir={profile}"]}
            wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
            session = call("POST", f"{address}/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
            try:
                yield Browser(address, session)
            finally:
                call("DELETE", f"{address}/session/{session}")
        finally:
            process.terminate()
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
