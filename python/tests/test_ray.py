"""Ray with chunks of Cantus."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

ray = pytest.importorskip("ray")
pytest.importorskip("dask.array")

import cantus  # noqa: E402
import cantus.dask  # noqa: E402
import cantus.ray  # noqa: E402

TEXT = """
struct Params { a: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn saxpy(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&y) { y[id.x] += params.a * x[id.x]; }
}
"""


@pytest.fixture(scope="module", autouse=True)
def cluster():
    cantus.ray.init("cpu", threads=1, num_cpus=2, include_dashboard=False, configure_logging=False)
    yield
    ray.shutdown()


def test_dasks_arrays():
    def is_ours(chunk):
        assert isinstance(chunk, cantus.Array) and chunk.device.name == "cpu" and "1 thread)" in chunk.device.info["name"]
        return chunk

    x = np.random.default_rng(3).standard_normal((60, 40)).astype("f4")
    chunked = cantus.dask.asarray(x, (20, 16))
    with cantus.ray.scheduler():
        found = (chunked @ chunked.T).map_blocks(is_ours, dtype="f4", meta=chunked._meta).compute()
        assert isinstance(found, cantus.Array)
        np.testing.assert_allclose(np.asarray(found), x @ x.T, atol=1e-3)
        whole = np.asarray(cantus.field.field(300, 200))
        field = cantus.dask.field(300, 200, chunks=100)
        np.testing.assert_array_equal(np.asarray(field.compute()), whole)
        assert abs(cantus.dask.coherence(field) - cantus.field.coherence(cantus.asarray(whole))) < 2e-5


def test_arrays_are_read_in_rays_store():
    x = cantus.asarray(np.arange(100_000, dtype="f4"))
    reference = ray.put(x)
    one, other = ray.get(reference), ray.get(reference)
    assert one._x.address() == other._x.address() != x._x.address()
    np.testing.assert_array_equal(np.asarray(one), np.asarray(x))


def test_jobs_of_kernels_whose_worker_dies(tmp_path):
    batches = [{"x": np.full(100, start, "f4"), "y": np.ones(100, "f4")} for start in range(8)]
    for place, found in enumerate(ray.get(cantus.ray.jobs(TEXT, batches, invocations=100, a=2.0))):
        np.testing.assert_array_equal(found["y"], 2 * place + 1)

    @ray.remote(max_retries=2)
    def dies_once(array):
        if not (tmp_path / "died").exists():
            (tmp_path / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return array * 2

    assert ray.get(dies_once.remote(cantus.ones(3))).tolist() == [2, 2, 2] and (tmp_path / "died").exists()
