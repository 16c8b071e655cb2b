"""Arrays on CUDA's devices shared by DLPack with another library, streams and all. CUDA's driver is a double on the processor: CANTUS_CUDA_DOUBLE
names it (python/test.sh builds it from tests/cuda_hip_backend/double.cpp), and CANTUS_DOUBLE_HEADERS the folder of its headers.
"""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys

import pytest

DOUBLE = os.environ.get("CANTUS_CUDA_DOUBLE")
COUNT = 4096


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", DELETER),
        ("flags", ctypes.c_uint64), ("tensor", DLTensor),
    ]  # fmt: skip


READ_ONLY = 1
python = ctypes.pythonapi
# By address: a capsule that goes must not be held again.
is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", python))
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
python.PyCapsule_GetPointer.restype = ctypes.c_void_p
python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Library:
    """Another library that uses CUDA: its own stream, memory, copies."""

    def __init__(self):
        self.driver = ctypes.CDLL(DOUBLE)
        context = ctypes.c_void_p()
        self.call("cuInit", ctypes.c_uint(0))
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)
        stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(stream), ctypes.c_uint(1))
        self.stream = stream.value

    def call(self, name, *arguments):
        code = getattr(self.driver, name)(*arguments)
        assert code == 0, (name, code)

    def misuses(self):
        self.driver.cantus_double_misuses.restype = ctypes.c_long
        self.driver.cantus_double_misuse.restype = ctypes.c_char_p
        return [self.driver.cantus_double_misuse(ctypes.c_long(place)) for place in range(self.driver.cantus_double_misuses())]

    def waits(self, stream, for_stream):
        event = ctypes.c_void_p()
        self.call("cuEventCreate", ctypes.byref(event), ctypes.c_uint(2))
        self.call("cuEventRecord", event, ctypes.c_void_p(for_stream))
        self.call("cuStreamWaitEvent", ctypes.c_void_p(stream), event, ctypes.c_uint(0))
        self.call("cuEventDestroy_v2", event)

    def copied_out(self, address, stream):
        found = (ctypes.c_float * COUNT)()
        self.call("cuMemcpyDtoHAsync_v2", found, ctypes.c_uint64(address), ctypes.c_size_t(4 * COUNT), ctypes.c_void_p(stream))
        return found


class Taken:
    """An array that the other library took, until it is dropped."""

    def __init__(self, capsule, name=b"dltensor", kind=Managed):
        self.managed = ctypes.cast(python.PyCapsule_GetPointer(capsule, name), ctypes.POINTER(kind))
        self.used = b"used_" + name
        python.PyCapsule_SetName(capsule, self.used)
        self.tensor = self.managed.contents.tensor

    def drop(self):
        self.managed.contents.deleter(self.managed)


class Given:
    """An array of the other library's, which its stream fills with 0, 1, 2 and so on. `changes`: other fields of its tensor."""

    def __init__(self, library, start=0, strides=None, version=None, flags=0, **changes):
        self.library, self.frees, self.stream = library, 0, None
        address = ctypes.c_uint64()
        library.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(4 * COUNT))
        self.address = address.value
        self.values = (ctypes.c_float * COUNT)(*range(COUNT))
        library.call(
            "cuMemcpyHtoDAsync_v2", address, self.values, ctypes.c_size_t(4 * COUNT), ctypes.c_void_p(library.stream)
        )
        count = COUNT - start if strides is None else COUNT // strides
        self.shape = (ctypes.c_int64 * 1)(count)
        self.strides = (ctypes.c_int64 * 1)(1 if strides is None else strides)
        self.deleter = DELETER(self.delete)
        tensor = DLTensor(self.address, 2, 0, 1, 2, 32, 1, self.shape, self.strides, 4 * start)
        for field, value in changes.items():
            setattr(tensor, field, value)
        if version is None:
            self.name, self.managed = b"dltensor", Managed(tensor, None, self.deleter)
        else:
            self.name, self.managed = b"dltensor_versioned", Versioned(version, 0, None, self.deleter, flags, tensor)
        self.destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(self.gone)

    def delete(self, _):
        self.frees += 1

    @property
    def freed(self):
        assert self.frees <= 1, "freed twice"
        return self.frees == 1

    def gone(self, capsule):
        if is_valid(capsule, self.name):
            self.managed.deleter(None)

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, *, stream=None, dl_device=None, copy=None, max_version=None):
        if dl_device == (1, 0):
            raise BufferError("this library copies nothing")
        assert stream not in (None, 0)
        self.stream = stream
        self.library.waits(stream, self.library.stream)
        return python.PyCapsule_New(ctypes.addressof(self.managed), self.name, ctypes.cast(self.destructor, ctypes.c_void_p))


class Capsule:
    """Gives one capsule, however often it is asked."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **_):
        return self.capsule


def exports():
    import numpy as np

    import cantus

    library = Library()
    with cantus.device("cuda"):
        x = cantus.arange(COUNT, dtype="float32")
        assert x.__dlpack_device__() == (2, 0)
        expected = 2 * np.arange(COUNT, dtype="f4")
        for stream in (library.stream, 1, None):
            y = x * 2
            # The other library reads as soon as it has the array, and drops it as soon as its work is queued.
            taken = Taken(y.__dlpack__(stream=stream))
            assert (taken.tensor.device_type, taken.tensor.device_id, taken.tensor.shape[0]) == (2, 0, COUNT)
            again = Taken(y.__dlpack__(stream=stream))
            assert again.tensor.data == taken.tensor.data, "a copy"
            copies = [library.copied_out(taken.tensor.data, stream or 1) for _ in range(8)]
            again.drop()
            taken.drop()
            del y, again
            gc.collect()
            # The memory is used again.
            np.testing.assert_array_equal(np.asarray((x * 3)._x.bytes()).nbytes, 4 * COUNT)
            library.call("cuCtxSynchronize")
            for copy in copies:
                np.testing.assert_array_equal(np.frombuffer(copy, "f4"), expected)
        for stream in (0, -2):
            with pytest.raises(BufferError, match="no stream"):
                x.__dlpack__(stream=stream)
        with pytest.raises(BufferError, match="not to device"):
            x.__dlpack__(stream=1, dl_device=(2, 1))
        # The default stream of a thread; and by the structure of DLPack 1, whose flags say that it is not written.
        Taken(x.__dlpack__(stream=2)).drop()
        taken = Taken(x.__dlpack__(stream=library.stream, max_version=(1, 1)), b"dltensor_versioned", Versioned)
        assert (taken.managed.contents.major, taken.managed.contents.flags & READ_ONLY) == (1, READ_ONLY)
        copy = library.copied_out(taken.tensor.data, library.stream)
        taken.drop()
        library.call("cuCtxSynchronize")
        np.testing.assert_array_equal(np.frombuffer(copy, "f4"), np.arange(COUNT))
        # A capsule that nobody takes, and one that is taken twice.
        x.__dlpack__(stream=1)
        once = Capsule(x.__dlpack__(stream=1))
        np.testing.assert_array_equal(cantus.from_dlpack(once).numpy(), np.arange(COUNT))
        with pytest.raises(TypeError, match="used before"):
            cantus.from_dlpack(once)
        host = np.from_dlpack(x, device="cpu")
        np.testing.assert_array_equal(host, np.arange(COUNT))
    del x, taken
    gc.collect()
    assert library.misuses() == []


def imports():
    import numpy as np

    import cantus

    library = Library()
    given = Given(library)
    x = cantus.from_dlpack(given)
    assert x.device.name == "cuda" and x.__dlpack_device__() == (2, 0)
    taken = Taken(x.__dlpack__(stream=-1))
    assert taken.tensor.data == given.address, "a copy"
    taken.drop()
    y = x * 2 + 1
    np.testing.assert_array_equal(y.numpy(), 2 * np.arange(COUNT) + 1)
    assert not given.freed
    del x, y, taken
    gc.collect()
    cantus.device("cuda").engine.finish()
    assert given.freed
    # Memory that begins elsewhere is copied within the device.
    other = Given(library, start=1)
    z = cantus.from_dlpack(other)
    np.testing.assert_array_equal(z.numpy(), np.arange(1, COUNT))
    assert other.freed
    turned = Given(library, strides=2)
    with pytest.raises(BufferError, match="contiguous"):
        cantus.from_dlpack(turned, copy=False)
    with pytest.raises(BufferError, match="copies nothing"):
        cantus.from_dlpack(Given(library), device="cpu")
    assert library.misuses() == []


def refusals():
    import numpy as np

    import cantus

    library = Library()

    def refused(given, error, match, **arguments):
        with pytest.raises(error, match=match):
            cantus.from_dlpack(given, **arguments)
        gc.collect()
        assert given.freed, "kept by a refusal"

    # What cannot be read is not read: the deleter alone is called.
    poison = ctypes.cast(ctypes.c_void_p(8), ctypes.POINTER(ctypes.c_int64))
    refused(Given(library, version=2, data=8, ndim=1 << 30, shape=poison), BufferError, "DLPack 2")
    for version in (None, 1):
        refused(Given(library, version=version, device_type=7), BufferError, "not in memory of the host")
        refused(Given(library, version=version, device_id=1), BufferError, "not the requested one")
        refused(Given(library, version=version, code=2, bits=8), BufferError, "8 bits has no dtype")
        refused(Given(library, version=version, lanes=4), BufferError, "no dtype")
        refused(Given(library, version=version, strides=2), BufferError, "contiguous", copy=False)
        refused(Given(library, version=version, ndim=-1), BufferError, "no shape")
        refused(Given(library, version=version, shape=None), BufferError, "no shape")
        refused(Given(library, version=version, data=None), BufferError, "no memory")
        refused(Given(library, version=version, byte_offset=(1 << 64) - 1), BufferError, "exceeds its memory")
    elsewhere = Given(library)
    elsewhere.__class__ = type("Elsewhere", (Given,), {"__dlpack_device__": lambda _: (2, 99)})
    with pytest.raises(BufferError, match="copies nothing"):
        cantus.from_dlpack(elsewhere)
    # What another library says is not to be written is not written, by a kernel neither.
    given = Given(library, version=1, flags=READ_ONLY)
    x = cantus.from_dlpack(given)
    assert given.stream == cantus.device("cuda").engine.driver()[2], "filled in another stream than the device's"
    taken = Taken(x.__dlpack__(stream=-1))
    assert taken.tensor.data == given.address, "a copy"
    taken.drop()
    kernel = cantus.kernel(
        """@group(0) @binding(0) var<storage, read_write> x: array<f32>;
        @compute @workgroup_size(64) fn negate(@builtin(global_invocation_id) id: vec3u) { x[id.x] = -x[id.x]; }"""
    )
    kernel(x=x, invocations=COUNT)
    np.testing.assert_array_equal(x.numpy(), -np.arange(COUNT, dtype="f4"))
    copy = library.copied_out(given.address, library.stream)
    library.call("cuCtxSynchronize")
    np.testing.assert_array_equal(np.frombuffer(copy, "f4"), np.arange(COUNT))
    del x, taken
    gc.collect()
    cantus.device("cuda").engine.finish()
    assert given.freed
    assert library.misuses() == []


@pytest.mark.skipif(not DOUBLE, reason="CANTUS_CUDA_DOUBLE names no double of CUDA's driver")
@pytest.mark.parametrize("program", ["exports", "imports", "refusals"])
def test_arrays_are_shared_with_another_library(program, tmp_path):
    libraries = dict.fromkeys(("CANTUS_CUDA_LIBRARY", "CANTUS_NVRTC_LIBRARY"), DOUBLE)
    environment = os.environ | libraries | {"CANTUS_DOUBLE_DELAY_US": "300", "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, __file__, program], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    globals()[sys.argv[1]]()
