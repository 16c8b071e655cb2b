"""Tensor operations in PyTorch and NumPy, float32: a peer of the benches. Reads a row's name, answers "SECONDS VALUE"."""
import platform
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

torch.set_grad_enabled(False)
torch.manual_seed(1)


def rand(*shape):
    return torch.rand(*shape) * 8 - 4


class Rows:
    def __init__(self):
        self.kept = {}

    def tensor(self, name, *shape):
        key = (name, shape)
        if key not in self.kept:
            self.kept[key] = rand(*shape)
        return self.kept[key]

    def run(self, name):
        side = 4096
        if name.startswith("matmul"):
            n = int(name.split("_")[1])
            a, b = self.tensor("a", n, n), self.tensor("b", n, n)
            return lambda: a @ b
        x = lambda: self.tensor("x", side, side)
        y = lambda: self.tensor("y", side, side)
        row = lambda label: self.tensor(label, side)
        if name == "conv2d":
            image, weight = self.tensor("i", 8, 64, 56, 56), self.tensor("w", 64, 64, 3, 3)
            return lambda: F.conv2d(image, weight, padding=1)
        if name == "rms_norm":
            s, g = self.tensor("s", 128, side), row("g")
            return lambda: F.rms_norm(s, (side,), g, 1e-6)
        if name == "numpy_rms_norm":
            s, g = self.tensor("s", 128, side).numpy(), row("g").numpy()
            return lambda: s / np.sqrt((s * s).mean(axis=-1, keepdims=True) + np.float32(1e-6)) * g
        if name == "numpy_gelu":
            v = x().numpy()
            return lambda: np.float32(0.5) * v * (1 + np.tanh(np.float32(0.7978845608) * (v + np.float32(0.044715) * v * v * v)))
        if name == "gelu_affine":
            a, w, b = x(), y(), row("b")
            return lambda: F.gelu(a * w + b)
        if name == "normalise":
            a, g, b = x(), row("g"), row("b")

            def chain():
                mean = a.mean(-1, keepdim=True)
                var = a.var(-1, keepdim=True, unbiased=False)
                return (a - mean) / torch.sqrt(var + 1e-5) * g + b

            return chain
        if name == "silu_mul":
            a, b = x(), y()
            return lambda: F.silu(a) * b
        a = x()
        if name == "add_row":
            b = row("b")
            return lambda: a + b
        return {
            "silu": lambda: F.silu(a),
            "gelu": lambda: F.gelu(a),
            "softmax": lambda: F.softmax(a, -1),
            "sum": lambda: a.sum(),
            "copy": lambda: a.clone(),
        }[name]


def main():
    print(f"PyTorch {torch.__version__}, NumPy {np.__version__}, Python {platform.python_version()}, {torch.get_num_threads()} threads", flush=True)
    rows = Rows()
    for line in sys.stdin:
        work = rows.run(line.split()[0])
        start = time.perf_counter()
        value = work()
        seconds = time.perf_counter() - start
        value = float(value.reshape(-1)[0])
        print(seconds, value, flush=True)


main()
