"""Other libraries on arrays of Cantus. Each test is left out where its library is not installed."""

from __future__ import annotations

import numpy as np
import pytest

import cantus

x = np.random.default_rng(5).standard_normal((30, 6)).astype("f4")


def test_einops():
    einops = pytest.importorskip("einops")
    import einops.array_api
    y = np.random.default_rng(5).standard_normal((2, 6, 4)).astype("f4")
    ours = einops.array_api.rearrange(cantus.asarray(y), "b (h w) c -> b c h w", h=2)
    np.testing.assert_array_equal(np.asarray(ours), einops.rearrange(y, "b (h w) c -> b c h w", h=2))
    ours = einops.array_api.reduce(cantus.asarray(y), "b n c -> b c", "sum")
    np.testing.assert_allclose(np.asarray(ours), y.sum(1), rtol=1e-5)


def test_array_api_compat():
    compat = pytest.importorskip("array_api_compat")
    y = cantus.asarray(x)
    assert compat.is_array_api_obj(y) and compat.array_namespace(y) is cantus
    assert compat.size(y) == 180 and compat.device(y) == y.device
    assert compat.to_device(y, "cpu").device == "cpu"


def test_scikit_learn(monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    sklearn = pytest.importorskip("sklearn")
    from sklearn.decomposition import PCA
    from sklearn.linear_model import Ridge

    expected = PCA(3, svd_solver="full").fit_transform(x)
    with cantus.device("cpu"), sklearn.config_context(array_api_dispatch=True):
        found = PCA(3, svd_solver="full").fit_transform(cantus.asarray(x))
        assert isinstance(found, cantus.Array)
        target = x @ np.arange(6, dtype="f4")
        ridge = Ridge(solver="svd").fit(cantus.asarray(x), cantus.asarray(target))
        assert isinstance(ridge.coef_, cantus.Array)
    np.testing.assert_allclose(np.abs(np.asarray(found)), np.abs(expected), atol=1e-3)
    np.testing.assert_allclose(np.asarray(ridge.coef_), Ridge(solver="svd").fit(x, target).coef_, atol=1e-3)


def test_torch():
    torch = pytest.importorskip("torch")
    with cantus.device("cpu"):
        y = cantus.asarray(x).eval()
        there = torch.from_dlpack(y)
        assert there.data_ptr() == y._x.address()
        np.testing.assert_array_equal(there.numpy(), x)
        tensor = torch.arange(4096, dtype=torch.float32)
        back = cantus.from_dlpack(tensor)
        assert back._x.address() == tensor.data_ptr()
        assert float(cantus.sum(back)) == float(tensor.sum())


def test_jax():
    jax = pytest.importorskip("jax")
    with cantus.device("cpu"):
        y = cantus.asarray(x).eval()
        there = jax.dlpack.from_dlpack(y)
        assert there.unsafe_buffer_pointer() == y._x.address()
        array = jax.numpy.arange(4096.0)
        back = cantus.from_dlpack(array)
        assert back._x.address() == array.unsafe_buffer_pointer()


def test_matplotlib():
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot

    line = pyplot.plot(cantus.arange(5), cantus.arange(5) ** 2)[0]
    assert line.get_ydata().tolist() == [0, 1, 4, 9, 16]


def test_scipy(monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    special = pytest.importorskip("scipy.special")
    y = cantus.asarray(x)
    np.testing.assert_allclose(np.asarray(special.softmax(np.asarray(y), axis=1)), np.asarray(cantus.nn.softmax(y)), atol=1e-6)


def test_a_small_llama_gives_torchs_logits():
    """transformers' LlamaForCausalLM with random weights, computed by cantus.nn."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=97, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    tokens = torch.randint(0, 97, (2, 11))
    with torch.no_grad():
        expected = model(tokens).logits.numpy()
    nn, weights = cantus.nn, {name: cantus.from_dlpack(of.detach()) for name, of in model.state_dict().items()}
    heads, kept, width = 4, 2, 16
    hidden = nn.embedding(cantus.asarray(tokens.numpy()), weights["model.embed_tokens.weight"])
    positions = cantus.arange(11)

    def split(of, count):
        return cantus.permute_dims(cantus.reshape(of, (2, 11, count, width)), (0, 2, 1, 3))

    for layer in range(2):
        at = f"model.layers.{layer}."
        x = nn.rms_norm(hidden, weights[at + "input_layernorm.weight"], config.rms_norm_eps)
        q, k, v = (
            split(nn.linear(x, weights[f"{at}self_attn.{name}_proj.weight"]), count)
            for name, count in (("q", heads), ("k", kept), ("v", kept))
        )
        seen = nn.scaled_dot_product_attention(nn.rope(q, positions), nn.rope(k, positions), v, is_causal=True)
        seen = cantus.reshape(cantus.permute_dims(seen, (0, 2, 1, 3)), (2, 11, 64))
        hidden = hidden + nn.linear(seen, weights[at + "self_attn.o_proj.weight"])
        x = nn.rms_norm(hidden, weights[at + "post_attention_layernorm.weight"], config.rms_norm_eps)
        gate = nn.silu(nn.linear(x, weights[at + "mlp.gate_proj.weight"])) * nn.linear(x, weights[at + "mlp.up_proj.weight"])
        hidden = hidden + nn.linear(gate, weights[at + "mlp.down_proj.weight"])
    logits = nn.linear(nn.rms_norm(hidden, weights["model.norm.weight"], config.rms_norm_eps), weights["lm_head.weight"])
    np.testing.assert_allclose(np.asarray(logits), expected, atol=1e-4)
