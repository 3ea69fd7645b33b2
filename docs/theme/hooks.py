"""What the site makes of docstrings: the name alone of a role such as :class:`Info`, no dash before no description."""

from __future__ import annotations

import re
from typing import Any

_ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):<code>~?")
_TICKS = re.compile(r"(<code>[^<\n]*?)``([^`<\n]*)``")
_EMPTY = re.compile(r'\u2013\s*<div class="doc-md-description">\s*</div>')  # a dash before it


def on_page_content(html: str, **_: Any) -> str:
    return _EMPTY.sub("", _TICKS.sub(r"\1\2", _ROLE.sub("<code>", html)))
