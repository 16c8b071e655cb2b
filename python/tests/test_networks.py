"""Networks beside their definitions, and the interface tensor_ops."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import cantus
from cantus import nn, tensor_ops

generator = np.random.default_rng(3)


def of(*shape):
    return generator.standard_normal(shape).astype("f4")


def near(got, expected, tolerance=2e-5):
    np.testing.assert_allclose(np.asarray(got), expected, rtol=tolerance, atol=tolerance)


def rms_norm(x, weight, eps=1e-6):
    wide = x.astype("f8")
    return wide / np.sqrt((wide**2).mean(-1, keepdims=True) + eps) * weight


def gelu(x):
    x = x.astype("f8")
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def softmax(x):
    raised = np.exp(x - x.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def test_norms_and_activations(device):
    x, weight, bias = of(7, 33), of(33), of(33)
    a, w, b = map(cantus.asarray, (x, weight, bias))
    near(nn.rms_norm(a, w), rms_norm(x, weight))
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    near(nn.layer_norm(a, w, b), (x - mean) / np.sqrt(variance + 1e-5) * weight + bias)
    near(nn.silu(a), x / (1 + np.exp(-x)))
    near(nn.gelu(a), gelu(x))
    near(nn.softmax(a), softmax(x))
    near(nn.log_softmax(a), np.log(softmax(x)))
    near(nn.linear(a, cantus.asarray(of(4, 33) * 0 + 1), cantus.asarray(of(4) * 0)), np.repeat(x.sum(-1, keepdims=True), 4, 1), 1e-4)


def test_attention_and_positions(device):
    q, k, v = of(2, 4, 5, 8), of(2, 2, 6, 8), of(2, 2, 6, 8)
    scores = q @ np.repeat(k, 2, 1).mT / np.sqrt(8)
    near(nn.scaled_dot_product_attention(*map(cantus.asarray, (q, k, v))), softmax(scores) @ np.repeat(v, 2, 1))
    x = of(3, 6, 8)
    angles = np.arange(6)[:, None] * 10000.0 ** (-np.arange(4) / 4)
    cos, sin = np.cos(angles), np.sin(angles)
    turned = np.concatenate([x[..., :4] * cos - x[..., 4:] * sin, x[..., 4:] * cos + x[..., :4] * sin], -1)
    near(nn.rope(cantus.asarray(x), cantus.arange(6)), turned)
    table = of(10, 4)
    near(nn.embedding(cantus.asarray([[1, 9], [0, 1]]), cantus.asarray(table)), table[[[1, 9], [0, 1]]])


def test_images(device):
    x, weight = of(2, 3, 8, 9), of(4, 3, 3, 3)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    near(nn.conv2d(cantus.asarray(x), cantus.asarray(weight), padding=1), np.einsum("nchwkl,ockl->nohw", windows, weight), 1e-4)
    pooled = x[:, :, :8, :8].reshape(2, 3, 4, 2, 4, 2)
    near(nn.max_pool2d(cantus.asarray(x), 2), pooled.max((3, 5)))
    near(nn.avg_pool2d(cantus.asarray(x), 2), pooled.mean((3, 5)))
    rows = np.lib.stride_tricks.sliding_window_view(x[:, :, 0], 3, 2)
    near(nn.conv1d(cantus.asarray(x[:, :, 0]), cantus.asarray(weight[:, :, 0])), np.einsum("nclk,ock->nol", rows, weight[:, :, 0]), 1e-4)


def test_random_numbers_are_the_keys(device):
    key = cantus.random.key(1)
    x = np.asarray(cantus.random.normal(key, (100, 100)))
    assert abs(x.mean()) < 0.05 and abs(x.std() - 1) < 0.05
    np.testing.assert_array_equal(x, np.asarray(cantus.random.normal(key, (100, 100))))
    one, other = cantus.random.split(key)
    assert not np.array_equal(np.asarray(cantus.random.uniform(one, 9)), np.asarray(cantus.random.uniform(other, 9)))
    drawn = np.asarray(cantus.random.integers(key, -3, 4, 1000))
    assert set(drawn.tolist()) == set(range(-3, 4))
    assert sorted(cantus.random.permutation(key, 50).tolist()) == list(range(50))


def test_fields(device, tmp_path):
    one = cantus.field.field(16, 8, "love", 0.5)
    near(one, np.asarray(cantus.field.field(16, 8, 528, 0.5)))
    assert 0 <= cantus.field.coherence(one) <= 1
    assert cantus.field.phi_pattern(5, 4).shape == (4, 5)
    with pytest.raises(ValueError, match="unity"):
        cantus.field.field(4, 4, "hate")
    pytest.importorskip("PIL")
    cantus.field.animate(str(tmp_path / "a.gif"), 16, 16, 3)
    assert (tmp_path / "a.gif").read_bytes()[:3] == b"GIF"


@pytest.mark.parametrize("backend", ["cpp", "python"])
def test_tensor_ops(backend, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "backend.json").write_text(json.dumps({"backend": backend}))
    tensor_ops.reload()
    assert tensor_ops.get_backend() == backend
    x, weight = of(5, 3, 64) * 20, of(64)
    near(tensor_ops.rms_norm(x, weight), rms_norm(x, weight))
    near(tensor_ops.silu(x), x / (1 + np.exp(-x.astype("f8"))), 1e-4)
    near(tensor_ops.gelu(x), gelu(x), 1e-4)
    result = tensor_ops.silu(x)
    assert (result.dtype, result.flags.c_contiguous, result.flags.writeable) == (np.float32, True, True)
    with pytest.raises(ValueError, match="weight"):
        tensor_ops.rms_norm(x, of(3))
    info = tensor_ops.get_backend_info()
    assert info["name"] == backend and {"cpp", "python"} <= set(info["available"]) and info["threads"] > 0
    assert "reason" in tensor_ops.get_cuda_info() or tensor_ops.get_cuda_info()["name"]
    monkeypatch.undo()
    tensor_ops.reload()


def test_a_backend_that_fails_falls_back(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "backend.json").write_text('{"priority": ["cpp", "python"]}')
    tensor_ops.reload()
    assert tensor_ops.get_backend() == "cpp"

    def fails(*_):
        raise cantus.DeviceError("the device is gone")

    monkeypatch.setattr(tensor_ops._open["cpp"], "silu", fails, raising=False)
    x = of(4)
    with pytest.warns(RuntimeWarning, match="python computes"):
        near(tensor_ops.silu(x), x / (1 + np.exp(-x)))
    assert tensor_ops.get_backend() == "python"
    (tmp_path / "backend.json").write_text('{"backend": "vulcan"}')
    with pytest.raises(ValueError, match="vulcan"):
        tensor_ops.settings()
    monkeypatch.undo()
    tensor_ops.reload()


def test_the_programs(tmp_path):
    def run(*arguments):
        return subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, cwd=tmp_path, timeout=300)

    assert run("cantus.configure", "--backend=cpp", "--priority=cpp,python").returncode == 0
    shown = json.loads(run("cantus.configure", "--show").stdout)
    assert (shown["active"], shown["priority"]) == ("cpp", ["cpp", "python"])
    assert run("cantus.configure", "--priority=abacus").returncode == 2
    done = run("cantus.detect_and_benchmark", "--json", "--rounds=1")
    found = json.loads(done.stdout)
    assert found["tests"]["cpp"]["passed"] and found["tests"]["python"]["passed"] and len(found["benchmark"]) == 6
