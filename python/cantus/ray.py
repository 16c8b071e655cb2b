"""Cantus on Ray: Dask arrays whose chunks are arrays of Cantus, computed by Ray's workers, and kernels over many batches as Ray's tasks.

>>> import cantus.dask, cantus.ray, ray                   # doctest: +SKIP
>>> cantus.ray.init("cuda", num_gpus=2)                   # doctest: +SKIP
>>> with cantus.ray.scheduler(num_gpus=1):                # doctest: +SKIP
...     cantus.dask.coherence(cantus.dask.field(20000, 20000))

What a task returns is computed in it and goes to Ray's store as it lies in memory; workers of one machine read it there in place. A worker that
dies costs nothing but time: its tasks run again.
"""

from __future__ import annotations

import collections
import functools
import importlib
import itertools
from collections.abc import Iterable
from typing import Any

from . import dask as _dask

__all__ = ["init", "jobs", "scheduler"]

# Ray has no types that say much.
ray: Any = importlib.import_module("ray")


def _prepare() -> None:
    """Importing this module has registered the chunks in a worker."""


def init(device: str | None = None, *, threads: int | None = None, **options: Any) -> Any:
    """`ray.init` whose workers compute on that device; `threads` is how many the CPU device of a worker computes on. Without a device each takes the
    best that it sees. Ray itself gives each task that asks for `num_gpus` GPUs of its own (CUDA_VISIBLE_DEVICES). Other options are Ray's.
    """
    environment = dict(options.pop("runtime_env", None) or {})
    variables = _dask.environment(device or "", threads)
    if device is None:
        del variables["CANTUS_DEVICE"]
    environment["env_vars"] = variables | environment.get("env_vars", {})
    environment.setdefault("worker_process_setup_hook", f"{__name__}._prepare")
    return ray.init(runtime_env=environment, **options)


def _task(node: Any, names: list[Any], *values: Any) -> Any:
    result = node(dict(zip(names, values, strict=True)))
    _dask._evaluated(result)
    return result


def _get(graph: Any, keys: Any, *, options: dict[str, Any], **_: Any) -> Any:
    """Dask's interface of schedulers: every task is Ray's, and an array goes when nobody needs it any more."""
    spec: Any = importlib.import_module("dask._task_spec")
    nodes = spec.convert_legacy_graph(_dask.dask.utils.ensure_dict(graph if isinstance(graph, dict) else graph.__dask_graph__()))
    waiting = collections.Counter(itertools.chain.from_iterable(node.dependencies for node in nodes.values()))
    waiting.update(wanted := set(_dask.dask.core.flatten(keys if isinstance(keys, list) else [keys])))
    task = ray.remote(_task).options(**options)
    references: dict[Any, Any] = {}
    for key in sorted(nodes, key=importlib.import_module("dask.order").order(nodes).get):
        names = list(nodes[key].dependencies)
        if isinstance(nodes[key], spec.Alias):
            references[key] = references[nodes[key].target]
        else:
            references[key] = task.remote(nodes[key], names, *(references[name] for name in names))
        for name in names:
            waiting[name] -= 1
            if not waiting[name]:
                del references[name]

    def read(keys: Any) -> Any:
        return [read(key) for key in keys] if isinstance(keys, list) else ray.get(references[keys])

    return read(keys)


def scheduler(**options: Any) -> Any:
    """A context in which Dask computes on Ray; the options are those of Ray's tasks (`num_cpus`, `num_gpus`, `resources`, `max_retries`).

    >>> with cantus.ray.scheduler(num_gpus=1):            # doctest: +SKIP
    ...     (x @ x.T).mean().compute()
    """
    return _dask.dask.config.set(scheduler=functools.partial(_get, options=options))


def jobs(
    text: str,
    batches: Iterable[dict[str, Any]],
    *,
    retries: int = 3,
    entry_point: str | None = None,
    options: dict[str, Any] | None = None,
    **common: Any,
) -> list[Any]:
    """`cantus.dask.jobs` as Ray's tasks: references to dicts of the arrays that the kernel writes, for `ray.get`. A task whose worker dies, or that
    fails, runs again, `retries` times. `options` are those of Ray's tasks, `{"num_gpus": 1}` for example.
    """
    task = ray.remote(_dask._job).options(max_retries=retries, retry_exceptions=True, **(options or {}))
    return [task.remote(batch, text, entry_point, common) for batch in batches]
