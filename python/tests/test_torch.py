"""torch.compile(backend="cantus") beside torch itself."""

from __future__ import annotations

import logging

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import cantus  # noqa: E402
import cantus.torch  # noqa: E402

F = torch.nn.functional


def compiled(function):
    torch.compiler.reset()
    return torch.compile(function, backend=cantus.torch.backend)


@pytest.fixture
def left(caplog):
    """The result of torch itself."""
    caplog.set_level(logging.DEBUG, "cantus.torch")

    def names():
        return [record.getMessage() for record in caplog.records if record.name == "cantus.torch"]

    return names


def block(x, w, v):
    y = F.rms_norm(x, (64,)) * w
    z = F.silu(y @ v) + F.gelu(y @ v, approximate="tanh") - torch.sigmoid(x.mean(-1, keepdim=True))
    return F.softmax(z, -1), (z > 0.5).sum(), torch.where(z > 0, z, -z).amax(-1)


def layers(x):
    return F.layer_norm(x, (64,)), F.log_softmax(x, 0), x.var(-1), x.T.reshape(-1, 4)[1:7:2].contiguous(), torch.cat([x, 2 * x], 1)


def images(x):
    y = F.conv2d(x.reshape(1, 2, 8, 40)[:, :, :, :8], torch.ones(3, 2, 3, 3) / 9, torch.arange(3.0), padding=1, stride=2)
    return F.avg_pool2d(F.relu(y), 2), F.pad(y, (1, 2, 0, 1), value=3.0), y.permute(0, 2, 3, 1).flatten(1).cumsum(-1)


def numbers(x):
    whole = (x * 10).to(torch.int64)
    return whole % 7, whole.float() / 3, whole * 2 + 1, (whole == 3) | (whole < 0), x.clamp(-1, 1) ** 3, x.double().exp(), 1 - x, 2 / (x.abs() + 1)


@pytest.mark.parametrize("program", [layers, images, numbers], ids=lambda program: program.__name__)
def test_programs_give_torchs_results(program, left):
    x = torch.randn(10, 64, generator=torch.Generator().manual_seed(2))
    for ours, theirs in zip(compiled(program)(x), program(x), strict=True):
        assert ours.dtype == theirs.dtype
        torch.testing.assert_close(ours, theirs, rtol=2e-4, atol=2e-5)
    assert left() and all("nothing" in line for line in left()), left()


def test_a_block_and_its_gradients(left):
    generator = torch.Generator().manual_seed(2)
    x, w, v = (torch.randn(*shape, generator=generator) for shape in ((10, 64), (64,), (64, 64)))
    for ours, theirs in zip(compiled(block)(x, w, v), block(x, w, v), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=2e-4, atol=2e-5)
    assert all("nothing" in line for line in left()), left()
    gradients = []
    for function in (block, compiled(block)):
        sides = [side.clone().requires_grad_() for side in (x, w, v)]
        probabilities, _, greatest = function(*sides)
        (probabilities[:, 0].sum() + greatest.sum()).backward()
        gradients.append([side.grad for side in sides])
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


def test_what_is_not_there_stays_with_torch(left):
    def program(x):
        return torch.fft.rfft(torch.sin(x) * 2).abs() + 1, torch.sort(x * 2)[0]

    x = torch.randn(6, 32)
    for ours, theirs in zip(compiled(program)(x), program(x), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
    assert "fft" in left()[0] and "sort" in left()[0] and "sin" not in left()[0]


def test_tensors_go_in_and_out_in_place(monkeypatch):
    seen = []
    taken = cantus.torch.Part._taken
    monkeypatch.setattr(cantus.torch.Part, "_taken", lambda part, tensor: seen.append((tensor.data_ptr(), taken(part, tensor))) or seen[-1][1])
    given = []
    inner = cantus.torch._given
    monkeypatch.setattr(cantus.torch, "_given", lambda array: given.append((array, inner(array))) or given[-1][1])
    x = torch.randn(100, 64)
    compiled(lambda x: torch.exp(x) + 1)(x)
    (address, array), (result, tensor) = seen[0], given[0]
    assert address == array._x.address() == x.data_ptr() and tensor.data_ptr() == result._x.address()


def test_inputs_that_are_written_to_and_strides():
    def program(x, y):
        x.add_(1)
        return x * y, y.expand(4, 3)[:, None]

    pairs = [(torch.ones(4, 3).T.contiguous().T, torch.arange(3.0)) for _ in range(2)]
    ours, theirs = compiled(program)(*pairs[0]), program(*pairs[1])
    for one, other in zip((*ours, *pairs[0]), (*theirs, *pairs[1]), strict=True):
        torch.testing.assert_close(one, other)


def test_other_lengths_come():
    function = compiled(lambda x: F.softmax(x * 2, -1).sum(0))
    for rows in (3, 4, 9, 1):
        x = torch.randn(rows, 8)
        torch.testing.assert_close(function(x), F.softmax(x * 2, -1).sum(0))


FOLDS = [
    lambda x: x.sum(), lambda x: x.sum(0), lambda x: x.sum((0, 1), keepdim=True), lambda x: x.sum(1, dtype=torch.float64), lambda x: x.mean(),
    lambda x: x.mean(0), lambda x: x.mean(1, dtype=torch.float32), lambda x: x.var(), lambda x: x.var(0, correction=0), lambda x: x.std(1),
    lambda x: x.amax(), lambda x: x.amin(1), lambda x: x.max(), lambda x: x.min(), lambda x: x.max(0).values, lambda x: x.aminmax(dim=0)[0],
    lambda x: x.argmax(), lambda x: x.argmin(1), lambda x: x.any(), lambda x: x.any(0), lambda x: x.all(), lambda x: x.all(1),
    lambda x: x.prod(), lambda x: x.prod(0), lambda x: x.prod(1, dtype=torch.float32), lambda x: x.cumsum(0), lambda x: x.cumsum(1, dtype=torch.float32),
    lambda x: x.cumsum(0, dtype=torch.int32), lambda x: x[0, 0].cumsum(0), lambda x: x.cumprod(0), lambda x: x.cummax(0).values, lambda x: x.cummin(1).values,
    lambda x: x.logsumexp(0), lambda x: x.logcumsumexp(0), lambda x: x.count_nonzero(0), lambda x: x.nansum(0), lambda x: x.norm(),
]  # fmt: skip


@pytest.mark.parametrize("dtype", list(cantus._aten.DTYPES), ids=str)
def test_reductions_and_scans_of_every_dtype(dtype):
    x = (torch.randn(5, 7, generator=torch.Generator().manual_seed(2)) * 3).to(dtype)
    if not dtype.is_floating_point and dtype is not torch.bool:
        x[:3] = torch.iinfo(dtype).max // 2  # sums that need more bits

    def takes(program):
        try:
            program(x)
        except (RuntimeError, NotImplementedError):
            return False
        return True

    programs = [program for program in FOLDS if takes(program)]
    found = compiled(lambda x: [program(x) for program in programs])(x)
    for program, ours, theirs in zip(programs, found, [program(x) for program in programs], strict=True):
        name = str(FOLDS.index(program))
        assert ours.dtype == theirs.dtype, name
        loose = theirs.dtype in (torch.float16, torch.bfloat16)
        torch.testing.assert_close(ours, theirs, rtol=3e-2 if loose else 2e-5, atol=3e-2 if loose else 1e-5, msg=lambda text, name=name: f"{name}: {text}")


def test_places_are_torchs():
    table, x = torch.eye(3), torch.arange(5.0)
    programs = {
        "embedding": lambda at: F.embedding(at, table), "index_select": lambda at: torch.index_select(x, 0, at), "gather": lambda at: torch.gather(x, 0, at),
    }  # fmt: skip
    for name, program in programs.items():
        good = torch.tensor([2, 0])
        torch.testing.assert_close(compiled(program)(good), program(good))
        for place in (-1, 7, 2**32 + 1):
            with pytest.raises((IndexError, RuntimeError), match=str(place)):
                compiled(program)(torch.tensor([1, place])), name


def test_mistakes_are_named():
    with pytest.raises(Exception, match="devise"):
        torch.compile(torch.exp, backend=cantus.torch.backend, options={"devise": 1})(torch.ones(3))


def test_a_llama_of_transformers_is_compiled(left):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=97, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    tokens = torch.randint(0, 97, (2, 11))
    with torch.no_grad():
        expected = model(tokens, use_cache=False).logits
        torch.compiler.reset()
        found = torch.compile(model, backend=cantus.torch.backend)(tokens, use_cache=False).logits
    np.testing.assert_allclose(found.numpy(), expected.numpy(), atol=1e-4)
    assert left(), "nothing was compiled"


def test_the_backend_is_found_by_name():
    from importlib.metadata import entry_points

    if not any(point.value.startswith("cantus") for point in entry_points(group="torch_dynamo_backends")):
        pytest.skip("the package is not installed, only on the path")
    torch.compiler.reset()
    assert torch.compile(torch.exp, backend="cantus")(torch.zeros(3)).tolist() == [1, 1, 1]


def test_operations_meet_special_values():
    """Each function of elements as eager torch has it: NaN, infinities, both zeros, without axes, without elements. Called as the backend calls it."""
    aten, table = torch.ops.aten, cantus._aten.TABLE
    line = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 2.0, 7.25, -1e30])
    grid, whole = line[:, None].expand(12, 12).contiguous(), torch.tensor([0, 1, -1, 2, -3, 7, 2**31 - 1, -(2**31)])
    # Beyond float32 by another way, and the sign that torch leaves open.
    apart, count, wrong = ("hardswish", "fmod", "remainder", "pow.Tensor_Tensor"), 0, []
    for target, ours in table.items():
        name = str(target).removeprefix("aten.")
        if target not in cantus._aten.ELEMENTWISE and name not in ("isnan.default", "isinf.default") or name.startswith(apart):
            continue
        calls = [(x, *others) for x in (grid, line[0], line[:0], whole) for others in ((), (x.T.contiguous() if x.ndim == 2 else x,), (2,), (-1,), (2.5,))]
        for given in calls + [(2.0, line), (2, torch.arange(5))] * (name == "pow.Scalar"):
            if not given[0] is whole and isinstance(given[-1], float) and not isinstance(given[0], torch.Tensor | float):
                continue
            try:
                want = target(*given)
            except (RuntimeError, TypeError, NotImplementedError):
                continue
            dtype = next(one.dtype for one in given if isinstance(one, torch.Tensor))
            if target in cantus._aten.ELEMENTWISE and target not in cantus._aten.COMPARISONS and want.dtype != dtype or isinstance(given[-1], float) and not dtype.is_floating_point:
                continue
            count += 1
            try:
                got = torch.from_dlpack(ours(*(cantus.from_dlpack(one.contiguous()) if isinstance(one, torch.Tensor) else one for one in given)))
                torch.testing.assert_close(got, want, rtol=3e-5, atol=1e-6, equal_nan=True)
                if name.split(".")[0] in ("abs", "ceil", "floor", "neg", "relu", "round", "sign", "trunc", "mul") and want.is_floating_point():
                    assert torch.equal(torch.signbit(got)[want == 0], torch.signbit(want)[want == 0]), "the sign of 0"
            except Exception as error:
                wrong.append(f"{name} {given}: {str(error)[:200]}")
    assert not wrong, "\n".join(wrong)
    assert count > 200
    pad, x = table[aten.constant_pad_nd.default], torch.arange(24.0).reshape(4, 6)
    for widths in ((-1, 2), (1, -1), (-1, 1, 2, -1), (0, -2), (3, 0, -2, 1)):
        assert torch.equal(torch.from_dlpack(pad(cantus.from_dlpack(x), list(widths), 3.0)), F.pad(x, widths, value=3.0))
