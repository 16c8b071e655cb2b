#!/usr/bin/env bash
# The wheel, built and installed into a fresh environment, and tested there: the tests, the examples in the documentation, the types. What other
# libraries it takes is installed too, except PyTorch, transformers and jax (4 GB): CANTUS_NEIGHBOURS names a folder of packages that has them, and
# without it the tests that need them are listed as not run.
# `--quick` builds it by the profile for tests. CANTUS_TEST_DEVICES lists the devices to test on, the CPU alone without it, and CANTUS_TEST_SHARE which
# share of the tests runs on those behind the first (16: one in 16). The standard's own test suite runs from ARRAY_API_TESTS, a checkout of
# data-apis/array-api-tests with data-apis/array-api beside its tests, where that is set.
set -euo pipefail
cd "$(dirname "$0")"

profile=release
[ "${1:-}" != --quick ] || profile=dev
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
. "$work/venv/bin/activate"
pip install --quiet --disable-pip-version-check 'maturin>=1.9,<2' 'numpy>=2' 'pytest<9' hypothesis mypy pillow \
    tqdm einops array-api-compat pyarrow polars safetensors 'dask[array,distributed]' scikit-learn scikit-image opencv-python-headless matplotlib ziglang auditwheel twine
[ -z "${CANTUS_NEIGHBOURS:-}" ] || echo "$CANTUS_NEIGHBOURS" >"$(python -c 'import site; print(site.getsitepackages()[0])')/neighbours.pth"
# What is released is for every Linux with glibc 2.28.
everywhere=()
[ $profile = dev ] || everywhere=(--zig --compatibility manylinux_2_28)
maturin build --quiet --profile "$profile" --out "$work/wheels" --manifest-path Cargo.toml --locked "${everywhere[@]}"
# What the package index asks of a wheel.
twine check --strict "$work"/wheels/*.whl
pip install --quiet --disable-pip-version-check "$work"/wheels/*.whl
if [ $profile = release ]; then
    bytes=$(stat -c %s "$work"/wheels/*.whl)
    echo "the wheel has $bytes bytes"
    [ "$bytes" -le 15000000 ] || { echo "it is larger than 15 MB" >&2 && exit 1; }
    auditwheel show "$work"/wheels/*.whl | tr '\n' ' ' | grep -q 'platform tag: "manylinux_2_28' || { auditwheel show "$work"/wheels/*.whl && exit 1; }
fi
# The double of CUDA's driver, for what is shared with other libraries there.
if command -v g++ >/dev/null; then
    g++ -std=c++17 -O1 -pthread -shared -fPIC ../tests/cuda_hip_backend/double.cpp -o "$work/libcuda_double.so" -ldl
    CANTUS_DOUBLE_HEADERS=$(realpath ../tests/cuda_hip_backend)
    export CANTUS_CUDA_DOUBLE=$work/libcuda_double.so CANTUS_DOUBLE_HEADERS
fi

# Nothing of the source folder: what is installed is what is tested.
cp -r tests "$work/tests" && cp -r ../examples/python "$work/examples"
# What `cantus new --kind python` makes.
mkdir "$work/rod" && cp ../cli/templates/python/main.py ../cli/templates/rust/src/step.wgsl "$work/rod"
cp ../docs/guide/src/python.md ../docs/guide/src/coming-from.md ../docs/guide/src/images.md ../docs/guide/src/data.md ../docs/guide/src/circuits.md README.md ../docs/site/snippets/first.py "$work" && cp ../README.md "$work/root.md"
cd "$work"
python - <<'PYTHON'
import re, time

begin = time.perf_counter()
import numpy
between = time.perf_counter()
import cantus
print(f"import: NumPy {1000 * (between - begin):.0f} ms, and Cantus {1000 * (time.perf_counter() - between):.0f} ms more")
# The guide's and the README's code runs.
for page in ("python.md", "coming-from.md", "images.md", "data.md", "circuits.md", "README.md", "root.md"):
    blocks = re.findall(r"```python\n(.*?)```", open(page, encoding="utf-8").read(), re.S)
    assert blocks, page
    scope = {}
    for block in blocks:
        exec(block, scope)
PYTHON
for example in first.py examples/*.py rod/main.py; do
    python "$example"
done
package=$(python -c 'import cantus, os; print(os.path.dirname(cantus.__file__))')
python -m pytest -q -rfEs -p no:cacheprovider --doctest-modules --doctest-ignore-import-errors "$package" tests
mypy --strict --ignore-missing-imports --no-error-summary -p cantus
if [ -n "${ARRAY_API_TESTS:-}" ]; then
    pip install --quiet --disable-pip-version-check pytest-json-report ndindex
    cd "$ARRAY_API_TESTS"
    ARRAY_API_TESTS_MODULE=cantus python -m pytest array_api_tests -q --max-examples 20 -p no:cacheprovider --disable-deadline --hypothesis-seed=1
fi
