"""The interface `tensor_ops`: rms_norm, silu and gelu of NumPy arrays, on the best available backend.

The backends in order are `backend.json`'s `"priority"` (in the working folder, else in the user's configuration folder), or cuda, opencl, cpp,
python; `"backend"` names one, or is `"auto"`. One that fails falls back to the next, with a warning once.
"""

from __future__ import annotations

import functools
import json
import os
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from ._array import address_of
from ._devices import Device

NAMES = ("cuda", "opencl", "cpp", "python", "wgpu", "vulkan")
PRIORITY = ("cuda", "opencl", "cpp", "python")
# Ours for each name.
_BACKENDS = {"cuda": "cuda", "opencl": "opencl", "cpp": "cpu", "wgpu": "wgpu", "vulkan": "vulkan"}


def settings_files() -> list[Path]:
    """The places of settings; the first that exists counts."""
    folder = os.environ.get("APPDATA") or os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return [Path("backend.json"), Path(folder) / "cantus" / "backend.json"]


def settings() -> dict[str, Any]:
    """The settings in force.

    Raises `ValueError` for a file that holds something else.
    """
    found: dict[str, Any] = {"backend": "auto", "priority": list(PRIORITY)}
    for path in settings_files():
        if not path.is_file():
            continue
        try:
            read = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path} is not valid JSON: {error}") from None
        if not isinstance(read, dict):
            raise ValueError(f"{path} must hold an object with the keys backend and priority")
        found |= {key: read[key] for key in ("backend", "priority") if key in read}
        break
    known = ", ".join(NAMES)
    if found["backend"] != "auto" and found["backend"] not in NAMES:
        raise ValueError(f"there is no backend {found['backend']!r} (there are auto, {known})")
    priority = found["priority"]
    if not isinstance(priority, list) or not priority or any(name not in NAMES for name in priority):
        raise ValueError(f"the priority {priority!r} must be a list of names ({known})")
    return found


class _Python:
    """Plain NumPy."""

    name = "python"

    def rms_norm(self, x: Any, weight: Any, eps: float) -> Any:
        """Computes in float32, with the mean in float64."""
        mean = np.mean(np.square(x, dtype=np.float64), axis=-1, keepdims=True)
        return (x / np.sqrt(mean + eps).astype(np.float32) * weight).astype(np.float32)

    def silu(self, x: Any) -> Any:
        """Computes without overflow for either sign."""
        with np.errstate(over="ignore"):
            return (x / (1 + np.exp(-x))).astype(np.float32)

    def gelu(self, x: Any) -> Any:
        """Computes by tanh."""
        return (0.5 * x * (1 + np.tanh(np.float32(np.sqrt(2 / np.pi)) * (x + np.float32(0.044715) * x * x * x)))).astype(np.float32)


class _Result:
    """A result's memory for NumPy, which keeps this and so the result, and may write to it."""

    def __init__(self, result: _core.Lazy) -> None:
        self.result = result
        self.__array_interface__ = {"data": (result.address(), False), "shape": result.shape, "typestr": "<f4", "version": 3}


class _Ours:
    """A device of Cantus."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.device = Device(_BACKENDS[name])
        self.engine = self.device.engine
        self._shared = self.device.is_host

    def _in(self, x: Any) -> _core.Lazy:
        arguments = ("f32", list(x.shape), address_of(x), x.nbytes)
        # Read before the call returns, so the memory is the caller's own.
        return self.engine.adopted(*arguments, x) if self._shared else self.engine.copied(*arguments)

    def _out(self, result: _core.Lazy) -> Any:
        if self._shared:
            # Nobody else has the result: its memory is the caller's.
            return np.asarray(_Result(result))
        into = np.empty(result.shape, np.float32)
        result.read_into(address_of(into), into.nbytes)
        return into

    def rms_norm(self, x: Any, weight: Any, eps: float) -> Any:
        """Computes on the device."""
        return self._out(self._in(x).call("rms_norm", [self._in(weight)], [], [eps])[0])

    def silu(self, x: Any) -> Any:
        """Computes on the device."""
        return self._out(self._in(x).unary("silu"))

    def gelu(self, x: Any) -> Any:
        """Computes on the device."""
        return self._out(self._in(x).unary("gelu_tanh"))


_lock = threading.Lock()
_open: dict[str, Any] = {}
_reasons: dict[str, str] = {}
_active: str | None = None
_process = os.getpid()


def _backend(name: str) -> Any:
    """A backend, opened; None, with the reason noted, where it cannot be."""
    if name in _open:
        return _open[name]
    if name in _reasons:
        return None
    try:
        _open[name] = _Python() if name == "python" else _Ours(name)
    except Exception as error:  # noqa: BLE001 - whatever a driver says is a reason
        _reasons[name] = str(error)
        return None
    return _open[name]


def _order() -> list[str]:
    found = settings()
    order = list(found["priority"]) if found["backend"] == "auto" else [found["backend"], *found["priority"]]
    return list(dict.fromkeys([*order, "python"]))


def _chosen() -> Any:
    global _active, _process
    if _active is not None and _process == os.getpid():
        return _open[_active]
    with _lock:
        if _process != os.getpid():
            _open.clear()
            _process = os.getpid()
        for name in _order():
            backend = _backend(name)
            if backend is not None:
                _active = name
                return backend
    raise RuntimeError("no backend is available")


def reload() -> None:
    """Reads the settings again, and tries every backend again."""
    global _active
    with _lock:
        _open.clear()
        _reasons.clear()
        _active = None


def _run(operation: str, *arguments: Any) -> Any:
    backend = _chosen()
    while True:
        try:
            return getattr(backend, operation)(*arguments)
        except (TypeError, ValueError):
            raise
        except Exception as error:
            if backend.name == "python":
                raise
            backend = _fall_back(backend.name, error)


def _fall_back(name: str, error: Exception) -> Any:
    global _active
    with _lock:
        first = name not in _reasons
        _reasons[name] = str(error)
        _open.pop(name, None)
        if _active == name:
            _active = None
    backend = _chosen()
    if first:
        warnings.warn(f"{name} failed ({error}): {backend.name} computes from now on", RuntimeWarning, stacklevel=4)
    return backend


def _checked(x: Any, what: str) -> Any:
    array = np.asarray(x)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{what} holds {array.dtype}, but must hold numbers (float32)")
    return np.ascontiguousarray(array, np.float32).reshape(array.shape)


def rms_norm(x: Any, weight: Any, eps: float = 1e-6) -> Any:
    """x / √(mean(x²) + eps) * weight along the last axis: NumPy arrays (..., n) and (n), float32; the result has x's shape.

    >>> import numpy as np
    >>> from cantus import tensor_ops
    >>> tensor_ops.rms_norm(np.array([[3.0, 4.0]], "f4"), np.ones(2, "f4")).round(3)
    array([[0.849, 1.131]], dtype=float32)
    """
    x, weight = _checked(x, "x"), _checked(weight, "weight")
    if x.ndim == 0 or weight.shape != x.shape[-1:]:
        raise ValueError(f"x is (..., n) and weight (n), not {x.shape} and {weight.shape}")
    return _run("rms_norm", x, weight, float(eps)) if x.size else x


def silu(x: Any) -> Any:
    """x / (1 + e^-x) of a NumPy array, float32."""
    x = _checked(x, "x")
    return _run("silu", x) if x.size else x


def gelu(x: Any) -> Any:
    """0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))) of a NumPy array, float32."""
    x = _checked(x, "x")
    return _run("gelu", x) if x.size else x


def get_backend() -> str:
    """The active backend's name: cuda, opencl, cpp, python, wgpu or vulkan."""
    return str(_chosen().name)


@functools.cache
def _threads() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def get_backend_info() -> dict[str, Any]:
    """The active backend, its device, the available backends with a reason for each other one, instruction set, threads and memory."""
    active = _chosen()
    available = {name: _backend(name) is not None for name in NAMES}
    device = active.device.info if isinstance(active, _Ours) else {"name": "NumPy", "memory": None}
    return {
        "name": active.name,
        "device": device["name"],
        "available": [name for name, there in available.items() if there],
        "reasons": {name: _reasons.get(name, "") for name, there in available.items() if not there},
        "instruction_set": get_optimization_info().get("instruction_set", ""),
        "threads": _threads(),
        "memory": device["memory"],
    }


def _device_info(name: str) -> dict[str, Any]:
    backend = _backend(name)
    if backend is None:
        return {"reason": _reasons[name]}
    return dict(backend.device.info)


def get_cuda_info() -> dict[str, Any]:
    """CUDA's device; only `reason` without one."""
    return _device_info("cuda")


def get_opencl_info() -> dict[str, Any]:
    """OpenCL's device; only `reason` without one."""
    return _device_info("opencl")


def get_optimization_info() -> dict[str, Any]:
    """The processor's instruction set that is used, and its threads; only `reason` where the CPU's backend is not there."""
    backend = _backend("cpp")
    if backend is None:
        return {"reason": _reasons["cpp"]}
    driver = str(backend.device.info["driver"])
    inner = driver.partition("(")[2].rstrip(")")
    return {"instruction_set": inner or driver, "threads": _threads(), "device": backend.device.info["name"]}
