"""Dask arrays whose chunks are arrays of Cantus: on several devices and machines, and larger than any memory.

>>> import cantus.dask, dask.array as da                 # doctest: +SKIP
>>> x = cantus.dask.field(20000, 20000, chunks=2500)      # doctest: +SKIP
>>> float((x * x).mean().compute())                       # doctest: +SKIP
>>> cantus.dask.coherence(x)                              # doctest: +SKIP

Importing it registers the chunks with Dask. What a task returns is computed in that task. Within a worker process there is one engine, which its
threads share; `cluster` gives each worker a device. Chunks travel as they lie in memory (pickle's protocol 5), without a copy of ours.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from . import _api, _devices, _numpy, field as _field
from ._array import Array

__all__ = ["asarray", "cluster", "coherence", "field", "jobs"]


# Dask has no types that say much.
dask: Any = importlib.import_module("dask")
da: Any = importlib.import_module("dask.array")
dispatch: Any = importlib.import_module("dask.array.dispatch")
backends: Any = importlib.import_module("dask.array.backends")

# What Dask asks of chunks.

da.register_chunk_type(Array)
dispatch.concatenate_lookup.register(Array, _numpy.FUNCTIONS["concatenate"])
dispatch.tensordot_lookup.register(Array, _numpy.FUNCTIONS["tensordot"])
dispatch.einsum_lookup.register(Array, _numpy.FUNCTIONS["einsum"])
dispatch.take_lookup.register(Array, _numpy.FUNCTIONS["take"])
dispatch.percentile_lookup.register(Array, importlib.import_module("dask.array.percentile")._percentile)


def _empty(shape: Any, dtype: Any = None, **_: Any) -> Array:
    return _api.empty(shape, dtype=dtype)


def _divided(x: Any, y: Any, out: Any = None, dtype: Any = None) -> Any:
    return np.divide(x, y, dtype=dtype) if dtype is not None else np.divide(x, y)


def _to_numpy(x: Array, **_: Any) -> Any:
    return np.asarray(x)


def _sizeof(x: Array) -> int:
    # A worker asks it of what a task has returned, in the task's own thread. What is not waited for would hold memory that nobody counts.
    _evaluated(x)
    return x.nbytes


def _token(x: Array) -> Any:
    return ("cantus", x.dtype.name, x.shape, dask.base.normalize_token(x.host_bytes()))


dispatch.empty_lookup.register(Array, _empty)
dispatch.divide_lookup.register(Array, _divided)
dispatch.to_numpy_dispatch.register(Array, _to_numpy)
dask.sizeof.sizeof.register(Array, _sizeof)
dask.base.normalize_token.register(Array, _token)


def _evaluated(result: Any) -> None:
    if isinstance(result, Array):
        result.eval()
        result._device.engine.finish()
    elif isinstance(result, tuple | list):
        for one in result:
            _evaluated(one)
    elif isinstance(result, dict):
        _evaluated(list(result.values()))


# The schedulers of one process do not ask for sizes.
dask.callbacks.Callback(posttask=lambda key, result, *_: _evaluated(result)).register()


class _Backend(backends.ArrayBackendEntrypoint):  # type: ignore[misc]
    """`dask.config.set({"array.backend": "cantus"})`: `da.ones` and its like have chunks of Cantus."""

    @staticmethod
    def _made(name: str, shape: Any, *value: Any, dtype: Any = None, chunks: Any = "auto", **keywords: Any) -> Any:
        with _of_numpy():
            return asarray(getattr(da, name)(shape, *value, dtype=np.float32 if dtype is None else dtype, chunks=chunks))

    ones = staticmethod(lambda shape, **keywords: _Backend._made("ones", shape, **keywords))
    zeros = staticmethod(lambda shape, **keywords: _Backend._made("zeros", shape, **keywords))
    empty = staticmethod(lambda shape, **keywords: _Backend._made("zeros", shape, **keywords))
    full = staticmethod(lambda shape, fill_value, **keywords: _Backend._made("full", shape, fill_value, **keywords))

    @staticmethod
    def arange(*numbers: Any, dtype: Any = None, chunks: Any = "auto", **keywords: Any) -> Any:
        with _of_numpy():
            return asarray(da.arange(*numbers, dtype=dtype, chunks=chunks))

    @classmethod
    def to_backend(cls, data: Any, **keywords: Any) -> Any:
        """Chunks of Cantus for chunks of another kind."""
        return asarray(data)


def _of_numpy() -> Any:
    """A context in which `da.ones` makes chunks of NumPy's."""
    return dask.config.set({"array.backend": "numpy"})


backends.array_creation_dispatch.register_backend("cantus", _Backend())


def _meta(ndim: int, dtype: Any) -> Array:
    return _api.zeros((0,) * ndim, dtype=dtype)


def asarray(x: Any, chunks: Any = "auto") -> Any:
    """A Dask array with chunks of Cantus, of a Dask array with others, an array, or nested lists."""
    if isinstance(x, Array):
        x = np.asarray(x)
    array = x if isinstance(x, da.Array) else da.from_array(x, chunks=chunks)
    if isinstance(array._meta, Array):
        return array
    return array.map_blocks(_api.asarray, dtype=array.dtype, meta=_meta(array.ndim, array.dtype))


# Fields.


def _part(block_info: Any, width: int, height: int, frequency: float, time: float) -> Array:
    (top, bottom), (left, right) = block_info[None]["array-location"]
    return _field.field(width, height, frequency, time, part=(top, bottom, left, right))


def field(width: int, height: int, frequency: str | float = "love", time: float = 0.0, *, chunks: Any = 2048) -> Any:
    """`cantus.field.field` as a Dask array of float32, each chunk computed where it is needed: as large as the disk, not as the memory."""
    hertz = _field._hertz(frequency)
    sides = da.core.normalize_chunks(chunks, (height, width), dtype=np.float32)
    return da.map_blocks(
        _part, chunks=sides, dtype=np.float32, meta=_meta(2, np.float32), width=width, height=height, frequency=hertz, time=float(time)
    )


def _moments(chunk: Array) -> Any:
    """Count, mean, and the sum of squares about it, in float64."""
    count = chunk.size
    mean = float(_api.mean(chunk))
    if not math.isfinite(mean):
        raise ValueError("the field holds NaN or infinity, for which coherence is not defined")
    away = chunk - mean
    # What float32 lost of the mean comes out of the sum of the differences.
    rest = float(_api.sum(away)) / count
    return np.asarray([[[count, mean + rest, float(_api.sum(away * away)) - count * rest * rest]]])


def _neighbours(chunk: Array, mean: float, block_info: Any = None) -> Any:
    """The sum over elements of a chunk that has a row above and a column to the left of its own, where there are some."""
    away = chunk - mean
    own = away[1:, 1:]
    if own.size == 0:
        return np.zeros((1, 1))
    return np.asarray([[float(_api.sum(_api.abs(own * (away[:-1, 1:] + away[1:, :-1]))))]])


def coherence(x: Any) -> float:
    """`cantus.field.coherence` of a Dask array of two axes, by chunks, in two passes over them: chunks overlap by a row and a column. Nothing is
    kept between the passes, so a field may be larger than the memory of all workers; `x.persist()` first, where it is not, saves the second.
    """
    x = asarray(x)
    if x.ndim != 2 or x.dtype != np.float32:
        raise ValueError(f"a field has two axes of float32, and this one has the shape {x.shape} of {x.dtype}")
    if x.size == 0:
        raise ValueError("a field needs at least one value")
    ones = tuple((1,) * count for count in x.numblocks)
    parts = da.map_blocks(_moments, x, new_axis=2, chunks=(*ones, (3,)), dtype=np.float64, meta=np.empty((0, 0, 0)))
    counts, means, squares = np.asarray(parts.compute()).reshape(-1, 3).T
    mean = float((counts * means).sum() / counts.sum())
    # Chan, Golub and LeVeque, 1979: squares of parts about the mean of all.
    variance = float((squares + counts * (means - mean) ** 2).sum() / counts.sum())
    if variance == 0:
        return 1.0
    laid = da.overlap.overlap(x, depth={0: (1, 0), 1: (1, 0)}, boundary={0: "none", 1: "none"})
    sums = da.map_blocks(_neighbours, laid, mean=mean, chunks=ones, dtype=np.float64, meta=np.empty((0, 0)))
    total = float(np.asarray(sums.compute()).sum())
    return min(1.0, total / variance / float(x.size))


# Kernels as tasks.


@functools.lru_cache(maxsize=64)
def _kernel(text: str, entry_point: str | None) -> Any:
    from ._kernel import kernel

    return kernel(text, entry_point)


def _job(batch: dict[str, Any], text: str, entry_point: str | None, common: dict[str, Any]) -> dict[str, Any]:
    kernel = _kernel(text, entry_point)
    arguments = common | batch
    for name, (space, _) in kernel._bindings.items():
        if space == "storage" and name in arguments:
            arguments[name] = _api.asarray(arguments[name], copy=True)
    kernel(**arguments)
    return {name: np.asarray(arguments[name]) for name, (_, writes) in kernel._bindings.items() if writes}


def jobs(text: str, batches: Iterable[dict[str, Any]], *, client: Any, retries: int = 3, entry_point: str | None = None, **common: Any) -> list[Any]:
    """Runs a kernel once for each batch of arguments (as `cantus.kernel(text)(**batch)` takes them), as tasks on a cluster: futures of dicts of
    the arrays that the kernel writes. A worker that dies loses nothing but time: its tasks run again, `retries` times where they fail.

    Arguments that all batches have go by keyword.
    """
    return list(client.map(_job, list(batches), text=text, entry_point=entry_point, common=common, retries=retries, pure=False))


# Workers.


def _real_devices() -> list[str]:
    """The GPUs, each by the best backend that has it."""
    first: dict[str, str] = {}
    found = []
    for row in _devices.devices():
        device = row["device"]
        if row.get("kind") in ("discrete gpu", "integrated gpu") and first.setdefault(row["name"], device.partition(":")[0]) == device.partition(":")[0]:
            found.append(device)
    return found or ["cpu"]


def environment(device: str, threads: int | None = None) -> dict[str, str]:
    """The variables that give a worker process its device, for clusters that are started otherwise (dask-ssh, Kubernetes).

    >>> import cantus.dask                               # doctest: +SKIP
    >>> cantus.dask.environment("cuda:1")                # doctest: +SKIP
    {'CANTUS_DEVICE': 'cuda', 'CUDA_VISIBLE_DEVICES': '1'}
    """
    backend, _, place = device.partition(":")
    found = {"CANTUS_DEVICE": device}
    if backend == "cuda" and place:
        # The process sees that GPU alone, as its first.
        found = {"CANTUS_DEVICE": backend, "CUDA_VISIBLE_DEVICES": place}
    if threads is not None:
        found["RAYON_NUM_THREADS"] = str(threads)
    return found


def cluster(devices: Sequence[str] | None = None, *, threads: int | None = None, memory_limit: Any = "auto", **options: Any) -> Any:
    """A cluster on this machine with a process for each device (every GPU by itself; without one the CPU): `Client(cantus.dask.cluster())`.

    A worker has the resource of its device's name, so `client.submit(work, resources={"cpu": 1})` chooses one. `threads` is how many the CPU
    device of a worker computes on. Other options are those of `distributed.SpecCluster`.
    """
    distributed: Any = importlib.import_module("distributed")
    config: Any = importlib.import_module("dask.config")

    def status(self: Any, op: str, message: Any) -> None:
        # Some seconds after a worker has died Dask closes its nanny, unless a new one is there by then: but on a busy machine it may still be
        # starting, or have died as well. The nanny goes on as long as the cluster does.
        with config.set({"distributed.deploy.lost-worker-timeout": "365 days"}):
            distributed.SpecCluster._update_worker_status(self, op, message)

    lasting = type("Cluster", (distributed.SpecCluster,), {"_update_worker_status": status})
    chosen = list(devices or _real_devices())
    if memory_limit == "auto":
        memory_limit = distributed.system.MEMORY_LIMIT // len(chosen)
    workers = {
        place: {
            "cls": distributed.Nanny,
            "options": {
                "nthreads": 1,
                "memory_limit": memory_limit,
                "env": environment(device, threads),
                "resources": {device: 1},
                "preload": ["cantus.dask"],
            },
        }
        for place, device in zip(itertools.count(), chosen)
    }
    scheduler = {"cls": distributed.Scheduler, "options": {"dashboard_address": options.pop("dashboard_address", ":0")}}
    return lasting(workers=workers, scheduler=scheduler, name=options.pop("name", "cantus"), **options)
