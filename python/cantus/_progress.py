"""A progress bar, where tqdm is installed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def progress(of: Iterable[Any], what: str, wanted: bool) -> Iterable[Any]:
    """Iterates over the items, with a progress bar if the work is long."""
    if not wanted:
        return of
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return of
    return tqdm(of, desc=what)  # type: ignore[no-any-return]
