"""Products and convolutions in PyTorch, float32: a peer of `products`.

Reads "NAME:NUMBERS 0 SECONDS", repeats the operation for SECONDS, and answers with the seconds that each call took; for -1 seconds with the sum of
the result's squares and some of its elements."""
import platform

import numpy
import torch
import torch.nn.functional as F

from turns import answer

torch.set_grad_enabled(False)


def numbers(shape, seed):
    """By a linear congruence, the same as the bench's: each block of them from the one before, by the congruence's own powers."""
    count = int(numpy.prod(shape))
    states = numpy.empty(count, dtype=numpy.uint32)
    a, c, done = 1664525, 1013904223, 1
    states[0] = (seed * a + c) & 0xFFFFFFFF
    while done < count:
        more = min(done, count - done)
        states[done : done + more] = states[:more] * numpy.uint32(a) + numpy.uint32(c)
        a, c, done = a * a & 0xFFFFFFFF, (a * c + c) & 0xFFFFFFFF, done + more
    return torch.from_numpy(((states >> 8).astype(numpy.float64) / 16777216.0 - 0.5).astype(numpy.float32)).reshape(shape)


def prepare(name, _side):
    kind, parameters = name.split(":")
    parameters = [int(number) for number in parameters.split(",")]
    if kind == "conv":
        c, side, o, k, stride, padding, dilation, groups = parameters
        x, w = numbers((1, c, side, side), 1), numbers((o, c // groups, k, k), 2)
        return lambda: F.conv2d(x, w, None, stride, padding, dilation, groups)
    if kind == "half":
        side, dtype = parameters[0], torch.bfloat16 if parameters[1] else torch.float16
        a, b, out = numbers((side, side), 1).to(dtype), numbers((side, side), 2).to(dtype), torch.empty(side, side, dtype=dtype)
        return lambda: torch.mm(a, b, out=out)
    if kind == "bytes":
        side, transposed = parameters
        a, b = ((numbers((side, side), seed) * 254).to(torch.int8) for seed in (1, 2))
        b, out = b.mT if transposed else b, torch.empty(side, side, dtype=torch.int32)
        return lambda: torch._int_mm(a, b, out=out)
    batch, m, k, n, left, right, linear = parameters
    a = numbers((batch, k, m) if left else (batch, m, k), 1)
    b = numbers((batch, n, k) if right else (batch, k, n), 2)
    bias = numbers((n,), 3)
    a, b = a.mT if left else a, b.mT if right else b
    if linear:
        weight = b[0].mT
        return lambda: F.gelu(F.linear(a[0], weight, bias))
    if batch == 1:
        a, b, out = a[0], b[0], torch.empty(m, n)
        return lambda: torch.mm(a, b, out=out)
    out = torch.empty(batch, m, n)
    return lambda: torch.bmm(a, b, out=out)


def told(result):
    """The sum of the squares, and some elements."""
    result = result.double().flatten()
    count = min(64, result.numel())
    return [float((result**2).sum()), *result[:: result.numel() // count][:count].tolist()]


def main():
    print(f"PyTorch {torch.__version__}, Python {platform.python_version()}, {torch.get_num_threads()} threads", flush=True)
    answer(prepare, told)


main()
