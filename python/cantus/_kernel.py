"""The user's own kernels, in WGSL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any

import numpy as np

from . import _api, _core, _devices, _texture
from ._array import Array


class Kernel:
    """A kernel from WGSL. Calling it binds arrays and numbers by name and runs it; arrays that it writes take the result.

    >>> import cantus
    >>> saxpy = cantus.kernel('''
    ...     struct Params { a: f32 }
    ...     @group(0) @binding(0) var<uniform> params: Params;
    ...     @group(0) @binding(1) var<storage> x: array<f32>;
    ...     @group(0) @binding(2) var<storage, read_write> y: array<f32>;
    ...     @compute @workgroup_size(64)
    ...     fn saxpy(@builtin(global_invocation_id) id: vec3u) {
    ...         if id.x < arrayLength(&y) { y[id.x] += params.a * x[id.x]; }
    ...     }
    ... ''')
    >>> x, y = cantus.ones(3), cantus.zeros(3)
    >>> saxpy(x=x, y=y, a=2.0, invocations=x.size)
    >>> y
    array([2., 2., 2.], dtype=float32)
    """

    def __init__(
        self,
        text: str = "",
        entry_point: str | None = None,
        overrides: dict[str, float] | None = None,
        *,
        path: str | PathLike[str] | None = None,
        features: Iterable[str] = (),
    ) -> None:
        if bool(text) == (path is not None):
            raise ValueError("give the kernel either as text or as path=...")
        if text.rstrip().endswith(".wgsl") and "\n" not in text.strip():
            raise ValueError(f"{text!r} is the name of a file: give it as path={text!r}")
        values = [(name, float(value)) for name, value in (overrides or {}).items()]
        self._kernel = _core.Kernel(text, entry_point, values, path, list(features))
        self.text = text or self._kernel.wgsl()
        self.reflection: dict[str, Any] = self._kernel.reflection()
        self._bindings = {name: (space, writes) for name, _, _, space, writes, _ in self.reflection["bindings"]}
        self._textures = {name: rest for name, _, _, *rest in self.reflection["textures"]}
        self._samplers = {name: comparison for name, _, _, comparison in self.reflection["samplers"]}

    @property
    def name(self) -> str:
        """The entry point's name."""
        return str(self.reflection["entry_point"])

    def __call__(
        self,
        *,
        invocations: int | tuple[int, ...] | None = None,
        workgroups: int | tuple[int, ...] | None = None,
        device: Any = None,
        **arguments: Any,
    ) -> None:
        """Runs the kernel: arrays for storage bindings, numbers (or sequences of them) for uniforms and their members, by name. A member of the only
        uniform structure needs its own name alone; `params__a` stands for `params.a`. Textures take a `Texture`, and those that are only read
        also an array (of height x width x channels, with layers or depth first where the kernel has them) or a picture of PIL; samplers take a `Sampler`, and without one they are linear and clamp to
        the edge."""
        if (invocations is None) == (workgroups is None):
            raise ValueError("say how much to run: either invocations=... or workgroups=...")
        arrays: dict[str, Array] = {}
        numbers: list[tuple[str, list[float]]] = []
        uniforms = [name for name, (space, _) in self._bindings.items() if space == "uniform"]
        structures: list[tuple[str, Any]] = []
        images = {name: arguments.pop(name) for name in self._textures if name in arguments}
        samplers = [(name, _texture.sampling(arguments.pop(name, None), name, self._samplers[name])) for name in self._samplers]
        for name, value in arguments.items():
            space = self._bindings.get(name, (None, False))[0]
            if isinstance(value, np.ndarray | np.void) and value.dtype.names:
                if space == "storage":
                    structures.append((name, value))
                    arrays[name] = self._packed(name, np.atleast_1d(np.asarray(value)), device)
                elif space == "uniform":
                    numbers.extend(_members(name, np.asarray(value)))
                else:
                    raise _core.KernelError(f"the kernel {self.name} has no binding {name} (it has {', '.join(self._names())})")
                continue
            if space == "storage":
                arrays[name] = value if isinstance(value, Array) else _api.asarray(value, device=device)
                if not isinstance(value, Array) and self._bindings[name][1]:
                    raise _core.KernelError(f"{name} is written: give it an array of Cantus (cantus.asarray)")
                continue
            path = name.replace("__", ".")
            if space is None and "." not in path:
                if len(uniforms) != 1:
                    raise _core.KernelError(
                        f"the kernel {self.name} has no binding {name} (it has {', '.join(self._names())}; a member of a "
                        "uniform structure is written binding__member)"
                    )
                path = f"{uniforms[0]}.{name}"
            numbers.append((path, [float(part) for part in np.ravel(np.asarray(value))]))
        devices = {array._device for array in arrays.values()}
        devices |= {image.device for image in images.values() if isinstance(image, _texture.Texture)}
        if len(devices) > 1:
            raise ValueError(f"the arrays are on several devices: {', '.join(map(str, devices))} (x.to)")
        target = devices.pop() if devices else _devices.device(device)
        bound = []
        written: list[tuple[Array, _core.Lazy]] = []
        for name, array in arrays.items():
            x = array._x
            if self._bindings[name][1]:
                # Other arrays may read what this one was.
                x = x.copy()
                written.append((array, x))
            bound.append((name, x))
        textures = [(name, _texture.bound(image, name, self._textures[name], target)) for name, image in images.items()]
        target.engine.run(self._kernel, bound, textures, samplers, numbers, _extent(invocations), _extent(workgroups))
        for array, x in written:
            array._x = x
        for name, value in structures:
            if self._bindings[name][1]:
                self._unpacked(name, np.asarray(arrays[name]), value)

    def _packed(self, name: str, values: Any, device: Any) -> Array:
        """NumPy's structures as the kernel lays them out, its members by their names."""
        if name not in self.reflection["structures"]:
            raise TypeError(f"{name} holds no structures: give it an array of numbers, not of {values.dtype}")
        stride, members = self.reflection["structures"][name]
        if stride % 4:
            raise TypeError(f"{name}: structures of {stride} bytes are no whole words")
        unknown = set(values.dtype.names) - {path[0] for path, *_ in members}
        if unknown:
            raise TypeError(f"{name}: the structure has no member {', '.join(sorted(unknown))} (it has {', '.join(dict.fromkeys(path[0] for path, *_ in members))})")
        memory = np.zeros(values.size * stride // 4, "u4")
        for path, target in _seen(memory, stride, members, values.size):
            target[...] = _member(values.ravel(), path, target, name)
        # One dtype for all members, where they have one; else words.
        kinds = {scalar for _, _, scalar, _ in members}
        return _api.asarray(memory.view("f4") if kinds == {"f32"} else memory.view("i4") if kinds == {"i32"} else memory, device=device)

    def _unpacked(self, name: str, memory: Any, values: Any) -> None:
        """Copies the members that the kernel wrote back into NumPy's structures."""
        if not isinstance(values, np.ndarray) or not values.flags.writeable:
            raise _core.KernelError(f"{name} is written: give it a NumPy array that can be written to")
        stride, members = self.reflection["structures"][name]
        flat = np.empty(values.size, values.dtype)
        flat[...] = values.ravel()
        for path, source in _seen(memory, stride, members, values.size):
            _member(flat, path, source, name)[...] = source
        values[...] = flat.reshape(values.shape)

    def _names(self) -> list[str]:
        return [*self._bindings, *self._textures, *self._samplers]

    def _table(self) -> _devices.Table:
        table = _Bindings()
        for name, group, binding, space, writes, layout in self.reflection["bindings"]:
            access = "read_write" if writes else "read"
            table.append({"binding": name, "at": f"{group}, {binding}", "space": space, "access": access, "type": layout})
        for name, group, binding, _, _, writes, text, _ in self.reflection["textures"]:
            access = "write" if writes else "read"
            table.append({"binding": name, "at": f"{group}, {binding}", "space": "texture", "access": access, "type": text})
        for name, group, binding, comparison in self.reflection["samplers"]:
            text = "sampler_comparison" if comparison else "sampler"
            table.append({"binding": name, "at": f"{group}, {binding}", "space": "sampler", "access": "read", "type": text})
        return table

    def __repr__(self) -> str:
        size = " x ".join(map(str, self.reflection["workgroup_size"]))
        return f"<kernel {self.name}, workgroups of {size}>\n{self._table()!r}"

    def _repr_html_(self) -> str:
        return f"<b>{self.name}</b>{self._table()._repr_html_()}"


def _members(name: str, value: Any) -> list[tuple[str, list[float]]]:
    """The numbers of a structure, by the paths of its members."""
    if value.dtype.names:
        return [found for member in value.dtype.names for found in _members(f"{name}.{member}", value[member])]
    return [(name, [float(part) for part in value.ravel()])]


def _seen(memory: Any, stride: int, members: Any, count: int) -> Any:
    """The numbers of each member of structures in memory."""
    for path, offset, scalar, sides in members if count else ():
        kind = np.dtype(f"{scalar[0]}{int(scalar[1:]) // 8}")
        shape, strides = (count, *(side for side, _ in sides)), (stride, *(step for _, step in sides))
        yield path, np.ndarray(shape, kind, memory, offset, strides)


def _member(values: Any, path: Sequence[str], like: Any, name: str) -> Any:
    for part in path:
        if part not in (values.dtype.names or ()):
            raise TypeError(f"{name}: the array has no member {'.'.join(path)} (it has {', '.join(values.dtype.names or ())})")
        values = values[part]
    if values.shape != like.shape or not np.can_cast(values.dtype, like.dtype, "same_kind"):
        raise TypeError(f"{name}: the member {'.'.join(path)} is {like.shape[1:]} of {like.dtype}, and the array has {values.shape[1:]} of {values.dtype}")
    return values


class _Bindings(_devices.Table):
    columns = ("binding", "at", "space", "access", "type")


def _extent(count: int | tuple[int, ...] | None) -> tuple[int, int, int] | None:
    if count is None:
        return None
    sides = (count,) if isinstance(count, int) else tuple(count)
    return (*sides, 1, 1, 1)[:3]  # type: ignore[return-value]


def kernel(
    text: str = "",
    entry_point: str | None = None,
    overrides: dict[str, float] | None = None,
    *,
    path: str | PathLike[str] | None = None,
    features: Iterable[str] = (),
) -> Kernel:
    """Creates a kernel from WGSL text, or from a file. It may import from the library (`import cantus::random::uniform;`), and a file from other files; `features`
    are on in its conditions (`@if(name)`). A mistake in it is a `KernelError` that shows the file and the place."""
    return Kernel(text, entry_point, overrides, path=path, features=features)


