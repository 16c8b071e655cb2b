"""Kernels that import from other files and from the library."""

import numpy as np
import pytest

import cantus

BODY = """
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn fill(@builtin(global_invocation_id) id: vec3u) { if id.x < arrayLength(&y) { y[id.x] = value(id.x); } }
"""


def made(kernel):
    y = cantus.zeros(5)
    kernel(y=y, invocations=y.size)
    return np.asarray(y)


def test_files_import_from_each_other(tmp_path):
    (tmp_path / "noise.wgsl").write_text(
        "@if(twice) const BY = 2.0; @else const BY = 1.0;\nfn value(x: u32) -> f32 {\n    return f32(x) * BY;\n}\nfn wrong(x: u32) -> f32 { return x; }"
    )
    file = tmp_path / "fill.wgsl"
    file.write_text("import package::noise::value;" + BODY)
    assert made(cantus.kernel(path=file)).tolist() == [0, 1, 2, 3, 4]
    twice = cantus.kernel(path=str(file), features=["twice"])
    assert made(twice).tolist() == [0, 2, 4, 6, 8]
    assert "fn value(" in twice.text
    file.write_text("import package::noise::wrong as value;" + BODY)
    with pytest.raises(cantus.KernelError, match=r"noise\.wgsl:5:"):
        cantus.kernel(path=file)
    with pytest.raises(ValueError, match="either as text or as path"):
        cantus.kernel()


def test_texts_import_from_the_library():
    kernel = cantus.kernel("import cantus::random::uniform; fn value(x: u32) -> f32 { return uniform(x, vec2u(7u, 0u)); }" + BODY)
    values = made(kernel)
    assert len(set(values.tolist())) == 5 and (values >= 0).all() and (values < 1).all()
    with pytest.raises(cantus.KernelError, match="declares no `unifor`"):
        cantus.kernel("import cantus::random::unifor;" + BODY)
