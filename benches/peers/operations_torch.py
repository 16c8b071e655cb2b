"""The operations of `cantus bench` in PyTorch, float32, writing into tensors that are there: a peer of the benches.

Reads "NAME SIDE SECONDS", repeats the operation for SECONDS, and answers with the seconds that each call took; with nothing where it has no such
operation."""
import math
import os
import platform

import torch
import torch.nn.functional as F

from turns import answer

torch.set_grad_enabled(False)
torch.manual_seed(1)
# Where it computes; on a GPU each call is waited for, as ours is, and float32 is float32.
DEVICE = os.environ.get("CANTUS_PEER_DEVICE", "cpu")
torch.set_default_device(DEVICE)
torch.backends.cudnn.allow_tf32 = False


def matrix(*shape):
    return torch.rand(*shape)


def prepare(name, n):
    """The operation over squares of side n, without arguments."""
    x, y, row, bias = matrix(n, n), matrix(n, n), matrix(n), matrix(n)
    out = torch.empty(n, n)
    image, pixels = matrix(1, 16, n, n), matrix(1, 1, n, n)
    weight = matrix(16, 16, 3, 3)
    if name == "gelu":
        return lambda: torch._C._nn.gelu(x, out=out)
    if name == "silu":
        return lambda: torch._C._nn.silu(x, out=out)
    if name == "cummax":
        at = torch.empty(n, n, dtype=torch.int64)
        return lambda: torch.cummax(x, -1, out=(out, at))
    if name == "argmax":
        at = torch.empty(n, dtype=torch.int64)
        return lambda: torch.argmax(x, -1, out=at)
    if name == "sort":
        at = torch.empty(n, n, dtype=torch.int64)
        return lambda: torch.sort(x, -1, out=(out, at))
    if name == "topk":
        values, at = torch.empty(n, 8), torch.empty(n, 8, dtype=torch.int64)
        return lambda: torch.topk(x, 8, out=(values, at))
    if name == "scatter_add":
        values, index, bins = matrix(n * n), (matrix(n * n) * 1000).long(), torch.zeros(1024)
        return lambda: torch.scatter_add(bins, 0, index, values, out=torch.empty(1024))
    if name == "gather":
        index, into = torch.randint(0, n, (n, n)), torch.empty(n, n)
        return lambda: torch.gather(x, 0, index, out=into)
    if name == "concat":
        into = torch.empty(2 * n, n)
        return lambda: torch.cat((x, y), out=into)
    if name == "histogram":
        return lambda: torch.histc(x, 256, 0.0, 1.0)
    if name == "transpose":
        turned = x.T
        return lambda: out.copy_(turned)
    if name == "matvec":
        vector = torch.empty(n)
        return lambda: torch.mv(x, row, out=vector)
    if name == "reduce_columns":
        vector = torch.empty(n)
        return lambda: torch.sum(x, 0, out=vector)
    if name == "conv2d":
        return lambda: F.conv2d(image, weight, padding=1)
    if name == "pool2d":
        return lambda: F.max_pool2d(pixels, 2)
    if name == "interpolate":
        return lambda: F.interpolate(pixels, (n // 2, n // 2), mode="bilinear", antialias=True)
    if name == "bmm":
        a, b, c = matrix(64, n, n), matrix(64, n, n), torch.empty(64, n, n)
        return lambda: torch.bmm(a, b, out=c)
    if name == "attention":
        q, k, v = matrix(1, 8, n, 64), matrix(1, 8, n, 64), matrix(1, 8, n, 64)
        return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)
    if name == "fft":
        signal = torch.complex(matrix(n * n), matrix(n * n))
        spectrum = torch.empty_like(signal)
        return lambda: torch.fft.fft(signal, out=spectrum)
    total = torch.empty(())
    return {
        "copy": lambda: out.copy_(x),
        "add": lambda: torch.add(x, y, out=out),
        "add_row": lambda: torch.add(x, row, out=out),
        "softmax": lambda: torch.softmax(x, -1, out=out),
        "rms_norm": lambda: F.rms_norm(x, (n,), row, 1e-6),
        "layer_norm": lambda: torch.native_layer_norm(x, (n,), row, bias, 1e-5),
        "reduce_rows": lambda: torch.sum(x, (0, 1), out=total),
        "cumsum": lambda: torch.cumsum(x, -1, out=out),
        "roll": lambda: torch.roll(x, 3, -1),
        "matmul": lambda: torch.mm(x, y, out=out),
        "random": lambda: out.uniform_(),
    }.get(name)


def main():
    where = f"{torch.get_num_threads()} threads" if DEVICE == "cpu" else torch.cuda.get_device_name()
    print(f"PyTorch {torch.__version__}, Python {platform.python_version()}, {where}", flush=True)
    answer(prepare, wait=None if DEVICE == "cpu" else torch.cuda.synchronize)


main()
