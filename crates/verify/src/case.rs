//! The definition of a case: a kernel, its bindings with their first contents, a dispatch, and what each binding must
//! hold afterwards. Nothing here knows how a device runs it.

use half::f16;

use crate::check::{Expect, Near};

/// Typed contents of a binding.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    I16(Vec<i16>),
    U16(Vec<u16>),
    I32(Vec<i32>),
    U32(Vec<u32>),
    I64(Vec<i64>),
    U64(Vec<u64>),
    F16(Vec<f16>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

macro_rules! for_values {
    ($values:expr, $v:ident => $body:expr) => {
        match $values {
            Values::I16($v) => $body,
            Values::U16($v) => $body,
            Values::I32($v) => $body,
            Values::U32($v) => $body,
            Values::I64($v) => $body,
            Values::U64($v) => $body,
            Values::F16($v) => $body,
            Values::F32($v) => $body,
            Values::F64($v) => $body,
        }
    };
}

impl Values {
    /// WGSL's word for the element type.
    pub fn element(&self) -> &'static str {
        match self {
            Self::I16(_) => "i16",
            Self::U16(_) => "u16",
            Self::I32(_) => "i32",
            Self::U32(_) => "u32",
            Self::I64(_) => "i64",
            Self::U64(_) => "u64",
            Self::F16(_) => "f16",
            Self::F32(_) => "f32",
            Self::F64(_) => "f64",
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        for_values!(self, v => bytemuck::cast_slice(v).to_vec())
    }

    /// `bytes` read as this type of elements; a tail shorter than an element is dropped.
    pub fn decode(&self, bytes: &[u8]) -> Self {
        match self {
            Self::I16(_) => Self::I16(bytemuck::pod_collect_to_vec(whole(bytes, 2))),
            Self::U16(_) => Self::U16(bytemuck::pod_collect_to_vec(whole(bytes, 2))),
            Self::I32(_) => Self::I32(bytemuck::pod_collect_to_vec(whole(bytes, 4))),
            Self::U32(_) => Self::U32(bytemuck::pod_collect_to_vec(whole(bytes, 4))),
            Self::I64(_) => Self::I64(bytemuck::pod_collect_to_vec(whole(bytes, 8))),
            Self::U64(_) => Self::U64(bytemuck::pod_collect_to_vec(whole(bytes, 8))),
            Self::F16(_) => Self::F16(bytemuck::pod_collect_to_vec(whole(bytes, 2))),
            Self::F32(_) => Self::F32(bytemuck::pod_collect_to_vec(whole(bytes, 4))),
            Self::F64(_) => Self::F64(bytemuck::pod_collect_to_vec(whole(bytes, 8))),
        }
    }

    /// The same type and length, all zero.
    pub fn zeroed(&self) -> Self {
        self.decode(&vec![0; self.bytes().len()])
    }

    pub fn u32s(&self) -> &[u32] {
        if let Self::U32(v) = self { v } else { panic!("{} is not u32", self.element()) }
    }

    pub fn i32s(&self) -> &[i32] {
        if let Self::I32(v) = self { v } else { panic!("{} is not i32", self.element()) }
    }

    pub fn f32s(&self) -> &[f32] {
        if let Self::F32(v) = self { v } else { panic!("{} is not f32", self.element()) }
    }
}

fn whole(bytes: &[u8], size: usize) -> &[u8] {
    &bytes[..bytes.len() / size * size]
}

macro_rules! values_from {
    ($($t:ty => $variant:ident),*) => {
        $(
            impl From<Vec<$t>> for Values {
                fn from(v: Vec<$t>) -> Self { Self::$variant(v) }
            }
            impl From<&[$t]> for Values {
                fn from(v: &[$t]) -> Self { Self::$variant(v.to_vec()) }
            }
            impl From<&Vec<$t>> for Values {
                fn from(v: &Vec<$t>) -> Self { Self::$variant(v.clone()) }
            }
            impl<const N: usize> From<[$t; N]> for Values {
                fn from(v: [$t; N]) -> Self { Self::$variant(v.to_vec()) }
            }
        )*
    };
}
values_from!(i16 => I16, u16 => U16, i32 => I32, u32 => U32, i64 => I64, u64 => U64, f16 => F16, f32 => F32, f64 => F64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Read,
    ReadWrite,
    Uniform,
}

/// One binding: its number in group 0 is its place in the case.
pub struct Binding {
    pub name: String,
    pub space: Space,
    pub initial: Values,
    pub expect: Expect,
    /// The stricter check for strict targets, on top of `expect`.
    pub strict: Option<crate::check::Judge>,
}

/// The features that a device must offer for a case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    pub f16: bool,
    pub int16: bool,
    pub int64: bool,
    pub int64_atomics: bool,
    pub float_atomics: bool,
    pub f64: bool,
    pub subgroups: bool,
    pub subgroup_barrier: bool,
    pub cooperative_matrix: bool,
    /// The dispatch is empty: WGSL has a rule for it, an engine refuses it.
    pub refused_by_engines: bool,
    /// Invocations in a workgroup, when it is more than every device has (256).
    pub invocations: u32,
}

/// One kernel with its inputs and what must come out.
pub struct Case {
    pub name: String,
    /// The whole module, declarations of the bindings included.
    pub wgsl: String,
    pub bindings: Vec<Binding>,
    pub workgroups: [u32; 3],
    pub overrides: Vec<(&'static str, f64)>,
    pub needs: Needs,
    body: String,
}

impl Case {
    /// A kernel whose entry point is `main`. `body` is the module without its bindings: those are declared by `read`,
    /// `write`, … in the order of the calls, as numbers 0, 1, … of group 0.
    pub fn new(name: impl Into<String>, body: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            wgsl: String::new(),
            bindings: Vec::new(),
            workgroups: [1, 1, 1],
            overrides: Vec::new(),
            needs: Needs::default(),
            body: body.into(),
        }
        .declared()
    }

    /// `out[i] = expression` for every element of a binding named `out`; `i` is the element's number.
    pub fn each(name: impl Into<String>, expression: &str) -> Self {
        Self::each_with(name, "", expression)
    }

    /// As [`Case::each`], after the module-scope declarations in `prelude`.
    pub fn each_with(name: impl Into<String>, prelude: &str, expression: &str) -> Self {
        Self::new(
            name,
            format!(
                "{prelude}\n@compute @workgroup_size(64)\nfn main(@builtin(global_invocation_id) id: vec3u) {{\n    \
                 let i = id.x;\n    if i >= arrayLength(&out) {{ return; }}\n    out[i] = {expression};\n}}\n"
            ),
        )
    }

    /// `out[i] = expression` of `a[i]`, exactly as `oracle` says.
    pub fn map1<A: Copy, R>(name: impl Into<String>, expression: &str, a: &[A], oracle: impl Fn(A) -> R) -> Self
    where
        Vec<A>: Into<Values>,
        Vec<R>: Into<Values>,
    {
        let expected: Vec<R> = a.iter().map(|&a| oracle(a)).collect();
        Self::each(name, expression).read("a", a.to_vec()).write("out", expected).invocations(a.len())
    }

    /// `out[i] = expression` of `a[i]` and `b[i]`, exactly as `oracle` says.
    pub fn map2<A: Copy, B: Copy, R>(
        name: impl Into<String>,
        expression: &str,
        (a, b): (&[A], &[B]),
        oracle: impl Fn(A, B) -> R,
    ) -> Self
    where
        Vec<A>: Into<Values>,
        Vec<B>: Into<Values>,
        Vec<R>: Into<Values>,
    {
        let expected: Vec<R> = a.iter().zip(b).map(|(&a, &b)| oracle(a, b)).collect();
        Self::each(name, expression)
            .read("a", a.to_vec())
            .read("b", b.to_vec())
            .write("out", expected)
            .invocations(a.len())
    }

    fn declared(mut self) -> Self {
        // Directives must come before any declaration.
        let directives = ["enable ", "requires ", "diagnostic("];
        let enables = self.body.lines().take_while(|line| directives.iter().any(|start| line.starts_with(start)));
        let split: usize = enables.map(|l| l.len() + 1).sum();
        let (directives, rest) = self.body.split_at(split.min(self.body.len()));
        let mut text = directives.to_owned();
        for (directive, wanted) in [("enable f16;\n", self.needs.f16), ("enable wgpu_int16;\n", self.needs.int16)] {
            if wanted && !text.contains(directive) {
                text.push_str(directive);
            }
        }
        for (number, binding) in self.bindings.iter().enumerate() {
            let (name, _) = binding.name.split_once(':').unwrap_or((&binding.name, ""));
            let ty = binding
                .name
                .split_once(':')
                .map_or_else(|| format!("array<{}>", binding.initial.element()), |(_, ty)| ty.trim().to_owned());
            let space = match binding.space {
                Space::Read => "storage",
                Space::ReadWrite => "storage, read_write",
                Space::Uniform => "uniform",
            };
            text.push_str(&format!("@group(0) @binding({number}) var<{space}> {name}: {ty};\n"));
        }
        self.wgsl = text + rest;
        self
    }

    fn bind(mut self, name: &str, space: Space, initial: Values, expect: Expect) -> Self {
        match initial {
            Values::F16(_) => self.needs.f16 = true,
            Values::I16(_) | Values::U16(_) => self.needs.int16 = true,
            Values::I64(_) | Values::U64(_) => self.needs.int64 = true,
            Values::F64(_) => self.needs.f64 = true,
            _ => {}
        }
        self.bindings.push(Binding { name: name.to_owned(), space, initial, expect, strict: None });
        self.declared()
    }

    /// A read-only storage binding. `name` may carry a type (`"cells: array<Cell>"`); without, it is an array of the
    /// values' type.
    pub fn read(self, name: &str, values: impl Into<Values>) -> Self {
        self.bind(name, Space::Read, values.into(), Expect::Any)
    }

    pub fn uniform(self, name: &str, values: impl Into<Values>) -> Self {
        self.bind(name, Space::Uniform, values.into(), Expect::Any)
    }

    /// A storage binding that starts as zeros and must end as `expected`, to the bit.
    pub fn write(self, name: &str, expected: impl Into<Values>) -> Self {
        let expected = expected.into();
        self.bind(name, Space::ReadWrite, expected.zeroed(), Expect::Exact(expected))
    }

    /// A storage binding that starts as `initial` and must end as `expected`, to the bit.
    pub fn update(self, name: &str, initial: impl Into<Values>, expected: impl Into<Values>) -> Self {
        self.bind(name, Space::ReadWrite, initial.into(), Expect::Exact(expected.into()))
    }

    /// A storage binding of float32 that starts as zeros and must end near `expected`.
    pub fn write_near(self, name: &str, expected: Near) -> Self {
        let zeros = vec![0.0_f32; expected.count()];
        self.bind(name, Space::ReadWrite, zeros.into(), Expect::Near(expected))
    }

    /// As [`Case::write_near`], of float16.
    pub fn write_near_f16(self, name: &str, expected: Near) -> Self {
        let zeros = vec![f16::ZERO; expected.count()];
        self.bind(name, Space::ReadWrite, zeros.into(), Expect::Near(expected))
    }

    /// As [`Case::write_near`], of float64.
    pub fn write_near_f64(self, name: &str, expected: Near) -> Self {
        let zeros = vec![0.0_f64; expected.count()];
        self.bind(name, Space::ReadWrite, zeros.into(), Expect::Near(expected))
    }

    /// A storage binding that is only looked at by `check_all` of some other binding.
    pub fn scratch(self, name: &str, initial: impl Into<Values>) -> Self {
        self.bind(name, Space::ReadWrite, initial.into(), Expect::Any)
    }

    /// A storage binding whose end is judged by `check`, which is given the final contents of all bindings in order.
    pub fn check(
        self,
        name: &str,
        initial: impl Into<Values>,
        check: impl Fn(&[Values]) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.bind(name, Space::ReadWrite, initial.into(), Expect::Check(Box::new(check)))
    }

    /// Adds to the last binding a check that only our own executor must pass: where WGSL leaves a choice and Cantus
    /// has made it.
    pub fn strictly(mut self, check: impl Fn(&[Values]) -> Result<(), String> + Send + Sync + 'static) -> Self {
        if let Some(binding) = self.bindings.last_mut() {
            binding.strict = Some(Box::new(check));
        }
        self
    }

    pub fn workgroups(mut self, x: u32, y: u32, z: u32) -> Self {
        self.workgroups = [x, y, z];
        self
    }

    /// Enough workgroups of 64 for `n` invocations.
    pub fn invocations(self, n: usize) -> Self {
        self.workgroups(n.div_ceil(64) as u32, 1, 1)
    }

    pub fn set(mut self, name: &'static str, value: f64) -> Self {
        self.overrides.push((name, value));
        self
    }

    pub fn needs(mut self, change: impl FnOnce(&mut Needs)) -> Self {
        change(&mut self.needs);
        self.declared()
    }
}

impl Binding {
    /// The name alone, without the type.
    pub fn identifier(&self) -> &str {
        self.name.split(':').next().unwrap_or_default().trim()
    }
}
