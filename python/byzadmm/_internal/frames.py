"""Tables as DataFrames, where pandas is installed."""

from __future__ import annotations

from typing import Any

__all__ = ["data_frame"]


def data_frame(table: Any) -> Any:
    """A DataFrame of ``table``: columns by name, or a list of rows, each a dict.

    Examples
    --------
    >>> from byzadmm._internal.frames import data_frame
    >>> data_frame([{"seed": 0, "accuracy": 0.5}, {"seed": 1, "accuracy": 0.7}])["accuracy"].tolist()
    [0.5, 0.7]
    """
    try:
        import pandas
    except ImportError as error:
        raise ImportError(f"frame: needs pandas; pip install 'byzadmm[frame]' ({error})") from error
    return pandas.DataFrame(table)
