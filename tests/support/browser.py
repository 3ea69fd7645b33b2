"""Headless Chromium over the DevTools protocol, without a dependency: NUL-separated JSON through two pipes."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

PATIENCE = 60.0  # seconds for any answer
KEYS = {"Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39, "Tab": 9, " ": 32}


def chromium() -> str | None:
    """The command of an installed Chromium, or None."""
    found = map(shutil.which, ("chromium", "google-chrome", "chromium-browser"))
    return next((command for command in found if command), None)


class Browser:
    """One window of a headless Chromium; ``errors`` has what the page complained about since :meth:`open`."""

    def __init__(self) -> None:
        command = chromium()
        assert command is not None, "no Chromium"
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        arguments = [command, "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={self.folder.name}"]
        arguments += ["--no-first-run", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
        arguments += ["--no-sandbox"] if os.geteuid() == 0 else []
        (hears, self._to), (self._from, tells) = _pipe(), _pipe()
        actions: list[Any] = [(os.POSIX_SPAWN_DUP2, hears, 3), (os.POSIX_SPAWN_DUP2, tells, 4)]
        actions += [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
        environment = {**os.environ, "HOME": self.folder.name}
        self._process = os.posix_spawn(command, arguments, environment, file_actions=actions, setpgroup=0)
        os.close(hears)
        os.close(tells)
        self._received = b""
        self._calls = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        self._session = None
        try:
            self.call("Browser.close")
        finally:
            for _ in range(100):
                if os.waitpid(self._process, os.WNOHANG)[0]:
                    break
                time.sleep(0.05)
            else:
                os.killpg(self._process, signal.SIGKILL)
                os.waitpid(self._process, 0)
            os.close(self._to)
            os.close(self._from)
            self.folder.cleanup()

    def call(self, method: str, **arguments: Any) -> dict[str, Any]:
        """The answer to one command."""
        self._calls += 1
        message = {"id": self._calls, "method": method, "params": arguments}
        if self._session is not None:
            message["sessionId"] = self._session
        self._write(json.dumps(message).encode() + b"\0")
        number = self._calls
        while (answer := self._read()).get("id") != number:
            self.events.append(answer)
        assert "error" not in answer, f"{method}: {answer['error']}"
        return dict(answer["result"])

    def open(self, page: Path, width: int = 1280, height: int = 900) -> None:
        """Load a page in a window of that size, wait until it is drawn."""
        self.size(width, height)
        self.events.clear()
        self.call("Page.navigate", url=page.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._read())
        self.frame()

    def size(self, width: int, height: int = 900) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, kind: str = "", scheme: str = "light") -> None:
        """Show the page as on paper (``"print"``) or screen, in a dark or light system."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=kind, features=features)
        self.frame()

    def frame(self) -> None:
        """Wait until pending observers and frames have run."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, as JSON has it."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, f"{expression}: {answer['exceptionDetails']}"
        return answer["result"].get("value")

    def point(self, selector: str, across: float = 0.5, down: float = 0.5) -> tuple[float, float]:
        """A place in the first element of that selector, scrolled into view."""
        box = self.evaluate(
            f"(e => {{ e.scrollIntoView({{block: 'center'}}); const b = e.getBoundingClientRect();"
            f" return [b.left, b.top, b.width, b.height] }})(document.querySelector({json.dumps(selector)}))"
        )
        self.frame()  # what listens to scrolling has heard it
        return box[0] + across * box[2], box[1] + down * box[3]

    def move(self, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector: str) -> None:
        x, y = self.point(selector)
        self.move(x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.frame()

    def key(self, key: str) -> None:
        """Press and release a key in the element that has the focus."""
        about = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": KEYS[key]}
        text = {"Enter": "\r", " ": " "}.get(key)
        self.call("Input.dispatchKeyEvent", type="keyDown", **about, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **about)
        self.frame()

    def picture(self, path: Path, whole: bool = True) -> None:
        """Save a PNG of the window, or of the whole page."""
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def pdf(self) -> bytes:
        """The page as it is printed on A4."""
        sheet = {"paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": True, "printBackground": False}
        return base64.b64decode(self.call("Page.printToPDF", **sheet)["data"])

    @property
    def errors(self) -> list[str]:
        """Exceptions, console errors and warnings, refused or failed requests."""
        found = []
        for event in self.events:
            method, about = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(json.dumps(about["exceptionDetails"]))
            elif method == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
                found.append(json.dumps(about["args"]))
            elif method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
                found.append(about["entry"]["text"])
            elif method == "Page.javascriptDialogOpening":
                found.append(f"dialog: {about['message']}")
        return found

    def _write(self, content: bytes) -> None:
        while content:
            content = content[os.write(self._to, content) :]

    def _read(self) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._from], [], [], max(0.0, until - time.monotonic()))
            assert ready, f"Chromium: no answer within {PATIENCE:g} s"
            content = os.read(self._from, 1 << 20)
            assert content, "Chromium has ended"
            self._received += content
        message, self._received = self._received.split(b"\0", 1)
        return dict(json.loads(message))


def _pipe() -> tuple[int, int]:
    """A pipe whose numbers are not those that Chromium listens to."""
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return moved[0], moved[1]
