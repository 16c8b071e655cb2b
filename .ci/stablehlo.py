"""Runs the programs that the tests wrote (CANTUS_GRAPH_PROGRAMS=FOLDER) with XLA's CPU client of jaxlib, and compares the results with the
kernels of the processor and with the simulator; where NumPy has the operation, with NumPy in float64 too. So are the forms whose result takes an
input's memory, and the input is gone behind them.

    CANTUS_GRAPH_PROGRAMS=/tmp/programs cargo test -p cantus-tests --test suite -- graph::
    JAX_PLATFORMS=cpu python .ci/stablehlo.py /tmp/programs
"""

import json
import math
import pathlib
import sys

import jax
import ml_dtypes
import numpy as np
from jaxlib import xla_client

DTYPES = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64, "bool": np.bool_}
DTYPES |= {f"i{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)}
DTYPES |= {f"u{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)}
DTYPES |= {"complex64": np.complex64, "complex128": np.complex128}
UNITS = {"bf16": 1 / 128, "f16": 1 / 1024, "f64": 1e-14, "complex128": 1e-14}

each = np.vectorize


def softmax(x, axis):
    power = np.exp(x - x.max(axis=axis, keepdims=True))
    return power / power.sum(axis=axis, keepdims=True)


def field(time=1.5, shape=(37, 53), hertz=528.0):
    phi = (1 + 5**0.5) / 2
    y, x = np.meshgrid(np.linspace(-1, 1, shape[0]), np.linspace(-1, 1, shape[1]), indexing="ij")
    r = phi * np.hypot(x, y)
    return np.sin(0.01 * hertz * r + phi * np.arctan2(y, x) + phi**phi * time) * np.exp(-r / phi)


# Definitions in float64, of what is given in that.
FLOAT64 = {
    "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "round": np.round, "trunc": np.trunc, "square": np.square,
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "cbrt": np.cbrt, "exp": np.exp, "exp2": np.exp2,
    "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sin": np.sin,
    "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh,
    "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0), "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)), "erf": each(math.erf), "erfc": each(math.erfc),
    "gelu": lambda x: 0.5 * x * (1 + each(math.erf)(x / math.sqrt(2))), "lgamma": each(math.lgamma),
    "softplus": lambda x: np.log1p(np.exp(x)), "neg": np.negative, "reciprocal": lambda x: 1 / x,
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "minimum": np.minimum,
    "maximum": np.maximum, "pow": np.power, "atan2": np.arctan2, "hypot": np.hypot, "fmod": np.fmod,
    "remainder": np.remainder, "copysign": np.copysign, "log_add_exp": np.logaddexp,
    "sum_all": lambda x: x.sum(keepdims=True), "max_last": lambda x: x.max(axis=-1, keepdims=True),
    "min_two": lambda x: x.min(axis=(0, 2)), "argmax_last": lambda x: x.argmax(axis=-1),
    "argmin_all": lambda x: x.argmin(), "prod_first": lambda x: x.prod(axis=0), "mean_rows": lambda x: x.mean(axis=1),
    "variance_rows": lambda x: x.var(axis=1, ddof=1), "softmax_last": lambda x: softmax(x, -1),
    "log_softmax_first": lambda x: np.log(softmax(x, 0)),
    "rms_norm": lambda x, g: x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6) * g,
    "layer_norm": lambda x, g, b: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-3) * g + b,
    "matmul": np.matmul, "matmul_batched": np.matmul, "matmul_transposed": lambda a, b: a @ b.T,
    "permute": lambda x: x.transpose(2, 0, 1), "slice": lambda x: x[1:6:2, 0:7:3, 1:4], "flip": lambda x: x[:, ::-1],
    "field": field,
}


def apart(dtype, got, wanted):
    """The largest difference in units of the dtype, or infinity where it must be equal and is not."""
    if dtype not in ("bf16", "f16", "f32", "f64", "complex64", "complex128"):
        return 0.0 if np.array_equal(got, wanted) else math.inf
    wide = np.complex128 if dtype.startswith("complex") else np.float64
    got, wanted = got.astype(wide), wanted.astype(wide)
    same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
    with np.errstate(all="ignore"):
        distance = np.abs(got - wanted) / UNITS.get(dtype, 1e-6) / np.maximum(1.0, np.abs(wanted))
    distance = np.where(same, 0.0, np.where(np.isnan(distance), math.inf, distance))
    return float(distance.max(initial=0.0))


def main():
    jax.config.update("jax_enable_x64", True)
    folder = pathlib.Path(sys.argv[1])
    device = jax.devices("cpu")[0]
    failures, count, against, donating = [], 0, 0, 0
    for path in sorted(folder.glob("*.json")):
        about = json.loads(path.read_text())
        load = lambda suffix, ty: np.frombuffer(path.with_suffix(suffix).read_bytes(), DTYPES[ty["dtype"]])[
            : math.prod(ty["shape"])
        ].reshape(ty["shape"])
        inputs = [load(f".in{place}", ty) for place, ty in enumerate(about["inputs"])]
        output = about["output"]
        wanted = None
        if about["op"] in FLOAT64 and all(ty["dtype"] in ("f16", "bf16", "f32", "f64") for ty in about["inputs"]):
            with np.errstate(all="ignore"):
                wanted = FLOAT64[about["op"]](*[x.astype(np.float64) for x in inputs])
            wanted = np.asarray(wanted).reshape(output["shape"]).astype(DTYPES[output["dtype"]])
        for form in [path.with_suffix(".mlir"), *sorted(folder.glob(f"{path.stem}.reusing*"))]:
            given = int(form.suffix.removeprefix(".reusing")) if form.suffix != ".mlir" else None
            name = form.name.removesuffix(".mlir")
            try:
                program = device.client.compile_and_load(
                    form.read_text(), xla_client.DeviceList((device,)), xla_client.CompileOptions()
                )
                # Memory of XLA's own, which it may take.
                buffers = [jax.device_put(np.array(x), device).copy() for x in inputs]
                results = program.execute_sharded(buffers).disassemble_into_single_device_arrays()
                got = np.asarray(results[0][0])
            except Exception as error:
                failures.append(f"{name}: {str(error).splitlines()[0][:300]}")
                continue
            gone = [place for place, buffer in enumerate(buffers) if buffer.is_deleted()]
            if gone != ([] if given is None else [given]):
                failures.append(f"{name}: the inputs {gone} are gone")
            count, donating = count + (given is None), donating + (given is not None)
            for suffix in (".kernel", ".simulated"):
                distance = apart(output["dtype"], got, load(suffix, output))
                if distance > about["tolerance"]:
                    failures.append(f"{name}: {distance:.3g} units from {suffix[1:]} (of {about['tolerance']})")
            if wanted is not None:
                against += 1
                # Once more for the rounding of the result.
                distance = apart(output["dtype"], got, wanted)
                if distance > about["tolerance"] + 2:
                    failures.append(f"{name}: {distance:.3g} units from float64")
    print(f"{count} programs and {donating} that take an input's memory ran on XLA, {against} of them compared with NumPy in float64;", end=" ")
    print(f"{len(failures)} failures")
    for failure in failures:
        print("  " + failure)
    sys.exit(bool(failures) or count < 300 or donating < 200)


main()
