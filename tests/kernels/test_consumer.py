"""A C++ project that uses the headers of an installed package, by CMake and by a plain compiler call."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

import byzadmm

pytestmark = pytest.mark.slow

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

PROJECT = """
cmake_minimum_required(VERSION 3.18)
project(consumer LANGUAGES CXX)
find_package(byzadmm {version} CONFIG REQUIRED)
add_executable(consumer main.cpp)
target_link_libraries(consumer PRIVATE byzadmm::byzadmm)
"""


def run(*command: str | Path) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "main.cpp").write_text(SOURCE, "utf-8")
    (tmp_path / "CMakeLists.txt").write_text(PROJECT.format(version=byzadmm.__version__), "utf-8")
    return tmp_path


@pytest.fixture
def cmake(monkeypatch: pytest.MonkeyPatch) -> str:
    """The one of the [test] extra, with its ninja, whether or not the environment is activated."""
    monkeypatch.setenv("PATH", sysconfig.get_path("scripts"), prepend=os.pathsep)
    monkeypatch.setenv("CMAKE_GENERATOR", "Ninja")
    found = shutil.which("cmake")
    assert found is not None, "cmake is not on the path; it comes with the [test] extra"
    return found


def test_cmake_project_finds_the_package(project: Path, cmake: str) -> None:
    config = Path(byzadmm.get_include()).parent / "cmake"
    run(cmake, "-S", project, "-B", project / "build", f"-Dbyzadmm_DIR={config}")
    run(cmake, "--build", project / "build")
    assert run(project / "build" / "consumer").split() == ["2", "8", "2", "0"]


def test_cmake_refuses_another_minor_version(project: Path, cmake: str) -> None:
    config = Path(byzadmm.get_include()).parent / "cmake"
    (project / "CMakeLists.txt").write_text(PROJECT.format(version="99.0"), "utf-8")
    command = [cmake, "-S", project, "-B", project / "build", f"-Dbyzadmm_DIR={config}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "99.0" in done.stderr


def test_plain_compiler_call(project: Path) -> None:
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    assert shutil.which(compiler[0]) is not None, f"no C++ compiler {compiler[0]!r} on the path; set CXX"
    run(*compiler, "-std=c++17", "-Wall", "-I", byzadmm.get_include(), project / "main.cpp", "-o", project / "consumer")
    assert run(project / "consumer").split() == ["2", "8", "2", "0"]
