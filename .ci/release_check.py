"""Version, changelog heading, citation and tag (if this commit has one) agree."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

root = Path(__file__).resolve().parent.parent
version = re.search(r'^version = "(.+)"$', (root / "pyproject.toml").read_text(), re.M)
heading = re.search(r"^## \[?(\d+\.\d+\.\d+)\]?", (root / "CHANGELOG.md").read_text(), re.M)
if version is None or heading is None or version[1] != heading[1]:
    sys.exit(f"pyproject.toml has {version and version[1]}, the first heading of CHANGELOG.md {heading and heading[1]}")
cited = re.search(r"^version: (.+)$", (root / "CITATION.cff").read_text(), re.M)
if cited is None or cited[1] != version[1]:
    sys.exit(f"pyproject.toml has {version[1]}, CITATION.cff {cited and cited[1]}")
tags = subprocess.run(["git", "tag", "--points-at", "HEAD"], cwd=root, capture_output=True, text=True).stdout.split()
if tags and f"v{version[1]}" not in tags:
    sys.exit(f"the tags of this commit are {tags}, the version is {version[1]}")
print(f"version {version[1]}: pyproject.toml, CHANGELOG.md and CITATION.cff agree")
