"""Each operation of the table of torch.compile beside eager torch: every dtype, NaN, infinities and both zeros, tensors without axes, without elements and
with other strides, random arguments. An operation goes the way that a program's does: the rules say whether Cantus computes it, and a part computes it.

`CANTUS_TEST_SEED` chooses the arguments. torch has no tensors with strides below 0; those of `flip` are copies.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import cantus  # noqa: E402
import cantus.torch  # noqa: E402

SEED = os.environ.get("CANTUS_TEST_SEED") or "1"
TABLE = {target: str(target).removeprefix("aten.") for target in cantus._aten.TABLE if hasattr(target, "_schema")}
FLOATS = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 2.0, 7.25, 100.0, -1e30]
# Of what has no one value torch's own comes from the order in which it happens to go: the sign of the lesser or greater of both zeros and of sums,
# and where infinite parts of a sum meet; of what rounding leaves the sign is either as well.
EITHER_ZERO = ("cumsum", "rsub.Tensor", "_log_softmax", "maximum", "minimum", "clamp", "amax", "amin", "max", "min", "gelu", "hardtanh")
FINITE = ("_scaled_dot", "convolution", "native_layer_norm", "addmm", "baddbmm", "mm", "bmm", "mv", "dot", "matmul")
# Roots of 0 and of infinities in bfloat16 are torch's `sqrt` or `pow`, by how the numbers lie.
UNSETTLED = {("pow.Tensor_Scalar", torch.bfloat16)}
# What reads many elements at once has sums that another order of additions changes.
TOLERANCE = {torch.float16: (4e-3, 1e-3), torch.bfloat16: (3e-2, 1e-2), torch.float32: (3e-5, 1e-6), torch.float64: (1e-11, 1e-12)}
SHAPES = [(), (1,), (5,), (0,), (3, 4), (4, 0), (1, 6), (2, 3, 4), (2, 1, 3, 2)]
LAYOUTS = ["plain", "turned", "stepped", "spread"]


class Case:
    """Random tensors and numbers for one call: `x` is the first operand."""

    def __init__(self, seed: str, dtype: Any, shape: tuple[int, ...], layout: str, is_special: bool) -> None:
        self.random = random.Random(seed)
        self.dtype, self.layout, self.is_special = dtype, layout, is_special
        self.x = self.tensor(shape)

    def numbers(self, count: int, dtype: Any) -> Any:
        if dtype is torch.bool:
            return torch.tensor([self.random.random() < 0.5 for _ in range(count)], dtype=dtype)
        if dtype.is_floating_point:
            some = FLOATS if self.is_special else [self.random.uniform(-4, 4) for _ in range(16)]
            return torch.tensor([self.random.choice(some) for _ in range(count)], dtype=torch.float64).to(dtype)
        bounds = torch.iinfo(dtype)
        some = [0, 1, -1, 2, -3, 7, *((bounds.min, bounds.max) if self.is_special else (20, -13))]
        return torch.tensor([self.random.choice(some) for _ in range(count)], dtype=dtype)

    def tensor(self, shape: tuple[int, ...], dtype: Any = None) -> Any:
        """A tensor whose memory is as the case's layout says."""
        dtype = dtype or self.dtype
        if self.layout == "turned":
            return self.numbers(math.prod(shape), dtype).reshape(shape[::-1]).permute(tuple(range(len(shape)))[::-1])
        if self.layout == "stepped" and shape:
            return self.numbers(math.prod(shape) * 2, dtype).reshape(*shape[:-1], shape[-1] * 2)[..., ::2]
        if self.layout == "spread" and len(shape) > 1:
            return self.numbers(math.prod(shape[1:]), dtype).reshape(shape[1:]).expand(shape)
        return self.numbers(math.prod(shape), dtype).reshape(shape)

    def beside(self, dtype: Any = None) -> Any:
        """A tensor whose shape goes with that of the first."""
        sides = [side if self.random.random() < 0.7 else 1 for side in self.x.shape]
        return self.tensor(tuple(sides[self.random.randint(0, len(sides)) :] if self.random.random() < 0.4 else sides), dtype)

    def number(self) -> Any:
        if self.dtype.is_floating_point:
            return self.random.choice([0, 1, -1, 2, 3, 0.5, -0.5, 2.5, *((-0.0, math.inf, math.nan) if self.is_special else ())])
        return self.random.choice([0, 1, -1, 2, 3, 7])

    def axis(self) -> int:
        return self.random.randrange(-self.x.ndim, self.x.ndim) if self.x.ndim else self.random.choice([0, -1])

    def axes(self) -> list[int]:
        return self.random.sample(range(self.x.ndim), self.random.randint(0, self.x.ndim)) if self.x.ndim else []

    def truth(self) -> bool:
        return self.random.random() < 0.5

    def places(self, shape: tuple[int, ...], count: int) -> Any:
        return torch.tensor([self.random.randrange(count) for _ in range(math.prod(shape))], dtype=torch.int64).reshape(shape)

    def of(self, target: Any) -> tuple[list[Any], dict[str, Any]]:
        """Arguments by the types of an operation's schema."""
        kinds = {"Tensor": self.beside, "Scalar": self.number, "number": self.number, "bool": self.truth, "int": self.axis, "float": self.number}
        args: list[Any] = [self.x]
        keywords: dict[str, Any] = {}
        for argument in target._schema.arguments[1:]:
            kind = str(argument.type)
            if argument.has_default_value() and self.truth() or kind.startswith("Optional") and argument.kwarg_only:
                if not argument.kwarg_only and argument.has_default_value():
                    break
                continue
            value = kinds[kind.removeprefix("Optional[").removesuffix("]")]()
            if argument.kwarg_only:
                keywords[argument.name] = value
            else:
                args.append(value)
        return args, keywords


Arguments = tuple[list[Any], dict[str, Any]]
SPECIAL: dict[str, Callable[[Case], Arguments]] = {}


def of(*names: str) -> Callable[[Callable[[Case], Any]], None]:
    def put(make: Callable[[Case], Any]) -> None:
        for name in names:
            SPECIAL[name] = lambda case: made if isinstance(made := make(case), tuple) else (made, {})

    return put


def kind(case: Case) -> Any:
    return case.random.choice([None, torch.float32, torch.float64, torch.int64, torch.int32])


of("sum.default", "mean.default")(lambda c: ([c.x], {"dtype": kind(c)}))
of("sum.dim_IntList", "mean.dim")(lambda c: ([c.x, c.random.choice([None, [], c.axes(), [c.axis()]]), c.truth()], {"dtype": kind(c)}))
of("var.correction")(lambda c: ([c.x, c.random.choice([None, c.axes()])], {"correction": c.random.choice([None, 0, 1, 2, 0.5]), "keepdim": c.truth()}))
of("amax.default", "amin.default")(lambda c: [c.x, c.axes(), c.truth()])
of("max.default", "min.default")(lambda c: [c.x])
of("argmax.default", "argmin.default")(lambda c: [c.x, c.random.choice([None, c.axis()]), c.truth()])
of("any.dim", "all.dim")(lambda c: [c.x, c.axis(), c.truth()])
of("cumsum.default")(lambda c: ([c.x, c.axis()], {"dtype": kind(c)}))
of("_softmax.default", "_log_softmax.default")(lambda c: [c.x, c.axis(), False])
of("clamp.default")(lambda c: [c.x, c.random.choice([None, c.number()]), c.number()])
of("hardtanh.default")(lambda c: [c.x, *c.random.choice([[], [-0.5, 2.0], [0, 6]])])
of("elu.default")(lambda c: [c.x, *c.random.choice([[], [0.5], [1.7, 1.05], [1, 1, 2]])])
of("leaky_relu.default")(lambda c: [c.x, *c.random.choice([[], [0.2], [-1.0], [0]])])
of("gelu.default")(lambda c: ([c.x], {"approximate": c.random.choice(["none", "tanh"])}))
of("where.self")(lambda c: [c.beside(torch.bool), c.x, c.beside()])
of("masked_fill.Scalar")(lambda c: [c.x, c.beside(torch.bool), c.number()])
of("pow.Scalar", "rsub.Scalar")(lambda c: [c.number(), c.x])
SPECIAL["rsub.Scalar"] = lambda c: ([c.x, c.number(), *c.random.choice([[], [2]])], {})


@of("native_layer_norm.default")
def _(c: Case) -> Any:
    shape = list(c.x.shape[c.random.randrange(c.x.ndim) :] if c.x.ndim else ())
    sides = [c.random.choice([None, c.tensor(tuple(shape))]) for _ in range(2)]
    return [c.x, shape, *sides, 1e-5]


def product(*letters: str) -> Callable[[Case], Any]:
    """Operands whose axes have the letters' lengths."""

    def make(c: Case) -> Any:
        sides = {letter: c.random.choice([0, 1, 2, 5, 9]) for letter in "bmkn"}
        return [c.tensor(tuple(sides[letter] for letter in name)) for name in letters]

    return make


of("mm.default")(product("mk", "kn"))
of("bmm.default")(product("bmk", "bkn"))
of("mv.default")(product("mk", "k"))
of("dot.default")(product("k", "k"))
of("matmul.default")(lambda c: product(*c.random.choice([("mk", "kn"), ("k", "kn"), ("mk", "k"), ("k", "k"), ("bmk", "kn"), ("bmk", "bkn"), ("k", "bkn")]))(c))
of("addmm.default")(lambda c: (product(c.random.choice(["mn", "n"]), "mk", "kn")(c), c.random.choice([{}, {"beta": 2, "alpha": 3}, {"beta": 0}])))
of("baddbmm.default")(lambda c: (product("bmn", "bmk", "bkn")(c), c.random.choice([{}, {"beta": 2, "alpha": 3}, {"beta": 0}])))
of("embedding.default")(lambda c: [c.tensor((6, 3)), c.places(tuple(c.x.shape), 6), *c.random.choice([[], [2]])])


@of("_scaled_dot_product_flash_attention_for_cpu.default")
def _(c: Case) -> Any:
    tokens, width = c.random.choice([1, 4, 7]), c.random.choice([2, 8])
    mask = {} if c.truth() else {"attn_mask": c.tensor((tokens, tokens)).contiguous()}
    # Rows with steps are not for this operation of torch's: who calls it looks before.
    return [c.tensor((2, 3, tokens, width)).contiguous() for _ in range(3)] + [0.0, not mask and c.truth()], {"scale": c.random.choice([None, 0.3]), **mask}


@of("convolution.default")
def _(c: Case) -> Any:
    axes, groups = c.random.choice([1, 2]), c.random.choice([1, 2])
    pick = lambda *some: [c.random.choice(some) for _ in range(axes)]  # noqa: E731
    bias = c.random.choice([None, c.tensor((4,))])
    x, weight = c.tensor((2, 2 * groups, *pick(5, 8))), c.tensor((4, 2, *pick(1, 3)))
    return [x, weight, bias, pick(1, 2), pick(0, 1), pick(1, 2), False, [0] * axes, groups]


of("avg_pool2d.default")(lambda c: [c.tensor((2, 3, 6, 7)), [2, 3], *c.random.choice([[], [[1, 2]], [[2, 2], [1, 1]], [[2, 2], [1, 1], False, False]])])


@of("view.default", "reshape.default", "_unsafe_view.default")
def _(c: Case) -> Any:
    count = c.x.numel()
    return [c.x.contiguous(), c.random.choice([[count], [1, count], [-1, 1] if count else [0, 3], list(c.x.shape)[::-1], [*c.x.shape, 1]])]


of("permute.default")(lambda c: [c.x, [axis - c.x.ndim * c.truth() for axis in c.random.sample(range(c.x.ndim), c.x.ndim)]])
of("t.default")(lambda c: [c.x])
of("transpose.int")(lambda c: [c.x, c.axis(), c.axis()])
of("expand.default")(lambda c: [c.x, [*c.random.choice([[], [2], [3, 1]]), *(c.random.choice([-1, side]) if side != 1 else c.random.choice([1, 3, 0]) for side in c.x.shape)]])
of("unsqueeze.default")(lambda c: [c.x, c.random.randint(-c.x.ndim - 1, c.x.ndim)])
of("squeeze.dim")(lambda c: [c.x, c.axis()])
of("squeeze.dims")(lambda c: [c.x, c.axes()])
of("slice.Tensor")(lambda c: [c.x, c.axis(), *c.random.choice([[], [1], [None, -1], [-3, 9], [0, 2**63 - 1, 2], [3, 1], [-9, 9, 3], [1, 1]])])
of("select.int")(lambda c: [c.x, axis := c.axis(), c.random.randrange(-c.x.shape[axis], c.x.shape[axis]) if c.x.ndim and c.x.shape[axis] else 0])


@of("cat.default")
def _(c: Case) -> Any:
    axis = c.axis()
    shapes = [list(c.x.shape) for _ in range(3)]
    for shape in shapes[1:]:
        if shape:
            shape[axis] = c.random.choice([0, 1, 3])
    return [[c.x, *(c.tensor(tuple(shape)) for shape in shapes[1:]), *([c.tensor((0,))] * c.truth())], axis]


of("stack.default")(lambda c: [[c.x, c.tensor(tuple(c.x.shape))], c.random.randint(-c.x.ndim - 1, c.x.ndim)])
of("split.Tensor")(lambda c: [c.x, c.random.choice([1, 2, 3, 9]), c.axis()])


@of("split_with_sizes.default")
def _(c: Case) -> Any:
    axis = c.axis()
    first = c.random.randint(0, c.x.shape[axis]) if c.x.ndim else 0
    return [c.x, [first, 0, c.x.shape[axis] - first] if c.x.ndim else [0], axis]


of("clone.default", "alias.default", "detach.default", "lift_fresh_copy.default", "contiguous.default")(lambda c: [c.x])
of("_to_copy.default")(lambda c: ([c.x], {"dtype": c.random.choice(list(cantus._aten.DTYPES))}))
of("flip.default")(lambda c: [c.x, c.axes()])
of("repeat.default")(lambda c: [c.x, [*c.random.choice([[], [2]]), *(c.random.choice([0, 1, 2]) for _ in c.x.shape)]])


@of("constant_pad_nd.default")
def _(c: Case) -> Any:
    pairs = [c.random.choice([(0, 0), (1, 2), (3, 0), (-1, 2), (1, -1), (0, -1)]) for _ in range(c.random.randint(0, c.x.ndim))]
    return [c.x, [width for pair in pairs for width in pair], *c.random.choice([[], [c.number()]])]


@of("index_select.default")
def _(c: Case) -> Any:
    axis = c.axis()
    side = c.x.shape[axis] if c.x.ndim else 1
    return [c.x, axis, c.places((c.random.choice([0, 1, 4]) if side else 0,), side)]


@of("gather.default")
def _(c: Case) -> Any:
    axis = c.axis()
    shape = [c.random.randint(0, side) for side in c.x.shape]
    return [c.x, axis, c.places(tuple(shape), c.x.shape[axis] if c.x.ndim and c.x.shape[axis] else 1)]


of("tril.default", "triu.default")(lambda c: [c.x, *c.random.choice([[], [1], [-1], [9], [-9]])])
of("full.default")(lambda c: ([list(c.x.shape), c.number()], {"dtype": c.random.choice([None, c.dtype])}))
of("scalar_tensor.default")(lambda c: ([c.number()], {"dtype": c.random.choice([None, c.dtype])}))
of("zeros.default", "ones.default")(lambda c: ([list(c.x.shape)], {"dtype": c.random.choice([None, c.dtype])}))
of("full_like.default")(lambda c: ([c.x, c.number()], {"dtype": c.random.choice([None, torch.float32, torch.int64])}))
of("zeros_like.default", "ones_like.default")(lambda c: ([c.x], {"dtype": c.random.choice([None, torch.float32, torch.int64])}))
of("arange.default")(lambda c: ([c.random.choice([0, 5, 4.5, 2**24 + 3])], {"dtype": c.random.choice([None, torch.float64, torch.int64])}))
of("arange.start")(lambda c: ([c.random.choice([-2, 0, 0.5]), c.random.choice([5, 4.5])], {"dtype": c.random.choice([None, torch.float64])}))
of("arange.start_step")(lambda c: (c.random.choice([[0, 5, 2], [5, 0, -1], [0.0, 1.0, 0.1], [1, 2, 0.25], [3, 3, 1]]), {"dtype": None}))


def computed(target: Any, args: list[Any], keywords: dict[str, Any], want: list[Any], result: Any, device: cantus.Device) -> list[Any] | None:
    """The results of a program of this one operation; None where it stays with torch."""
    graph, given = torch.fx.Graph(), []

    def placed(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            given.append(value)
            node = graph.placeholder(f"x{len(given)}")
            node.meta["val"] = value
            return node
        return [placed(one) for one in value] if isinstance(value, list) else value

    filled = [placed(value) for value in args], {name: placed(value) for name, value in keywords.items()}
    node = graph.call_function(target, tuple(filled[0]), filled[1])
    node.meta["val"] = result
    if not cantus.torch.computes(node):
        return None
    getitem = cantus.torch._getitem
    several = isinstance(result, tuple | list)
    graph.output(tuple(graph.call_function(getitem, (node, at)) for at in range(len(want))) if several else (node,))
    return list(cantus.torch.Part(graph, device)(*given))


def difference(got: Any, want: Any, zeros: bool, finite: bool) -> str | None:
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype} of {tuple(got.shape)} in place of {want.dtype} of {tuple(want.shape)}"
    rtol, atol = TOLERANCE.get(want.dtype, (0, 0))
    if finite and want.numel():
        # Of a sum whose terms cancel the error is that of the terms.
        atol *= max(1.0, float(want.abs().max()))
    try:
        torch.testing.assert_close(got, want, rtol=rtol, atol=atol, equal_nan=True)
    except AssertionError as error:
        return f"{got.tolist()} in place of {want.tolist()} ({str(error).splitlines()[0]})"
    if zeros and want.dtype.is_floating_point and not torch.equal(torch.signbit(got)[want == 0], torch.signbit(want)[want == 0]):
        return f"the sign of 0: {got.tolist()} in place of {want.tolist()}"
    return None


def cases(name: str) -> Iterator[Case]:
    for dtype in cantus._aten.DTYPES:
        for shape in SHAPES:
            for number, layout in enumerate(LAYOUTS):
                is_special = number % 2 == 0 and not name.startswith(FINITE) and (name, dtype) not in UNSETTLED
                yield Case(f"{SEED} {name} {dtype} {shape} {layout}", dtype, shape, layout, is_special)


@pytest.mark.parametrize("target", TABLE, ids=TABLE.values())
def test_an_operation_is_torchs(target: Any, device: cantus.Device) -> None:
    name, wrong, counts = TABLE[target], [], {"compared": 0, "torch's": 0, "refused by torch": 0}
    for case in cases(name):
        args, keywords = SPECIAL[name](case) if name in SPECIAL else case.of(target)
        try:
            result = target(*args, **keywords)
        except (RuntimeError, IndexError, TypeError, NotImplementedError, ValueError):
            counts["refused by torch"] += 1
            continue
        # A conversion of NaN or of a number that does not fit: the processor's choice.
        target_dtype = keywords.get("dtype")
        if case.is_special and isinstance(target_dtype, torch.dtype) and case.dtype.is_floating_point != target_dtype.is_floating_point:
            continue
        want = list(result) if isinstance(result, tuple | list) else [result]
        shown = f"{name}{tuple(args)} {keywords}".replace("\n", "")
        try:
            got = computed(target, args, keywords, want, result, device)
        except Exception as error:
            wrong.append(f"{shown}: {type(error).__name__} {str(error)[:200]}")
            continue
        if got is None:
            counts["torch's"] += 1
            continue
        counts["compared"] += 1
        # Means and deviations of layers without elements are read by nobody.
        for one, other in zip(got, want[:1] if name.startswith("native_layer_norm") else want, strict=False):
            if isinstance(other, torch.Tensor) and (what := difference(one, other, not name.startswith(EITHER_ZERO), name.startswith(FINITE))):
                wrong.append(f"{shown}: {what}")
    print(name, counts)
    assert not wrong, f"{len(wrong)} of {counts}, seed {SEED}\n" + "\n".join(wrong[:8])
    assert counts["compared"], counts
