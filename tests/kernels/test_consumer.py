"""A C++ project that uses the headers of an installed package, by CMake and by a plain compiler call."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

import byzadmm

SOURCE = """
#include <cstdio>
#include "byzadmm/median.hpp"
#include "byzadmm/softmax.hpp"

int main() {
  const float a[] = {1, 9, 3}, b[] = {2, 8, 1}, c[] = {3, 7, 2};
  const float* rows[] = {a, b, c};
  float out[3];
  const bool suspect = byzadmm::median<float>({rows, 3, 3}, byzadmm::Even::mid, out, 1);
  std::printf("%g %g %g %d\\n", out[0], out[1], out[2], suspect ? 1 : 0);
}
"""


def run(*command: str | Path) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture
def cmake(monkeypatch: pytest.MonkeyPatch) -> str:
    """The one of the [test] extra, with its ninja, whether or not the environment is activated."""
    monkeypatch.setenv("PATH", sysconfig.get_path("scripts"), prepend=os.pathsep)
    monkeypatch.setenv("CMAKE_GENERATOR", "Ninja")
    found = shutil.which("cmake")
    assert found is not None, "cmake is not on the path; it comes with the [test] extra"
    return found


@pytest.mark.slow
def test_the_example_is_built_as_printed_and_prints_what_the_page_says(root: Path, tmp_path: Path, cmake: str) -> None:
    page = (root / "docs" / "cpp.md").read_text("utf-8")
    printed = dict(re.findall(r"^```(cpp|cmake|text)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    for language, name in (("cpp", "main.cpp"), ("cmake", "CMakeLists.txt")):
        assert printed[language] == (root / "examples" / "cpp" / name).read_text("utf-8"), f"docs/cpp.md: {name}"
        (tmp_path / name).write_text(printed[language], "utf-8")
    run(cmake, "-S", tmp_path, "-B", tmp_path / "build", f"-Dbyzadmm_DIR={byzadmm.get_cmake_dir()}")
    run(cmake, "--build", tmp_path / "build")
    assert run(tmp_path / "build" / "robust") == printed["text"]


@pytest.mark.slow
def test_cmake_refuses_another_minor_version(tmp_path: Path, cmake: str) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(consumer NONE)\nfind_package(byzadmm 99.0 CONFIG REQUIRED)\n"
    )
    command = [cmake, "-S", tmp_path, "-B", tmp_path / "build", f"-Dbyzadmm_DIR={byzadmm.get_cmake_dir()}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "99.0" in done.stderr


@pytest.mark.slow
def test_plain_compiler_call(tmp_path: Path) -> None:
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    assert shutil.which(compiler[0]) is not None, f"no C++ compiler {compiler[0]!r} on the path; set CXX"
    (tmp_path / "main.cpp").write_text(SOURCE, "utf-8")
    program = tmp_path / "consumer"
    run(*compiler, "-std=c++17", "-Wall", "-I", byzadmm.get_include(), tmp_path / "main.cpp", "-o", program)
    assert run(program).split() == ["2", "8", "2", "0"]


def test_the_header_for_all_has_every_header(root: Path) -> None:
    headers = sorted(path.name for path in (root / "cpp" / "include" / "byzadmm").glob("*.hpp"))
    text = (root / "cpp" / "include" / "byzadmm" / "byzadmm.hpp").read_text("utf-8")
    assert re.findall(r'^#include "byzadmm/(.+)"$', text, re.MULTILINE) == [h for h in headers if h != "byzadmm.hpp"]
    page = (root / "docs" / "cpp.md").read_text("utf-8")
    assert [name for name in re.findall(r"`(\w+\.hpp)`", page) if name not in headers] == []
