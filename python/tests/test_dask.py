"""Dask with chunks of Cantus."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest

da = pytest.importorskip("dask.array")
pytest.importorskip("distributed")

import dask  # noqa: E402
from dask.array.utils import assert_eq  # noqa: E402

import cantus  # noqa: E402
import cantus.dask  # noqa: E402

generator = np.random.default_rng(11)
X = generator.standard_normal((60, 40)).astype("f4")


def chunked(x=X, chunks=(20, 16)):
    return cantus.dask.asarray(x, chunks)


def is_ours(chunk):
    assert isinstance(chunk, cantus.Array), type(chunk)
    return chunk


PROGRAMS = {
    "sum": lambda x: x.sum(),
    "sums of rows": lambda x: x.sum(axis=1),
    "mean": lambda x: x.mean(axis=0),
    "deviation": lambda x: x.std(),
    "greatest": lambda x: x.max(axis=1, keepdims=True),
    "place of the greatest": lambda x: x.argmax(axis=1),
    "any": lambda x: (x > 3).any(axis=0),
    "elements": lambda x: np.exp(-x) * 2 + x.T[:1].T,
    "product": lambda x: x @ x.T,
    "tensordot": lambda x: np.tensordot(x, x, axes=((0,), (0,))),
    "slices": lambda x: x[5:50:3, ::-1],
    "places": lambda x: x[[1, 40, 3]],
    "concatenate": lambda x: np.concatenate([x, x * 2], axis=1),
    "stack": lambda x: np.stack([x, x + 1]),
    "transpose": lambda x: x.T + 1,
    "reshape": lambda x: x.reshape(2400),
    "where": lambda x: np.where(x > 0, x, 0),
    "cumsum": lambda x: x.cumsum(axis=0),
    "rechunk": lambda x: x[:50] if isinstance(x, np.ndarray) else x.rechunk((7, 40))[:50],
    "clip": lambda x: x.clip(-1, 1).round(2),
    "median": lambda x: np.median(x, axis=0),
    "singular values": lambda x: np.linalg.svd(x, full_matrices=False)[1] if isinstance(x, np.ndarray) else da.linalg.svd(x.rechunk((20, 40)))[1],
    "casts": lambda x: (x * 10).astype("i4") % 7,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_numpys_and_chunks_stay(name):
    program = PROGRAMS[name]
    found = program(chunked())
    assert isinstance(found._meta, cantus.Array), type(found._meta)
    # Every chunk of the result, and every chunk below it, is an array of Cantus.
    computed = found.map_blocks(is_ours, dtype=found.dtype, meta=found._meta).compute()
    assert isinstance(computed, cantus.Array), type(computed)
    expected = program(X)
    np.testing.assert_allclose(np.asarray(computed), expected, rtol=2e-4, atol=2e-5)
    assert found.dtype == expected.dtype and computed.dtype == expected.dtype


def test_no_task_makes_numpys_arrays(monkeypatch):
    """All that tasks return, in a graph of many kinds of tasks."""
    seen = []

    class Look(dask.callbacks.Callback):
        def _posttask(self, key, result, *_):
            seen.append(type(result))

    x = chunked().persist(scheduler="sync")
    with Look():
        ((np.sin(x) @ x.T).sum(axis=0) + x.mean() + x[:, 0]).compute(scheduler="sync")
    assert seen and np.ndarray not in seen and cantus.Array in seen


def test_dasks_own_assertions():
    x = chunked()
    with dask.config.set(scheduler="sync"):
        y = cantus.asarray(X)
        assert_eq(x + 1, y + 1)
        assert_eq(x.sum(axis=0), y.sum(axis=0), rtol=1e-4)
        assert_eq(x.T, y.T)
        assert_eq(x[3:30, 2], y[3:30, 2])


def test_what_dask_takes_for_numpys():
    """Dask itself says that these are NumPy's arrays; what tasks return are arrays of Cantus."""
    counts = da.histogram(chunked(), bins=10, range=(-3, 3))[0].compute()
    transform = np.fft.fft(chunked().rechunk((20, 40))).compute()
    assert isinstance(counts, cantus.Array) and isinstance(transform, cantus.Array)
    np.testing.assert_array_equal(np.asarray(counts), np.histogram(X, bins=10, range=(-3, 3))[0])
    np.testing.assert_allclose(np.asarray(transform), np.fft.fft(X), atol=1e-4)


def test_percentiles_are_dasks():
    flat = X.ravel()
    found = da.percentile(chunked(flat, 300), [25, 50, 75])
    assert isinstance(found.compute(), cantus.Array)
    np.testing.assert_allclose(np.asarray(found.compute()), da.percentile(da.from_array(flat, 300), [25, 50, 75]).compute(), rtol=1e-6)


def test_stencils_with_overlap():
    def stencil(block):
        is_ours(block)
        return cantus.roll(block, 1, axis=0) + cantus.roll(block, -1, axis=0) + cantus.roll(block, 1, axis=1) + cantus.roll(block, -1, axis=1) - 4 * block

    found = chunked().map_overlap(stencil, depth=1, boundary="periodic", dtype="f4", meta=chunked()._meta)
    expected = sum(np.roll(X, step, axis) for step in (1, -1) for axis in (0, 1)) - 4 * X
    np.testing.assert_allclose(np.asarray(found.compute()), expected, atol=1e-4)
    for boundary in ("reflect", "nearest", 0):
        assert isinstance(chunked().map_overlap(lambda x: is_ours(x) * 1, depth=2, boundary=boundary, dtype="f4", meta=chunked()._meta).compute(), cantus.Array)


def test_what_tasks_return_is_computed():
    lazy = []
    x = chunked().map_blocks(lambda block: lazy.append(block * 2) or lazy[-1], dtype="f4", meta=chunked()._meta)
    x.compute(scheduler="sync")
    assert lazy and all(block._x.is_computed for block in lazy[-3:])
    one = cantus.ones(10) + 1
    assert dask.sizeof.sizeof(one) == 40 and one._x.is_computed


def test_a_pickle_holds_the_memory_itself():
    x = cantus.asarray(X).eval()
    buffers = []
    text = pickle.dumps(x, protocol=5, buffer_callback=buffers.append)
    assert len(text) < 500 and np.frombuffer(buffers[0], "u1").__array_interface__["data"][0] == x._x.address()
    # What begins at a multiple of 16 bytes is taken as it is.
    space = np.empty(X.nbytes + 16, "u1")
    start = -space.__array_interface__["data"][0] % 16
    space[start : start + X.nbytes] = np.frombuffer(buffers[0], "u1")
    there = pickle.loads(text, buffers=[space[start : start + X.nbytes]])
    assert there._x.address() == space.__array_interface__["data"][0] + start
    np.testing.assert_array_equal(np.asarray(there), X)
    assert dask.base.tokenize(x) == dask.base.tokenize(there) != dask.base.tokenize(x + 1)


def test_a_backend_of_dasks():
    with dask.config.set({"array.backend": "cantus"}):
        x = da.ones((6, 4), chunks=3) + 1
        assert isinstance(x.compute(), cantus.Array)
        assert isinstance(da.arange(10, chunks=5).compute(), cantus.Array)
    assert isinstance(x.to_backend("numpy").compute(), np.ndarray)
    assert isinstance(da.ones(3).to_backend("cantus").compute(), cantus.Array)


def definition(field):
    wide = field.astype("f8")
    z = (wide - wide.mean()) / wide.std()
    return min(1.0, float(np.abs(z[1:, 1:] * (z[:-1, 1:] + z[1:, :-1])).sum()) / field.size)


def test_fields_by_chunks():
    found = cantus.dask.field(70, 50, "unity", 0.3, chunks=(16, 30))
    whole = np.asarray(cantus.field.field(70, 50, "unity", 0.3))
    np.testing.assert_array_equal(np.asarray(found.compute()), whole)
    assert abs(cantus.dask.coherence(found) - definition(whole)) < 2e-5
    assert abs(cantus.dask.coherence(found) - cantus.field.coherence(cantus.asarray(whole))) < 2e-5
    noise = generator.standard_normal((40, 33)).astype("f4") + 1000
    assert abs(cantus.dask.coherence(cantus.dask.asarray(noise, 7)) - definition(noise)) < 2e-5
    assert cantus.dask.coherence(cantus.dask.asarray(np.ones((8, 9), "f4"), 4)) == 1
    with pytest.raises(ValueError, match="NaN"):
        cantus.dask.coherence(cantus.dask.asarray(np.full((4, 4), np.nan, "f4")))
    with pytest.raises(ValueError, match="two axes"):
        cantus.dask.coherence(cantus.dask.asarray(np.ones(4, "f4")))


def test_each_worker_sees_its_device():
    assert cantus.dask.environment("cuda:1", 2) == {"CANTUS_DEVICE": "cuda", "CUDA_VISIBLE_DEVICES": "1", "RAYON_NUM_THREADS": "2"}
    assert cantus.dask.environment("vulkan:1") == {"CANTUS_DEVICE": "vulkan:1"}


# A cluster of two processes.

STEPS = """
struct Params { count: u32, rounds: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage> x: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64)
fn steps(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= params.count { return; }
    var value = x[id.x];
    for (var round = 0u; round < params.rounds; round++) { value = value * 1664525u + 1013904223u; }
    y[id.x] = value;
}
"""


@pytest.fixture(scope="module")
def client():
    from distributed import Client

    with cantus.dask.cluster(["cpu", "cpu"], threads=1, memory_limit="1GiB") as cluster, Client(cluster) as client:
        client.wait_for_workers(2, timeout=120)
        yield client


def test_one_engine_for_each_process(client):
    def engine():
        import cantus

        device = cantus.device()
        return os.getpid(), id(device.engine), cantus.ones(3).device.name, device.info["name"]

    workers = list(client.scheduler_info()["workers"])
    found = {client.submit(engine, workers=[worker], pure=False).result() for worker in workers for _ in range(3)}
    assert len({pid for pid, *_ in found}) == 2 and len(found) == 2
    assert all(device == "cpu" and "1 thread)" in name for _, _, device, name in found)
    assert client.submit(engine, resources={"cpu": 1}).result()[2] == "cpu"


def test_chunks_travel(client):
    x = chunked().persist()
    product = (x @ x.T).map_blocks(is_ours, dtype="f4", meta=x._meta)
    np.testing.assert_allclose(np.asarray(product.compute()), X @ X.T, atol=1e-3)
    assert isinstance(product.sum(axis=0).compute(), cantus.Array)


def test_jobs_of_kernels(client):
    batches = [{"x": np.arange(start, start + 100, dtype="u4"), "y": np.zeros(100, "u4")} for start in range(0, 1000, 100)]
    futures = cantus.dask.jobs(STEPS, batches, client=client, invocations=100, count=100, rounds=3)
    found = np.concatenate([result["y"] for result in client.gather(futures)])
    expected = np.arange(1000, dtype="u4")
    for _ in range(3):
        expected = expected * np.uint32(1664525) + np.uint32(1013904223)
    np.testing.assert_array_equal(found, expected)


def test_a_worker_that_dies_costs_nothing_but_time(client):
    killed = []

    def kill():
        time.sleep(1.0)
        pids = client.run(os.getpid)
        killed.append(next(iter(pids.values())))
        os.kill(killed[0], signal.SIGKILL)

    rounds = 1_500_000
    batches = [{"x": np.full(256, start, "u4"), "y": np.zeros(256, "u4")} for start in range(60)]
    thread = threading.Thread(target=kill)
    thread.start()
    futures = cantus.dask.jobs(STEPS, batches, client=client, invocations=256, count=256, rounds=rounds)
    found = [set(result["y"].tolist()) for result in client.gather(futures)]
    thread.join()
    assert killed and killed[0] not in client.run(os.getpid).values()
    # The sum of a geometric series.
    times = pow(1664525, rounds, 2**32 * 1664524)
    expected = [{(times * start + (times - 1) // 1664524 * 1013904223) % 2**32} for start in range(60)]
    assert found == expected
    # And an array whose chunks were there.
    x = cantus.dask.field(3000, 2000, chunks=500).persist()
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
    whole = np.asarray(cantus.field.field(3000, 2000))
    assert abs(float(x.sum(dtype="f8").compute()) - whole.sum(dtype="f8")) < 1e-2
    client.wait_for_workers(2, timeout=60)


def test_a_worker_that_is_long_in_coming_back_is_not_given_up():
    from distributed import Client

    # What Dask waits for a worker's successor: no process starts in so short a time.
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "10ms"}):
        with cantus.dask.cluster(["cpu", "cpu"], threads=1, memory_limit="1GiB") as cluster, Client(cluster) as client:
            client.wait_for_workers(2, timeout=120)
            before = set(client.run(os.getpid).values())
            os.kill(min(before), signal.SIGKILL)
            end = time.monotonic() + 120
            while (now := set(client.run(os.getpid, on_error="ignore").values())) == before or len(now) < 2:
                assert time.monotonic() < end, now
                time.sleep(0.2)
            assert cantus.dask.field(30, 20, chunks=10).sum().compute() != 0


def test_each_gpu_has_one_worker(monkeypatch):
    rows = [
        {"device": "cuda", "name": "A", "kind": "discrete gpu"},
        {"device": "cuda:1", "name": "A", "kind": "discrete gpu"},
        {"device": "vulkan", "name": "A", "kind": "discrete gpu"},
        {"device": "vulkan:1", "name": "B", "kind": "integrated gpu"},
        {"device": "wgpu", "name": "B", "kind": "integrated gpu"},
        {"device": "cpu", "name": "C", "kind": "cpu"},
        {"device": "hip", "reason": "not found"},
    ]
    monkeypatch.setattr(cantus.dask._devices, "devices", lambda: rows)
    assert cantus.dask._real_devices() == ["cuda", "cuda:1", "vulkan:1"]
    monkeypatch.setattr(cantus.dask._devices, "devices", lambda: rows[-2:])
    assert cantus.dask._real_devices() == ["cpu"]
