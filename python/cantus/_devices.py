"""Devices: engines by name, and the one that new arrays are on."""

from __future__ import annotations

import os
from contextvars import ContextVar
from typing import Any

from . import _core


class Device:
    """A device by name: `cpu`, `vulkan`, `wgpu:1`. As a context manager it receives new arrays.

    >>> import cantus
    >>> with cantus.device("cpu"):
    ...     cantus.ones(2).device
    device('cpu')
    """

    __slots__ = ("_engine", "_facts", "_name", "_process")

    def __init__(self, name: str | None) -> None:
        self._name = name
        self._engine: _core.Engine | None = None
        self._process = 0
        self._facts: dict[str, Any] | None = None

    @property
    def engine(self) -> _core.Engine:
        """The engine, opened when it is first needed."""
        # Not asked of the system each time: `_forked` notes it.
        if self._engine is None or self._process != _process:
            self._engine = _core.Engine(self._name)
            self._process = _process
        return self._engine

    @property
    def name(self) -> str:
        """The backend's name, with the device's number unless it is the first.

        >>> import cantus
        >>> cantus.device("cpu").name
        'cpu'
        """
        if self._name is None:
            info = self.engine.device
            place = f":{info['index']}" if info["index"] else ""
            self._name = f"{info['backend']}{place}"
            _known.setdefault(self._name, self)
        return self._name

    @property
    def info(self) -> dict[str, Any]:
        """Name, kind, driver, memory and abilities.

        >>> import cantus
        >>> cantus.device("cpu").info["kind"]
        'cpu'
        """
        return self.engine.device

    @property
    def is_host(self) -> bool:
        """True if it computes in the host's memory.

        >>> import cantus
        >>> cantus.device("cpu").is_host
        True
        """
        return bool(self.facts["kind"] == "cpu")

    @property
    def facts(self) -> dict[str, Any]:
        """`info`, fetched once."""
        if self._facts is None:
            self._facts = self.engine.device
        return self._facts

    def has(self, dtype: Any) -> bool:
        """Returns whether the device computes with a dtype.

        >>> import cantus
        >>> cantus.device("cpu").has(cantus.float64)
        True
        """
        info = self.facts
        if dtype.name in ("float64", "complex128"):
            return bool(info["float64"])
        if dtype.name in ("int64", "uint64"):
            return bool(info["int64"])
        return True

    def __repr__(self) -> str:
        return f"device({self.name!r})"

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Device):
            return self is other or self.name == other.name
        return self.name == other if isinstance(other, str) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> Any:
        return (device, (self.name,))

    def __enter__(self) -> Device:
        # Each thread and task has its own.
        _current.set((*_current.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        _current.set(_current.get()[:-1])


_process = os.getpid()


def _forked() -> None:
    global _process
    _process = os.getpid()
    _core.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)

_known: dict[str, Device] = {}
_current: ContextVar[tuple[Device, ...]] = ContextVar("cantus_device", default=())
_best: Device | None = None


def default() -> Device:
    """The device of the context, or the best of the machine."""
    global _best
    chosen = _current.get()
    if chosen:
        return chosen[-1]
    if _best is None:
        _best = Device(os.environ.get("CANTUS_DEVICE") or None)
    return _best


def device(name: str | Device | None = None) -> Device:
    """Returns the device of a name; without one, the device of new arrays.

    >>> import cantus
    >>> cantus.device("cpu")
    device('cpu')
    """
    if isinstance(name, Device):
        return name
    if name is None:
        return default()
    if name.endswith(":0"):
        name = name[:-2]
    if name not in _known:
        best = default()
        if best._name == name:
            _known[name] = best
        else:
            made = Device(name)
            made.engine  # noqa: B018 - a name without a device is an error now
            _known[name] = made
    return _known[name]


class Table(list[dict[str, Any]]):
    """Rows that print as a table, and as HTML in notebooks."""

    columns: tuple[str, ...] = ()

    def _cells(self) -> list[list[str]]:
        return [["" if row.get(name) is None else str(row[name]) for name in self.columns] for row in self]

    def __repr__(self) -> str:
        cells = [list(self.columns), *self._cells()]
        widths = [max(len(row[place]) for row in cells) for place in range(len(self.columns))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from html import escape

        def row(cells: Any, tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        return f"<table>{row(self.columns, 'th')}{''.join(row(cells, 'td') for cells in self._cells())}</table>"


class Devices(Table):
    """Every device of the machine, best first; backends without one say why."""

    columns = ("device", "name", "kind", "driver", "memory", "float64", "int64", "reason")


def devices() -> Devices:
    """Every device that Cantus reaches on this machine, best first, and why a backend has none.

    >>> import cantus
    >>> any(row["device"] == "cpu" for row in cantus.devices())
    True
    """
    rows = []
    for backend, reason, found in _core.survey():
        for info in found:
            name = f"{backend}:{info['index']}" if info["index"] else backend
            memory = f"{info['memory'] / 2**30:.1f} GiB" if info["memory"] else None
            rows.append((-info["priority"], {**info, "device": name, "memory": memory, "reason": reason}))
        if not found:
            rows.append((1000, {"device": backend, "reason": reason}))
    return Devices(row for _, row in sorted(rows, key=lambda row: row[0]))
