"""Functions of neural networks. They record, as all operations do; what follows one of them usually becomes part of its kernel."""

from __future__ import annotations

from typing import Any

from . import _api, _arguments, _dtypes
from ._array import Array, call, calls, filled, matmul, wrap
from ._indexing import within


def _words(x: Array) -> Array:
    """Places as the core takes them."""
    return x if x.dtype.core in ("i32", "u32") else x.astype(_dtypes.int32)


def rms_norm(x: Array, weight: Array, eps: float = 1e-6) -> Array:
    """x / √(mean(x²) + eps) * weight along the last axis: x is (..., n), weight (n).

    >>> import cantus
    >>> cantus.nn.rms_norm(cantus.asarray([3.0, 4.0]), cantus.ones(2)).numpy().round(3)
    array([0.849, 1.131], dtype=float32)
    """
    return call(x, "rms_norm", [weight], floats=[eps])


def layer_norm(x: Array, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5) -> Array:
    """(x - mean) / √(variance + eps) * weight + bias along the last axis.

    >>> import cantus
    >>> cantus.nn.layer_norm(cantus.asarray([1.0, 3.0])).numpy().round(3)
    array([-1.,  1.], dtype=float32)
    """
    n = (x.shape[-1],)
    gain = filled(n, 1, x.dtype, x._device) if weight is None else weight
    offset = filled(n, 0, x.dtype, x._device) if bias is None else bias
    return call(x, "layer_norm", [gain, offset], floats=[eps])


def group_norm(x: Array, groups: int, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5) -> Array:
    """`layer_norm` over groups of channels of (N, C, ...).

    >>> import cantus
    >>> cantus.nn.group_norm(cantus.asarray([[1.0, 3.0]]), 1).numpy().round(3)
    array([[-1.,  1.]], dtype=float32)
    """
    n = (x.shape[1],)
    gain = filled(n, 1, x.dtype, x._device) if weight is None else weight
    offset = filled(n, 0, x.dtype, x._device) if bias is None else bias
    return call(x, "group_norm", [gain, offset], [groups], [eps])


def silu(x: Array) -> Array:
    """x / (1 + e^-x)

    >>> import cantus
    >>> cantus.nn.silu(cantus.asarray([0.0, 1.0])).numpy().round(3)
    array([0.   , 0.731], dtype=float32)
    """
    return wrap(x._x.unary("silu"), x._device)


def gelu(x: Array, approximate: str = "tanh") -> Array:
    """x Φ(x), by tanh (`"tanh"`) or by the error function (`"none"`).

    >>> import cantus
    >>> cantus.nn.gelu(cantus.asarray([0.0, 1.0])).numpy().round(3)
    array([0.   , 0.841], dtype=float32)
    """
    if approximate not in ("tanh", "none"):
        raise ValueError(f"approximate is 'tanh' or 'none', not {approximate!r}")
    return wrap(x._x.unary("gelu_tanh" if approximate == "tanh" else "gelu"), x._device)


def relu(x: Array) -> Array:
    """max(x, 0)

    >>> import cantus
    >>> cantus.nn.relu(cantus.asarray([-1.0, 2.0]))
    array([0., 2.], dtype=float32)
    """
    return wrap(x._x.unary("relu"), x._device)


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x)

    >>> import cantus
    >>> cantus.nn.sigmoid(cantus.zeros(1))
    array([0.5], dtype=float32)
    """
    return wrap(x._x.unary("sigmoid"), x._device)


def softmax(x: Array, axis: int = -1) -> Array:
    """e^x over its sum along an axis.

    >>> import cantus
    >>> cantus.nn.softmax(cantus.zeros(2))
    array([0.5, 0.5], dtype=float32)
    """
    return call(x, "softmax", ints=[axis])


def log_softmax(x: Array, axis: int = -1) -> Array:
    """The logarithm of `softmax`.

    >>> import cantus
    >>> cantus.nn.log_softmax(cantus.zeros(2)).numpy().round(3)
    array([-0.693, -0.693], dtype=float32)
    """
    return call(x, "log_softmax", ints=[axis])


def linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """x Wᵀ + bias: x is (..., in), weight (out, in) as PyTorch has it, bias (out).

    >>> import cantus
    >>> cantus.nn.linear(cantus.ones((1, 3)), cantus.ones((2, 3)))
    array([[3., 3.]], dtype=float32)
    """
    product = matmul(x, weight.mT)
    return product if bias is None else product + bias


def _pair(value: int | tuple[int, int]) -> list[int]:
    return [value, value] if isinstance(value, int) else list(value)


def conv1d(
    x: Array, weight: Array, bias: Array | None = None, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1
) -> Array:
    """A correlation of (N, C, L) with (O, C / groups, K).

    >>> import cantus
    >>> cantus.nn.conv1d(cantus.ones((1, 1, 4)), cantus.ones((1, 1, 2)))
    array([[[2., 2., 2.]]], dtype=float32)
    """
    result = call(x, "conv1d", [weight], [stride, padding, dilation, groups])
    return result if bias is None else result + _api.reshape(bias, (-1, 1))


def conv2d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] = 0,
    dilation: int | tuple[int, int] = 1,
    groups: int = 1,
) -> Array:
    """A correlation of (N, C, H, W) with (O, C / groups, K, L).

    >>> import cantus
    >>> cantus.nn.conv2d(cantus.ones((1, 1, 3, 3)), cantus.ones((1, 1, 2, 2))).shape
    (1, 1, 2, 2)
    """
    result = call(x, "conv2d", [weight], [*_pair(stride), *_pair(padding), *_pair(dilation), groups])
    return result if bias is None else result + _api.reshape(bias, (-1, 1, 1))


def max_pool2d(
    x: Array,
    kernel_size: int | tuple[int, int],
    stride: int | tuple[int, int] | None = None,
    padding: int | tuple[int, int] = 0,
) -> Array:
    """The greatest in windows of (N, C, H, W).

    >>> import cantus
    >>> cantus.nn.max_pool2d(cantus.ones((1, 1, 4, 4)), 2).shape
    (1, 1, 2, 2)
    """
    size = _pair(kernel_size)
    return call(x, "max_pool2d", ints=[*size, *(size if stride is None else _pair(stride)), *_pair(padding), 1, 1])


def avg_pool2d(
    x: Array,
    kernel_size: int | tuple[int, int],
    stride: int | tuple[int, int] | None = None,
    padding: int | tuple[int, int] = 0,
    count_include_pad: bool = True,
) -> Array:
    """The mean of windows of (N, C, H, W).

    >>> import cantus
    >>> cantus.nn.avg_pool2d(cantus.ones((1, 1, 4, 4)), 2).shape
    (1, 1, 2, 2)
    """
    size = _pair(kernel_size)
    step = size if stride is None else _pair(stride)
    return call(x, "avg_pool2d", ints=[*size, *step, *_pair(padding), 1, 1, int(count_include_pad)])


def max_pool1d(x: Array, kernel_size: int, stride: int | None = None, padding: int = 0) -> Array:
    """The greatest in windows of (N, C, L).

    >>> import cantus
    >>> cantus.nn.max_pool1d(cantus.asarray([[[1.0, 4.0, 2.0, 3.0]]]), 2)
    array([[[4., 3.]]], dtype=float32)
    """
    step = kernel_size if stride is None else stride
    return _api.squeeze(max_pool2d(_api.expand_dims(x, axis=-2), (1, kernel_size), (1, step), (0, padding)), axis=-2)


def avg_pool1d(x: Array, kernel_size: int, stride: int | None = None, padding: int = 0, count_include_pad: bool = True) -> Array:
    """The mean of windows of (N, C, L).

    >>> import cantus
    >>> cantus.nn.avg_pool1d(cantus.asarray([[[1.0, 4.0, 2.0, 3.0]]]), 2)
    array([[[2.5, 2.5]]], dtype=float32)
    """
    step = kernel_size if stride is None else stride
    return _api.squeeze(avg_pool2d(_api.expand_dims(x, axis=-2), (1, kernel_size), (1, step), (0, padding), count_include_pad), axis=-2)


def embedding(indices: Array, table: Array) -> Array:
    """Returns the rows of a table (words, width) that integers name: (..., width).

    >>> import cantus
    >>> cantus.nn.embedding(cantus.asarray([1]), cantus.asarray([[1.0, 2.0], [3.0, 4.0]]))
    array([[3., 4.]], dtype=float32)
    """
    return call(within(indices, table.shape[0], "the table"), "embedding", [table])


def scaled_dot_product_attention(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    is_causal: bool = False,
    scale: float | None = None,
) -> Array:
    """softmax(Q Kᵀ scale + mask) V, of (..., tokens, width). A mask of bool keeps where it is true; one of floats is added. The scale is
    1 / √width by itself. Heads of keys and values are repeated where queries have a multiple of them.

    >>> import cantus
    >>> cantus.nn.scaled_dot_product_attention(*[cantus.ones((1, 2, 4))] * 3).shape
    (1, 2, 4)
    """
    if query.ndim >= 3 and key.shape[-3] != query.shape[-3]:
        times = query.shape[-3] // key.shape[-3]
        key, value = (_api.repeat(side, times, axis=-3) for side in (key, value))
    others = [key, value] if mask is None else [key, value, mask]
    return call(query, "attention", others, [int(is_causal)], [] if scale is None else [float(scale)])


def rope(x: Array, positions: Array, base: float = 10000.0, interleaved: bool = False) -> Array:
    """Rotary position embedding of (..., tokens, width) at integer positions (tokens). Pairs are halves of the vector, as in Llama, or
    neighbours (`interleaved`).

    >>> import cantus
    >>> cantus.nn.rope(cantus.ones((2, 4)), cantus.arange(2)).shape
    (2, 4)
    """
    return call(x, "rope", [_words(positions)], [int(interleaved)], [base])


def dropout(x: Array, p: float, seed: int) -> Array:
    """Sets elements to 0 with probability p and divides the rest by 1 - p; the same for the same seed.

    >>> import cantus
    >>> cantus.nn.dropout(cantus.ones(1000), 0.5, seed=3).shape
    (1000,)
    """
    return call(x, "dropout", ints=[seed], floats=[p])


def cross_entropy(logits: Array, target: Array) -> Array:
    """The mean of -log softmax(logits)[target], of (N, classes) and (N).

    >>> import cantus
    >>> cantus.nn.cross_entropy(cantus.zeros((1, 2)), cantus.asarray([1])).numpy().round(3)
    np.float32(0.693)
    """
    return call(logits, "cross_entropy", [within(target, logits.shape[-1], "the classes", least=0)])


def topk(x: Array, k: int, axis: int = -1, largest: bool = True) -> tuple[Array, Array]:
    """The k greatest along an axis, and their places.

    >>> import cantus
    >>> cantus.nn.topk(cantus.asarray([1.0, 9.0, 5.0]), 2)[0]
    array([9., 5.], dtype=float32)
    """
    values, places = calls(x, "topk", ints=[k, axis, int(largest)])
    return values, places.astype(_api.default_int(x._device))


def one_hot(indices: Array, classes: int, dtype: Any = None) -> Array:
    """1 at each integer's place along a new last axis, and 0 elsewhere. An integer that is not a class gives 0 everywhere.

    >>> import cantus
    >>> cantus.nn.one_hot(cantus.asarray([1]), 3)
    array([[0., 1., 0.]], dtype=float32)
    """
    # Cut to 32 bits another number may become a class.
    indices = _api.minimum(indices, classes) if indices.dtype.itemsize == 8 else indices
    indices = _api.maximum(indices, -1) if indices.dtype is _dtypes.int64 else indices
    result = call(_words(indices), "one_hot", ints=[classes])
    return result if dtype is None else result.astype(dtype)


_arguments.enter(globals(), "nn.")
