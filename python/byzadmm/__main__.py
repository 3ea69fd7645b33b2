"""``python -m byzadmm`` is the command ``byzadmm``."""

from __future__ import annotations

import sys

from byzadmm.cli import main

if __name__ == "__main__":
    sys.exit(main())
