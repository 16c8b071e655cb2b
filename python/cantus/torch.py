"""`torch.compile(backend="cantus")`: the parts of a program that Cantus computes, each compiled to its kernels; the rest stays with torch.

The backend is found by its name once the wheel is installed; `torch.compile(model, backend=cantus.torch.backend)` is the same. Tensors of the
processor go in and out without a copy. `options={"device": "vulkan"}` computes on another device, with copies. Gradients are programs like any
other: they are compiled too.

>>> import cantus.torch, torch                                        # doctest: +SKIP
>>> silu = torch.compile(torch.nn.functional.silu, backend="cantus")  # doctest: +SKIP
>>> silu(torch.zeros(3))                                              # doctest: +SKIP
tensor([0., 0., 0.])
"""

from __future__ import annotations

import importlib
import logging
import operator
from collections.abc import Callable, Sequence
from typing import Any

from . import _api, _aten, _devices
from ._array import Array
from ._devices import Device

torch: Any = _aten.torch
aot: Any = importlib.import_module("torch._dynamo.backends.common")
partitioner: Any = importlib.import_module("torch.fx.passes.infra.partitioner")
support: Any = importlib.import_module("torch.fx.passes.operator_support")

log = logging.getLogger(__name__)


def _tensors(node: Any) -> list[Any]:
    """The descriptions of the tensors that a node reads."""
    found = [other.meta.get("val") for other in node.all_input_nodes]
    return [value for value in found if isinstance(value, torch.Tensor)]


def _known(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(_known(one) for one in value)
    if not isinstance(value, torch.Tensor):
        return value is None or isinstance(value, int | float | bool | torch.SymInt)
    return value.dtype in _aten.DTYPES and value.device.type == "cpu" and value.layout is torch.strided


def computes(node: Any) -> bool:
    """Returns whether Cantus computes an operation as torch does."""
    target = node.target
    if node.op != "call_function" or target not in _aten.TABLE:
        return False
    inputs, result = _tensors(node), node.meta.get("val")
    if target is _getitem:
        return computes(node.args[0])
    if not inputs and target not in _aten.FRESH or not all(map(_known, inputs)) or not _known(result):
        return False
    if target in _aten.ELEMENTWISE:
        dtype = inputs[0].dtype
        same = all(one.dtype == dtype for one in inputs) and not (dtype is torch.float64 and target in _aten.NARROW)
        if target in _aten.COMPARISONS:
            return same and not (not dtype.is_floating_point and any(isinstance(one, float) for one in node.args))
        return same and result.dtype == dtype and (dtype is not torch.bool or "bitwise" in str(target))
    rule = _RULES.get(target)
    return rule is None or bool(rule(node, inputs))


_getitem = operator.getitem
aten = _aten.aten

# When an operation of the table is Cantus's.
_RULES: dict[Any, Callable[[Any, list[Any]], bool]] = {
    aten.where.self: lambda node, inputs: len({one.dtype for one in inputs if one.dtype is not torch.bool}) <= 1,
    aten.convolution.default: lambda node, inputs: inputs[0].dim() in (3, 4) and not node.args[6] and inputs[0].dtype is torch.float32,
    aten.avg_pool2d.default: lambda node, inputs: not any(node.args[4:5]) and len(node.args) < 7 and inputs[0].dim() == 4 and inputs[0].dtype.is_floating_point and inputs[0].dtype is not torch.float64,
    aten._scaled_dot_product_flash_attention_for_cpu.default: lambda node, inputs: not (node.args[3:4] and node.args[3]) and inputs[0].dtype is not torch.float64,
    aten.native_layer_norm.default: lambda node, inputs: len({one.dtype for one in inputs}) == 1 and inputs[0].dtype is not torch.float64,
    aten.cat.default: lambda node, inputs: len({one.dtype for one in inputs}) == 1,
    aten.stack.default: lambda node, inputs: len({one.dtype for one in inputs}) == 1,
    **dict.fromkeys(_aten.PRODUCTS, lambda node, inputs: inputs[0].dtype is not torch.bool),
    **dict.fromkeys(_aten.OF_FLOATS, lambda node, inputs: inputs[0].dtype.is_floating_point and inputs[0].dtype is not torch.float64),
    aten.gelu.default: lambda node, inputs: inputs[0].dtype is not torch.float64,
    aten._to_copy.default: lambda node, inputs: set(node.kwargs) <= {"dtype", "layout", "device", "pin_memory", "memory_format"},
}


class _Support(support.OperatorSupportBase):  # type: ignore[misc]
    def is_node_supported(self, submodules: Any, node: Any) -> bool:
        return computes(node)


# Their results come of what they read without arithmetic: alone they are no work for a device.
_MOVES = {
    aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.permute.default, aten.t.default, aten.transpose.int,
    aten.expand.default, aten.unsqueeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.slice.Tensor, aten.select.int,
    aten.alias.default, aten.detach.default, aten.clone.default, aten.lift_fresh_copy.default, _getitem, *_aten.FRESH,
}  # fmt: skip


class Part:
    """A part of a program, computed by Cantus: torch's tensors in and out."""

    def __init__(self, graph: Any, device: Device) -> None:
        self.device = device
        self.steps: list[tuple[Callable[..., Any], Any, Any, int, bool]] = []
        self.inputs: list[int] = []
        # Places that are no longer read after a step.
        self.done: list[list[int]] = []
        places: dict[Any, int] = {}
        last: dict[int, int] = {}
        for node in graph.nodes:
            if node.op == "placeholder":
                places[node] = len(places)
                self.inputs.append(places[node])
            elif node.op == "call_function":
                for other in node.all_input_nodes:
                    last[places[other]] = len(self.steps)
                args, kwargs = (
                    torch.fx.node.map_arg(of, lambda other: _Place(places[other])) for of in (node.args, node.kwargs)
                )
                places[node] = len(places)
                once = node.target in _aten.HEAVY and len(node.users) > 1
                self.steps.append((_aten.TABLE[node.target], args, kwargs, places[node], once))
                last[places[node]] = len(self.steps) - 1
            else:
                result = node.args[0]
                self.many = isinstance(result, tuple | list)
                self.outputs = [places[one] for one in (result if self.many else [result])]
        self.done = [[] for _ in self.steps]
        for place, step in last.items():
            if place not in self.outputs:
                self.done[step].append(place)
        self.count = len(places)

    def __call__(self, *inputs: Any) -> Any:
        values: list[Any] = [None] * self.count
        for place, value in zip(self.inputs, inputs, strict=True):
            values[place] = self._taken(value) if isinstance(value, torch.Tensor) else value
        with self.device:
            for (function, args, kwargs, place, once), done in zip(self.steps, self.done, strict=True):
                result = function(*_filled(args, values), **_filled(kwargs, values))
                if once and isinstance(result, Array):
                    result.eval()
                values[place] = result
                for old in done:
                    values[old] = None
        results = tuple(_given(values[place]) for place in self.outputs)
        return results if self.many else results[0]

    def _taken(self, tensor: Any) -> Array:
        return _api.from_dlpack(tensor.detach().contiguous()).to(self.device)


class _Place(int):
    """The place of a step's value."""


def _filled(of: Any, values: list[Any]) -> Any:
    kind = type(of)
    if kind is _Place:
        return values[of]
    if isinstance(of, tuple | list):
        return [_filled(one, values) for one in of]
    if isinstance(of, dict):
        return {name: _filled(one, values) for name, one in of.items()}
    return of


def _given(array: Any) -> Any:
    if not isinstance(array, Array):
        return array
    if not array.device.is_host:
        array = array.to("cpu")
    return torch.from_dlpack(array)


def _compiled(module: Any, device: Device) -> Any:
    parted = partitioner.CapabilityBasedPartitioner(module, _Support(), allows_single_node_partition=True)
    found = parted.propose_partitions()
    fused = parted.fuse_partitions([part for part in found if any(node.target not in _MOVES for node in part.nodes)])
    named = [node for node in fused.graph.nodes if node.op == "call_module"]
    for node in named:
        fused.add_submodule(node.target, _Called(Part(fused.get_submodule(node.target).graph, device)))
    rest = [str(node.target) for node in fused.graph.nodes if node.op == "call_function" and node.target is not _getitem]
    log.debug("%d parts by Cantus; torch computes %s", len(named), ", ".join(sorted(set(rest))) or "nothing")
    fused.recompile()
    return fused


class _Called(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, part: Part) -> None:
        super().__init__()
        self.part = part

    def forward(self, *inputs: Any) -> Any:
        return self.part(*inputs)


def backend(module: Any, inputs: Sequence[Any], **keywords: Any) -> Any:
    """The backend that `torch.compile` calls with a program."""
    options = dict(keywords.pop("options", None) or {})
    chosen = options.pop("device", None)
    if options:
        raise ValueError(f"the backend cantus only has the option device, not {', '.join(options)}")
    device = _api._host() if chosen is None else _devices.device(chosen)

    boxed = importlib.import_module("torch._functorch.aot_autograd").make_boxed_func

    def compiler(part: Any, _: Sequence[Any]) -> Any:
        return boxed(_compiled(part, device).forward)

    return aot.aot_autograd(fw_compiler=compiler, bw_compiler=compiler)(module, inputs)
