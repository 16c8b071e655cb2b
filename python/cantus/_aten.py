"""ATen's operations as Cantus's, one row each. Operations that are missing here stay with torch."""

from __future__ import annotations

import builtins
import importlib
import math
import operator
from collections.abc import Callable
from typing import Any

from . import _api, _dtypes, nn
from ._array import Array, binary, call, filled, matmul, wrap
from ._indexing import within
from ._numpy import FUNCTIONS

torch: Any = importlib.import_module("torch")
aten = torch.ops.aten
pad = FUNCTIONS["pad"]

DTYPES = {
    torch.bool: _dtypes.bool_,
    torch.int32: _dtypes.int32,
    torch.int64: _dtypes.int64,
    torch.float16: _dtypes.float16,
    torch.bfloat16: _dtypes.bfloat16,
    torch.float32: _dtypes.float32,
    torch.float64: _dtypes.float64,
}

TABLE: dict[Any, Callable[..., Any]] = {operator.getitem: operator.getitem}
# Their operands have one dtype, and so has the result.
ELEMENTWISE: set[Any] = set()
# Worth to be computed once where several read it.
HEAVY: set[Any] = set()


def _row(*targets: Any, heavy: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def put(function: Callable[..., Any]) -> Callable[..., Any]:
        for target in targets:
            TABLE[target] = function
            if heavy:
                HEAVY.add(target)
        return function

    return put


def _one(name: str) -> Callable[[Array], Array]:
    return lambda x: wrap(x._x.unary(name), x._device)


_NAMES = {
    "bitwise_not": "bitwise_not", "hardswish": "hard_swish", "hardsigmoid": "hard_sigmoid",
}  # fmt: skip
for _name in (
    "abs acos acosh asin asinh atan atanh bitwise_not ceil cos cosh erf erfc exp exp2 expm1 floor hardsigmoid hardswish "
    "log log10 log1p log2 logical_not mish neg reciprocal round rsqrt sigmoid silu sin sinh sqrt tan tanh trunc"
).split():
    _target = getattr(aten, _name).default
    TABLE[_target] = _one(_NAMES.get(_name, _name))
    if _name != "logical_not":
        ELEMENTWISE.add(_target)


@_row(aten.sign.default)
def _sign(x: Array) -> Array:
    # 0 of NaN and of -0, which the core's gives back.
    above, below = (x > 0).astype(x.dtype), (x < 0).astype(x.dtype)
    return above if x.dtype.kind == "u" else above - below


@_row(aten.relu.default)
def _relu(x: Array) -> Array:
    return _api.clip(x, 0) if x.dtype.kind in "iu" else wrap(x._x.unary("relu"), x._device)


ELEMENTWISE |= {aten.sign.default, aten.relu.default}
TABLE |= {aten.isnan.default: _api.isnan, aten.isinf.default: _api.isinf}


def _two(name: str, x: Any, y: Any) -> Any:
    return binary(name, x, y) if isinstance(x, Array) else binary(name, y, x, True)


def _both(name: str) -> Callable[[Any, Any], Any]:
    return lambda x, y: _two(name, x, y)


for _name, _ours, _overloads in (
    ("mul", "mul", "Tensor Scalar"),
    ("atan2", "atan2", "default"),
    ("hypot", "hypot", "default"),
    ("fmod", "fmod", "Tensor Scalar"),
    ("maximum", "maximum", "default"),
    ("minimum", "minimum", "default"),
    ("bitwise_and", "bitwise_and", "Tensor Scalar"),
    ("bitwise_or", "bitwise_or", "Tensor Scalar"),
    ("bitwise_xor", "bitwise_xor", "Tensor Scalar"),
    ("eq", "equal", "Tensor Scalar"),
    ("ne", "not_equal", "Tensor Scalar"),
    ("lt", "less", "Tensor Scalar"),
    ("le", "less_equal", "Tensor Scalar"),
    ("gt", "greater", "Tensor Scalar"),
    ("ge", "greater_equal", "Tensor Scalar"),
    ("logical_and", "logical_and", "default"),
    ("logical_or", "logical_or", "default"),
    ("logical_xor", "logical_xor", "default"),
):
    for _overload in _overloads.split():
        _target = getattr(getattr(aten, _name), _overload)
        TABLE[_target] = _both(_ours)
        ELEMENTWISE.add(_target)


@_row(aten.remainder.Tensor, aten.remainder.Scalar)
def _remainder(x: Any, y: Any) -> Any:
    rest = _two("remainder", x, y)
    # Of 0 the sign is that of the dividend, as the rest of C has it.
    return rest if rest.dtype.kind != "f" else _api.where(rest == 0, _two("fmod", x, y), rest)


ELEMENTWISE |= {aten.remainder.Tensor, aten.remainder.Scalar}
COMPARISONS = {getattr(getattr(aten, name), of) for name in "eq ne lt le gt ge".split() for of in ("Tensor", "Scalar")} | {
    getattr(aten, name).default for name in ("logical_and", "logical_or", "logical_xor")
}


@_row(aten.add.Tensor, aten.add.Scalar)
def _add(x: Any, y: Any, alpha: Any = 1) -> Any:
    return _two("add", x, y if alpha == 1 else y * alpha)


@_row(aten.sub.Tensor, aten.sub.Scalar)
def _sub(x: Any, y: Any, alpha: Any = 1) -> Any:
    return _two("sub", x, y if alpha == 1 else y * alpha)


@_row(aten.rsub.Scalar, aten.rsub.Tensor)
def _rsub(x: Any, y: Any, alpha: Any = 1) -> Any:
    return _sub(y, x, alpha)


@_row(aten.div.Tensor, aten.div.Scalar)
def _div(x: Any, y: Any) -> Any:
    return _two("div", x, y)


@_row(aten.pow.Tensor_Scalar, aten.pow.Tensor_Tensor, aten.pow.Scalar)
def _pow(x: Any, y: Any) -> Any:
    # Of halves torch takes the power itself: it is 0 of -0, and infinite of -inf.
    is_root = isinstance(y, float) and abs(y) == 0.5
    if isinstance(y, int | float) and y in (0.5, -0.5, -1, 2) and (y == 2 or x.dtype.kind == "f") and not (is_root and x.dtype.itemsize == 2):
        return wrap(x._x.unary({0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal", 2: "square"}[y]), x._device)
    # Of whole numbers as torch: a negative power of one is 0 unless it is of 1 or -1, and a negative number as the exponent is torch's own error.
    if isinstance(y, int) and y < 0 and isinstance(x, Array) and x.dtype.kind in "iu":
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    return binary("pow", x, y) if isinstance(x, Array) else binary("pow", y, x, True)


@_row(aten.hardtanh.default)
def _hardtanh(x: Array, low: Any = -1, high: Any = 1) -> Any:
    # The limits are of the tensor's dtype.
    return _api.clip(x, int(low), int(high)) if x.dtype.kind in "iu" else _api.clip(x, low, high)


@_row(aten.clamp.default)
def _clamp(x: Array, low: Any = None, high: Any = None) -> Any:
    return _api.clip(x, low, high)


@_row(aten.clamp_min.default)
def _at_least(x: Array, low: Any) -> Any:
    return _api.clip(x, low, None)


@_row(aten.clamp_max.default)
def _at_most(x: Array, high: Any) -> Any:
    return _api.clip(x, None, high)


ELEMENTWISE |= {
    aten.add.Tensor, aten.add.Scalar, aten.sub.Tensor, aten.sub.Scalar, aten.rsub.Scalar, aten.rsub.Tensor, aten.div.Tensor, aten.div.Scalar,
    aten.pow.Tensor_Scalar, aten.pow.Tensor_Tensor, aten.pow.Scalar, aten.clamp.default, aten.hardtanh.default, aten.clamp_min.default,
    aten.clamp_max.default,
}  # fmt: skip


@_row(aten.gelu.default)
def _gelu(x: Array, approximate: str = "none") -> Array:
    return nn.gelu(x, approximate)


@_row(aten.leaky_relu.default)
def _leaky_relu(x: Array, slope: float = 0.01) -> Any:
    # Below 0 the slope turns the sign of 0 as well.
    return _api.where(x > 0, x, x * float(slope)) if slope < 0 else binary("leaky_relu", x, float(slope))


@_row(aten.elu.default)
def _elu(x: Array, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Any:
    below = binary("elu", x * float(input_scale), float(alpha))
    # What is above 0 is not scaled before.
    return (below if input_scale == 1 else _api.where(x > 0, x, below)) * float(scale)


def _as(value: Any, dtype: Any) -> Any:
    """A number of a call as one of a dtype: any but 0 is true, and whole ones have no fraction."""
    if dtype.kind == "b":
        return bool(value)
    return int(value) if dtype.kind in "iu" and isinstance(value, float) and math.isfinite(value) else value


@_row(aten.where.self)
def _where(condition: Array, x: Any, y: Any) -> Array:
    return _api.where(condition, x, y)


@_row(aten.masked_fill.Scalar)
def _masked_fill(x: Array, mask: Array, value: Any) -> Array:
    return _api.where(mask, filled((), _as(value, x.dtype), x.dtype, x._device), x)


# Reductions.


def _axes(x: Array, axes: Any) -> Any:
    # What has no axes takes 0 and -1 for one.
    if x.ndim == 0:
        return None
    return None if axes is None or isinstance(axes, list | tuple) and not axes else tuple(axes) if isinstance(axes, list | tuple) else axes


@_row(aten.sum.default, aten.sum.dim_IntList, heavy=True)
def _sum(x: Array, axes: Any = None, keep: bool = False, dtype: Any = None) -> Array:
    return _api.sum(x, axis=_axes(x, axes), keepdims=keep and x.ndim > 0, dtype=None if dtype is None else DTYPES[dtype])


@_row(aten.mean.default, aten.mean.dim, heavy=True)
def _mean(x: Array, axes: Any = None, keep: bool = False, dtype: Any = None) -> Array:
    return _api.mean(x if dtype is None else x.astype(DTYPES[dtype]), axis=_axes(x, axes), keepdims=keep and x.ndim > 0)


@_row(aten.var.correction, heavy=True)
def _var(x: Array, axes: Any = None, correction: Any = 1, keepdim: bool = False) -> Array:
    return _api.var(x, axis=_axes(x, axes), correction=float(1 if correction is None else correction), keepdims=keepdim and x.ndim > 0)


@_row(aten.amax.default, heavy=True)
def _amax(x: Array, axes: Any = (), keep: bool = False) -> Array:
    return _api.max(x, axis=_axes(x, axes), keepdims=keep and x.ndim > 0)


@_row(aten.amin.default, heavy=True)
def _amin(x: Array, axes: Any = (), keep: bool = False) -> Array:
    return _api.min(x, axis=_axes(x, axes), keepdims=keep and x.ndim > 0)


TABLE |= {aten.max.default: _amax, aten.min.default: _amin}


@_row(aten.argmax.default, heavy=True)
def _argmax(x: Array, axis: int | None = None, keep: bool = False) -> Array:
    return _api.argmax(x, axis=_axes(x, axis), keepdims=keep and x.ndim > 0)


@_row(aten.argmin.default, heavy=True)
def _argmin(x: Array, axis: int | None = None, keep: bool = False) -> Array:
    return _api.argmin(x, axis=_axes(x, axis), keepdims=keep and x.ndim > 0)


@_row(aten.any.default, aten.any.dim, heavy=True)
def _any(x: Array, axis: int | None = None, keep: bool = False) -> Array:
    return _api.any(x, axis=_axes(x, axis), keepdims=keep and x.ndim > 0)


@_row(aten.all.default, aten.all.dim, heavy=True)
def _all(x: Array, axis: int | None = None, keep: bool = False) -> Array:
    return _api.all(x, axis=_axes(x, axis), keepdims=keep and x.ndim > 0)


@_row(aten.cumsum.default, heavy=True)
def _cumsum(x: Array, axis: int, dtype: Any = None) -> Array:
    if x.ndim == 0:
        return _api.reshape(_cumsum(_api.reshape(x, (1,)), 0, dtype), ())
    # Whole numbers become int64, as sums do.
    return _api.cumulative_sum(x, axis=axis, dtype=None if dtype is None else DTYPES[dtype])


# Networks.


@_row(aten._softmax.default, heavy=True)
def _softmax(x: Array, axis: int, half_to_float: bool = False) -> Array:
    if x.ndim == 0:
        return _api.reshape(_softmax(_api.reshape(x, (1,)), 0, half_to_float), ())
    return nn.softmax(x.astype(_dtypes.float32) if half_to_float else x, axis)


@_row(aten._log_softmax.default, heavy=True)
def _log_softmax(x: Array, axis: int, half_to_float: bool = False) -> Array:
    if x.ndim == 0:
        return _api.reshape(_log_softmax(_api.reshape(x, (1,)), 0, half_to_float), ())
    return nn.log_softmax(x.astype(_dtypes.float32) if half_to_float else x, axis)


@_row(aten.native_layer_norm.default)
def _layer_norm(x: Array, shape: list[int], weight: Array | None, bias: Array | None, eps: float) -> tuple[Array, Array, Array]:
    rows = x.shape[: x.ndim - len(shape)]
    flat = _api.reshape(x, (*rows, math.prod(shape)))
    weight, bias = (None if one is None else _api.reshape(one, (-1,)) for one in (weight, bias))
    kept = (*rows, *[1] * len(shape))
    # Only the gradient reads them: what nobody reads is never computed.
    mean = _api.reshape(_api.mean(flat, axis=-1), kept)
    deviation = _api.reshape(wrap((_api.var(flat, axis=-1) + float(eps))._x.unary("rsqrt"), x._device), kept)
    return _api.reshape(nn.layer_norm(flat, weight, bias, eps), x.shape), mean, deviation


@_row(aten.mm.default, aten.bmm.default, aten.matmul.default, aten.mv.default, aten.dot.default, heavy=True)
def _matmul(x: Array, y: Array) -> Array:
    return matmul(x, y)


@_row(aten.addmm.default, aten.baddbmm.default, heavy=True)
def _addmm(bias: Array, x: Array, y: Array, beta: Any = 1, alpha: Any = 1) -> Any:
    product: Any = matmul(x, y)
    if alpha != 1:
        product = product * alpha
    # A bias that does not count gives no NaN either.
    return product if beta == 0 else product + (bias if beta == 1 else bias * beta)


@_row(aten.embedding.default)
def _embedding(table: Array, places: Array, padding: int = -1, scaled: bool = False, sparse: bool = False) -> Array:
    return nn.embedding(_counted(places, table, 0), table)


def _counted(places: Array, of: Array, axis: int) -> Array:
    """Places as torch takes them here: none is below 0."""
    return within(places, of.shape[axis], f"axis {axis}", least=0)


@_row(aten._scaled_dot_product_flash_attention_for_cpu.default, heavy=True)
def _attention(
    q: Array, k: Array, v: Array, dropout: float = 0.0, causal: bool = False, attn_mask: Array | None = None, scale: float | None = None
) -> tuple[Array, Array]:
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale)
    # The sums are for the gradient alone, which takes those of halves in float32.
    wide = _dtypes.float32 if q.dtype.itemsize == 2 else q.dtype
    scores = matmul(q.astype(wide), k.mT.astype(wide)) * factor
    if attn_mask is not None:
        scores = scores + attn_mask.astype(wide)
    if causal:
        tokens = (q.shape[-2], k.shape[-2])
        ones = _api.tril(_api.ones(tokens, dtype=_dtypes.int32, device=q._device)) != 0
        scores = _api.where(ones, scores, filled((), -math.inf, wide, q._device))
    sums = call(scores, "logsumexp", ints=[0, -1])
    return nn.scaled_dot_product_attention(q, k, v, attn_mask, causal, scale), sums


@_row(aten.convolution.default, heavy=True)
def _convolution(
    x: Array, weight: Array, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any, groups: int
) -> Array:
    if len(stride) == 1:
        return nn.conv1d(x, weight, bias, stride[0], padding[0], dilation[0], groups)
    return nn.conv2d(x, weight, bias, tuple(stride), tuple(padding), tuple(dilation), groups)


@_row(aten.avg_pool2d.default, heavy=True)
def _avg_pool2d(x: Array, size: Any, stride: Any = (), padding: Any = (0, 0), ceil: bool = False, include: bool = True) -> Array:
    return nn.avg_pool2d(x, tuple(size), tuple(stride or size), tuple(padding), include)


# Moving.


@_row(aten.view.default, aten.reshape.default, aten._unsafe_view.default)
def _view(x: Array, shape: Any) -> Array:
    return _api.reshape(x, tuple(shape))


@_row(aten.permute.default)
def _permute(x: Array, axes: Any) -> Array:
    return _api.permute_dims(x, tuple(axes))


@_row(aten.t.default)
def _t(x: Array) -> Array:
    return x if x.ndim < 2 else x.mT


@_row(aten.transpose.int)
def _transpose(x: Array, one: int, other: int) -> Array:
    if x.ndim == 0:
        return x
    axes = list(range(x.ndim))
    axes[one], axes[other] = axes[other], axes[one]
    return call(x, "permute", ints=axes)


@_row(aten.expand.default)
def _expand(x: Array, shape: Any, implicit: bool = False) -> Array:
    new = len(shape) - x.ndim
    sides = [x.shape[axis - new] if side == -1 else side for axis, side in enumerate(shape)]
    return _api.broadcast_to(x, tuple(sides))


@_row(aten.unsqueeze.default)
def _unsqueeze(x: Array, axis: int) -> Array:
    return _api.expand_dims(x, axis)


@_row(aten.squeeze.dim, aten.squeeze.dims)
def _squeeze(x: Array, axes: Any) -> Array:
    chosen = [axes] if isinstance(axes, int) else list(axes)
    single = tuple(axis for axis in chosen if x.ndim and x.shape[axis] == 1)
    return _api.squeeze(x, single) if single else x


@_row(aten.slice.Tensor)
def _slice(x: Array, axis: int = 0, start: Any = None, stop: Any = None, step: int = 1) -> Array:
    return x[(slice(None),) * (axis % x.ndim) + (slice(start, stop, step),)]


@_row(aten.select.int)
def _select(x: Array, axis: int, place: int) -> Array:
    return x[(slice(None),) * (axis % x.ndim) + (place,)]


@_row(aten.cat.default)
def _cat(arrays: list[Array], axis: int = 0) -> Array:
    # torch leaves out what has the shape (0,).
    whole = [one for one in arrays if one.shape != (0,)] or arrays[:1]
    return _api.concat(whole, axis=axis) if len(whole) > 1 else whole[0]


@_row(aten.stack.default)
def _stack(arrays: list[Array], axis: int = 0) -> Array:
    return _api.stack(arrays, axis=axis)


@_row(aten.split.Tensor)
def _split(x: Array, size: int, axis: int = 0) -> list[Array]:
    return [_slice(x, axis, start, start + size) for start in range(0, x.shape[axis], size)] or [x]


@_row(aten.split_with_sizes.default)
def _split_with_sizes(x: Array, sizes: list[int], axis: int = 0) -> list[Array]:
    starts = [builtins.sum(sizes[:place]) for place in range(len(sizes))]
    return [_slice(x, axis, start, start + size) for start, size in zip(starts, sizes, strict=True)]


@_row(aten.clone.default, aten.alias.default, aten.detach.default, aten.lift_fresh_copy.default, aten.contiguous.default)
def _same(x: Array, memory_format: Any = None) -> Array:
    return x


@_row(aten._to_copy.default)
def _to_copy(x: Array, dtype: Any = None, **_: Any) -> Array:
    return x if dtype is None else x.astype(DTYPES[dtype])


@_row(aten.flip.default)
def _flip(x: Array, axes: Any) -> Array:
    return _api.flip(x, axis=tuple(axes))


@_row(aten.repeat.default)
def _repeat(x: Array, times: Any) -> Array:
    return _api.tile(x, tuple(times))


@_row(aten.constant_pad_nd.default)
def _pad(x: Array, widths: Any, value: float = 0) -> Array:
    value = _as(value, x.dtype)
    pairs = [(widths[at], widths[at + 1]) for at in range(0, len(widths), 2)][::-1]
    sides = [(0, 0)] * (x.ndim - len(pairs)) + pairs
    if builtins.any(width < 0 for pair in sides for width in pair):
        # A negative width cuts.
        x = x[tuple(slice(builtins.max(-ahead, 0), side + builtins.min(behind, 0)) for (ahead, behind), side in zip(sides, x.shape, strict=True))]
        sides = [(builtins.max(ahead, 0), builtins.max(behind, 0)) for ahead, behind in sides]
    if float(value) != value and not math.isnan(value):  # beyond 2^53
        padded: Array = pad(x, sides, constant_values=value)
        return padded
    return call(x, "pad", ints=[width for pair in sides for width in pair], floats=[float(value)])


@_row(aten.index_select.default)
def _index_select(x: Array, axis: int, places: Array) -> Array:
    if x.ndim == 0:
        return _api.reshape(_index_select(_api.reshape(x, (1,)), 0, _api.reshape(places, (1,))), ())
    return _api.take(x, _counted(places, x, axis), axis=axis)


@_row(aten.gather.default)
def _gather(x: Array, axis: int, places: Array, sparse_grad: bool = False) -> Array:
    if x.ndim == 0 or places.ndim == 0:
        line, at = _api.reshape(x, (-1,)), _api.reshape(places, (-1,))
        return _api.reshape(_gather(line, 0, at), places.shape)
    axis %= x.ndim
    # Along the other axes there may be fewer places than elements.
    x = x[tuple(slice(None) if at == axis else slice(side) for at, side in enumerate(places.shape))]
    return call(x, "gather", [_counted(places, x, axis)], [axis])


@_row(aten.tril.default)
def _tril(x: Array, k: int = 0) -> Array:
    return _api.tril(x, k=k)


@_row(aten.triu.default)
def _triu(x: Array, k: int = 0) -> Array:
    return _api.triu(x, k=k)


# From nothing: on the device of the part.


def _dtype(dtype: Any, value: Any) -> Any:
    if dtype is not None:
        return DTYPES[dtype]
    if isinstance(value, bool):
        return _dtypes.bool_
    return _dtypes.int64 if isinstance(value, int) else DTYPES[torch.get_default_dtype()]


@_row(aten.full.default)
def _full(shape: Any, value: Any, dtype: Any = None, **_: Any) -> Array:
    kind = _dtype(dtype, value)
    return _api.full(tuple(shape), _as(value, kind), dtype=kind)


@_row(aten.scalar_tensor.default)
def _scalar(value: Any, dtype: Any = None, **_: Any) -> Array:
    kind = _dtype(dtype, 0.0)
    return _api.full((), _as(value, kind), dtype=kind)


@_row(aten.zeros.default)
def _zeros(shape: Any, dtype: Any = None, **_: Any) -> Array:
    return _api.zeros(tuple(shape), dtype=_dtype(dtype, 0.0))


@_row(aten.ones.default)
def _ones(shape: Any, dtype: Any = None, **_: Any) -> Array:
    return _api.ones(tuple(shape), dtype=_dtype(dtype, 0.0))


@_row(aten.full_like.default)
def _full_like(x: Array, value: Any, dtype: Any = None, **_: Any) -> Array:
    kind = x.dtype if dtype is None else DTYPES[dtype]
    return _api.full_like(x, _as(value, kind), dtype=kind)


@_row(aten.zeros_like.default)
def _zeros_like(x: Array, dtype: Any = None, **_: Any) -> Any:
    return _full_like(x, 0, dtype)


@_row(aten.ones_like.default)
def _ones_like(x: Array, dtype: Any = None, **_: Any) -> Any:
    return _full_like(x, 1, dtype)


@_row(aten.arange.default)
def _arange(stop: Any, dtype: Any = None, **_: Any) -> Array:
    return _api.arange(0, stop, dtype=_dtype(dtype, stop))


@_row(aten.arange.start, aten.arange.start_step)
def _arange_from(start: Any, stop: Any, step: Any = 1, dtype: Any = None, **_: Any) -> Array:
    return _api.arange(start, stop, step, dtype=_dtype(dtype, start + stop + step))


PRODUCTS = {
    aten.mm.default, aten.bmm.default, aten.matmul.default, aten.mv.default, aten.dot.default, aten.addmm.default, aten.baddbmm.default,
}  # fmt: skip
# torch takes others without elements, and float64 is its to compute.
OF_FLOATS = {aten._softmax.default, aten._log_softmax.default}
# Their float64 is torch's to compute.
NARROW = {getattr(aten, name).default for name in ("erf", "erfc", "hardsigmoid", "hardswish", "mish")}
FRESH = {aten.full.default, aten.scalar_tensor.default, aten.zeros.default, aten.ones.default} | {
    getattr(aten.arange, name) for name in ("default", "start", "start_step")
}
