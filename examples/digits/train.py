"""Trains the network of the digits example and writes its weights, the images and what PyTorch answers. Needs torch, scikit-learn and NumPy."""
import pathlib

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits

torch.manual_seed(7)
here = pathlib.Path(__file__).parent
digits = load_digits()
images = torch.tensor(digits.images / 16, dtype=torch.float32)[:, None]
labels = torch.tensor(digits.target)


class Network(nn.Module):
    """Two convolutions with pooling between them, and two layers."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.norm = nn.LayerNorm(128)
        self.linear1 = nn.Linear(128, 64)
        self.linear2 = nn.Linear(64, 10)

    def forward(self, x):
        x = torch.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = torch.max_pool2d(torch.relu(self.conv2(x)), 2)
        x = self.norm(x.flatten(1))
        return self.linear2(torch.nn.functional.gelu(self.linear1(x)))


network = Network()
optimiser = torch.optim.Adam(network.parameters(), lr=2e-3)
train = torch.arange(len(images)) % 5 != 0
for epoch in range(30):
    order = torch.randperm(int(train.sum()))
    for batch in order.split(64):
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(network(images[train][batch]), labels[train][batch])
        loss.backward()
        optimiser.step()
with torch.no_grad():
    logits = network(images)
    found = logits.argmax(-1)
    print("accuracy on what was not seen:", float((found == labels)[~train].float().mean()))
    best = logits.topk(2).values
    print("least distance between the best two:", float((best[:, 0] - best[:, 1]).min()))
for name, value in network.state_dict().items():
    np.save(here / f"{name.replace('.', '_')}.npy", value.numpy())
np.save(here / "images.npy", images.numpy())
np.save(here / "labels.npy", labels.numpy().astype(np.int32))
np.save(here / "torch_labels.npy", found.numpy().astype(np.uint32))
