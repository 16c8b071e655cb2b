"""Writes what PyTorch computes for the operations whose definitions are easily got wrong: inputs and results, as .npy beside this file."""
import pathlib

import numpy as np
import torch
import torch.nn.functional as F

torch.manual_seed(3)
folder = pathlib.Path(__file__).parent / "reference"
folder.mkdir(exist_ok=True)


def save(name, value):
    np.save(folder / f"{name}.npy", value.numpy())


image, weight = torch.randn(2, 4, 11, 9), torch.randn(6, 2, 3, 2)
rows, gain, bias = torch.randn(5, 37) * 3, torch.randn(37), torch.randn(37)
save("image", image)
save("weight", weight)
save("rows", rows)
save("gain", gain)
save("bias", bias)
save("conv2d", F.conv2d(image, weight, stride=(2, 1), padding=(1, 1), dilation=(1, 2), groups=2))
save("max_pool2d", F.max_pool2d(image, (3, 2), stride=(2, 2), padding=(1, 1), dilation=(2, 1)))
save("avg_pool2d", F.avg_pool2d(image, (3, 2), stride=(1, 2), padding=(1, 1), count_include_pad=True))
save("avg_pool2d_inside", F.avg_pool2d(image, (3, 2), stride=(1, 2), padding=(1, 1), count_include_pad=False))
save("rms_norm", F.rms_norm(rows, (37,), gain, 1e-6))
save("layer_norm", F.layer_norm(rows, (37,), gain, bias, 1e-5))
save("softmax", F.softmax(rows, 0))
save("log_softmax", F.log_softmax(rows, 1))
save("relu", F.relu(rows))
save("sigmoid", torch.sigmoid(rows))
save("silu", F.silu(rows))
save("gelu", F.gelu(rows))
save("gelu_tanh", F.gelu(rows, approximate="tanh"))
save("variance", rows.var(1, unbiased=True))
