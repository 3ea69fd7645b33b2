"""``examples/flower_server.py`` over a network: a SuperLink and two SuperNodes on this machine."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.flower, pytest.mark.slow]


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


@contextlib.contextmanager
def running(command: list[str], log: Path, environment: dict[str, str]) -> Iterator[None]:
    """A process with all that it starts, ended afterwards."""
    with log.open("w") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env=environment, cwd=log.parent, start_new_session=True
        )
        try:
            yield
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_for(port: int, log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    raise AssertionError(f"nobody listens on port {port}:\n{log.read_text()}")


def test_the_example_is_an_app_that_a_superlink_and_two_supernodes_run(root: Path, tmp_path: Path) -> None:
    """Client 0, which sends NaN, and client 9: the model is that of client 9."""
    app = tmp_path / "app"
    app.mkdir()
    page = (root / "docs" / "flower.md").read_text("utf-8")
    project = re.search(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert project is not None, "docs/flower.md has no pyproject.toml"
    (app / "pyproject.toml").write_text(project[1], "utf-8")
    (app / "flower_server.py").write_text((root / "examples" / "flower_server.py").read_text("utf-8"), "utf-8")
    link, *ports = free_ports(3)
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(
        f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "127.0.0.1:{link}"\ninsecure = true\n', "utf-8"
    )
    scripts = Path(sysconfig.get_path("scripts"))
    environment = os.environ | {
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "FLWR_HOME": str(home),
        "FLWR_TELEMETRY_ENABLED": "0",
    }
    with contextlib.ExitStack() as stack:
        superlink = [str(scripts / "flower-superlink"), "--insecure", f"--port={link}"]
        superlink.append("--disable-runtime-dependency-installation")
        stack.enter_context(running(superlink, tmp_path / "superlink.log", environment))
        wait_for(link, tmp_path / "superlink.log")
        for number, port in zip((0, 9), ports, strict=True):
            supernode = [str(scripts / "flower-supernode"), "--insecure", f"--superlink=127.0.0.1:{link}"]
            supernode += [f"--port={port}", f"--node-config=partition-id={number}"]
            stack.enter_context(running(supernode, tmp_path / f"supernode-{number}.log", environment))
        settings = 'rule="median" f=1 clients=2 rounds=1'
        command = [str(scripts / "flwr"), "run", str(app), "here", "--stream", "--run-config", settings]
        ran = subprocess.run(
            command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=240, check=False
        )
    logs = "\n".join(path.read_text("utf-8", "replace") for path in sorted(tmp_path.glob("*.log")))
    said = ran.stdout + ran.stderr
    assert ran.returncode == 0, said + logs
    assert re.search(r"client \d+ is excluded: NaN or infinite values", said), said + logs
    found = re.search(r"^median +accuracy (\d\.\d+)$", said, re.MULTILINE)
    assert found is not None, said + logs
    assert float(found[1]) > 0.5  # after ten steps on a tenth of the data; 0.1 before
