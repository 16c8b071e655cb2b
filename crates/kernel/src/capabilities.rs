//! The optional capabilities of naga's validator: which of them a module needs, and which feature of a kernel each one is. The validator answers only whether
//! a set suffices, so asking it for the least set took a validation for each capability. `needed` finds the set in one walk over a valid module. Unit tests
//! and `tests/suite` compare it with the validator.

use cantus_base::flow;
use naga::valid::{
    Capabilities, FunctionInfo, ModuleInfo, SubgroupOperationSet, ValidationError, ValidationFlags, Validator,
};
use naga::{
    AddressSpace, AtomicFunction, Barrier, Binding, BuiltIn, EntryPoint, Expression, Function, Handle, Module, Scalar,
    ScalarKind, Statement, Type, TypeInner, WithSpan,
};

use crate::reflection::Features;

/// Capabilities that every kernel may use and that are no feature.
const ALWAYS: Capabilities = Capabilities::SHADER_FLOAT16_IN_FLOAT32
    .union(Capabilities::CUBE_ARRAY_TEXTURES)
    .union(Capabilities::STORAGE_TEXTURE_16BIT_NORM_FORMATS)
    .union(Capabilities::TEXTURE_EXTERNAL)
    // Of render stages beside the kernel.
    .union(Capabilities::MULTISAMPLED_SHADING)
    .union(Capabilities::CLIP_DISTANCES)
    .union(Capabilities::DUAL_SOURCE_BLENDING);

/// The capabilities that are features. Both of atomics are one feature, and both of subgroups.
const OPTIONAL: Capabilities = Capabilities::SHADER_FLOAT16
    .union(Capabilities::SHADER_INT64)
    .union(Capabilities::FLOAT64)
    .union(Capabilities::SHADER_INT16)
    .union(Capabilities::SUBGROUP)
    .union(Capabilities::SUBGROUP_BARRIER)
    .union(Capabilities::SHADER_INT64_ATOMIC_MIN_MAX)
    .union(Capabilities::SHADER_INT64_ATOMIC_ALL_OPS)
    .union(Capabilities::SHADER_FLOAT32_ATOMIC)
    .union(Capabilities::COOPERATIVE_MATRIX);

/// The error of naga's validator.
#[doc(hidden)]
pub type Invalid = Box<WithSpan<ValidationError>>;

/// Checks a module that was made of a valid one: it may use anything.
#[doc(hidden)]
pub fn validate(module: &Module) -> Result<ModuleInfo, Invalid> {
    check(module, Capabilities::all())
}

/// Checks a kernel's module, which may use what Cantus has.
pub(crate) fn validate_kernel(module: &Module) -> Result<ModuleInfo, Invalid> {
    check(module, ALWAYS | OPTIONAL)
}

fn check(module: &Module, allowed: Capabilities) -> Result<ModuleInfo, Invalid> {
    #[cfg(test)]
    tests::note(module);
    validator(allowed).validate(module).map_err(Box::new)
}

#[doc(hidden)]
pub fn validator(capabilities: Capabilities) -> Validator {
    let mut validator = Validator::new(ValidationFlags::all(), capabilities);
    validator.subgroup_stages(naga::valid::ShaderStages::all()).subgroup_operations(SubgroupOperationSet::all());
    validator
}

/// Returns the features of a valid module.
pub(crate) fn features(module: &Module, info: &ModuleInfo) -> Features {
    let needed = needed(module, info);
    let has = |capability| needed.intersects(capability);
    Features {
        f16: has(Capabilities::SHADER_FLOAT16),
        int64: has(Capabilities::SHADER_INT64),
        float64: has(Capabilities::FLOAT64),
        int16: has(Capabilities::SHADER_INT16),
        subgroups: has(Capabilities::SUBGROUP | Capabilities::SUBGROUP_BARRIER),
        int64_atomics: has(Capabilities::SHADER_INT64_ATOMIC_MIN_MAX | Capabilities::SHADER_INT64_ATOMIC_ALL_OPS),
        float32_atomics: has(Capabilities::SHADER_FLOAT32_ATOMIC),
        cooperative_matrix: has(Capabilities::COOPERATIVE_MATRIX),
    }
}

/// Returns the optional capabilities that a valid module needs.
#[doc(hidden)]
pub fn needed(module: &Module, info: &ModuleInfo) -> Capabilities {
    let mut walk = Walk { module, needed: Capabilities::empty() };
    module.types.iter().for_each(|(_, ty)| walk.ty(ty));
    module.global_expressions.iter().for_each(|(_, expression)| walk.constant(expression));
    for (handle, function) in module.functions.iter() {
        walk.function(function, &info[handle]);
    }
    for (place, entry) in module.entry_points.iter().enumerate() {
        walk.function(&entry.function, info.get_entry_point(place));
        walk.interface(entry);
    }
    if walk.needed.contains(Capabilities::SHADER_INT64_ATOMIC_ALL_OPS) {
        walk.needed -= Capabilities::SHADER_INT64_ATOMIC_MIN_MAX;
    }
    walk.needed
}

struct Walk<'a> {
    module: &'a Module,
    needed: Capabilities,
}

impl Walk<'_> {
    fn scalar(&mut self, scalar: Scalar) {
        self.needed |= match (scalar.kind, scalar.width) {
            (ScalarKind::Float, 2) => Capabilities::SHADER_FLOAT16,
            (ScalarKind::Float, 8) => Capabilities::FLOAT64,
            (ScalarKind::Sint | ScalarKind::Uint, 2) => Capabilities::SHADER_INT16,
            (ScalarKind::Sint | ScalarKind::Uint, 8) => Capabilities::SHADER_INT64,
            _ => Capabilities::empty(),
        };
    }

    fn ty(&mut self, ty: &Type) {
        match ty.inner {
            TypeInner::Scalar(scalar)
            | TypeInner::Vector { scalar, .. }
            | TypeInner::Matrix { scalar, .. }
            | TypeInner::ValuePointer { scalar, .. } => self.scalar(scalar),
            // The width of its numbers is not asked for.
            TypeInner::CooperativeMatrix { .. } => self.needed |= Capabilities::COOPERATIVE_MATRIX,
            TypeInner::Atomic(scalar) if scalar.width == 8 => {
                self.needed |= Capabilities::SHADER_INT64_ATOMIC_MIN_MAX;
            }
            TypeInner::Atomic(Scalar::F32) => self.needed |= Capabilities::SHADER_FLOAT32_ATOMIC,
            _ => {}
        }
    }

    fn constant(&mut self, expression: &Expression) {
        if let Expression::Literal(literal) = expression {
            self.scalar(literal.scalar());
        }
    }

    fn function(&mut self, function: &Function, info: &FunctionInfo) {
        for (_, expression) in function.expressions.iter() {
            match *expression {
                // What is only converted to need not be a type of the module.
                Expression::As { expr, kind, convert } => {
                    let operand = info[expr].ty.inner_with(&self.module.types).scalar();
                    let width = convert.or_else(|| operand.map(|scalar| scalar.width));
                    width.into_iter().for_each(|width| self.scalar(Scalar { kind, width }));
                }
                // naga asks for the capability where a type is kept, and keeps none that is only loaded.
                Expression::CooperativeLoad { .. } | Expression::CooperativeMultiplyAdd { .. } => {
                    self.needed |= Capabilities::COOPERATIVE_MATRIX;
                }
                ref other => self.constant(other),
            }
        }
        let mut blocks = vec![&function.body];
        while let Some(block) = blocks.pop() {
            for statement in block {
                self.statement(statement, info);
                blocks.extend(flow::blocks(statement));
            }
        }
    }

    fn statement(&mut self, statement: &Statement, info: &FunctionInfo) {
        self.needed |= match *statement {
            Statement::ControlBarrier(barrier) | Statement::MemoryBarrier(barrier)
                if barrier.contains(Barrier::SUB_GROUP) =>
            {
                Capabilities::SUBGROUP | Capabilities::SUBGROUP_BARRIER
            }
            Statement::SubgroupBallot { .. }
            | Statement::SubgroupCollectiveOperation { .. }
            | Statement::SubgroupGather { .. } => Capabilities::SUBGROUP,
            Statement::Atomic { pointer, ref fun, value, result } => {
                let inner = |of: Handle<Expression>| info[of].ty.inner_with(&self.module.types);
                let is_wide = inner(value).scalar().is_some_and(|scalar| scalar.width == 8);
                let is_extreme = matches!(fun, AtomicFunction::Min | AtomicFunction::Max) && result.is_none();
                let is_stored = matches!(inner(pointer).pointer_space(), Some(AddressSpace::Storage { .. }));
                if is_wide && !(is_extreme && is_stored) {
                    Capabilities::SHADER_INT64_ATOMIC_ALL_OPS
                } else {
                    Capabilities::empty()
                }
            }
            _ => Capabilities::empty(),
        };
    }

    /// The builtins that an entry point takes and returns.
    fn interface(&mut self, entry: &EntryPoint) {
        let arguments = entry.function.arguments.iter().map(|argument| (argument.binding.as_ref(), argument.ty));
        let result = entry.function.result.iter().map(|result| (result.binding.as_ref(), result.ty));
        for (binding, ty) in arguments.chain(result) {
            match (binding, &self.module.types[ty].inner) {
                (None, TypeInner::Struct { members, .. }) => {
                    members.iter().for_each(|member| self.builtin(member.binding.as_ref()));
                }
                _ => self.builtin(binding),
            }
        }
    }

    fn builtin(&mut self, binding: Option<&Binding>) {
        use BuiltIn::{NumSubgroups, SubgroupId, SubgroupInvocationId, SubgroupSize};
        if let Some(Binding::BuiltIn(NumSubgroups | SubgroupId | SubgroupInvocationId | SubgroupSize)) = binding {
            self.needed |= Capabilities::SUBGROUP;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ALWAYS, Capabilities, Module, OPTIONAL, needed, validate_kernel, validator};
    use crate::Kernel;
    use std::sync::Mutex;

    /// The entry points of all modules that were validated.
    static VALIDATED: Mutex<Vec<String>> = Mutex::new(Vec::new());

    pub(super) fn note(module: &Module) {
        let names = module.entry_points.iter().map(|entry| entry.name.clone());
        VALIDATED.lock().unwrap().extend(names);
    }

    fn validations(entry: &str) -> usize {
        VALIDATED.lock().unwrap().iter().filter(|name| *name == entry).count()
    }

    /// Three capabilities, an override and a loop.
    #[test]
    fn each_form_is_validated_once() {
        let text = "enable f16;
            override n: u32;
            @group(0) @binding(0) var<storage, read_write> x: array<u64>;
            @group(0) @binding(1) var<storage, read_write> y: array<f16>;
            @compute @workgroup_size(1) fn counted(@builtin(global_invocation_id) id: vec3u) {
                for (var i = 0u; i < n; i++) { x[i] += u64(id.x); y[i] = 1h; }
            }";
        let kernel = Kernel::from_wgsl(text).unwrap();
        assert_eq!(validations("counted"), 1);
        let kernel = kernel.with_override("n", 10).unwrap();
        let features = kernel.reflection().unwrap().features;
        assert!(features.f16 && features.int64 && !features.float64);
        kernel.program().unwrap();
        kernel.needs().unwrap();
        let resolved: *const _ = kernel.resolved().unwrap();
        assert!(std::ptr::eq(resolved, kernel.resolved().unwrap()));
        // naga validates the module with the overrides in force, and ours is not asked.
        assert_eq!(validations("counted"), 1);
        let limited = kernel.with_loop_limit(5).unwrap().kernel;
        limited.program().unwrap();
        limited.with_override("n", 11).unwrap().program().unwrap();
        assert_eq!(validations("counted"), 2);
    }

    /// One construct for each rule of the walk: the set is the least with which naga's validator accepts.
    #[test]
    fn the_walk_finds_the_least_set() {
        use Capabilities as C;
        let subgroup_member = "struct In { @builtin(subgroup_size) size: u32 }
            @compute @workgroup_size(1) fn main(in: In) { x[0] = in.size; }";
        let body = |text: &str| format!("@compute @workgroup_size(1) fn main() {{ {text} }}");
        let storage =
            |ty: &str, text: &str| format!("@group(0) @binding(1) var<storage, read_write> y: {ty};\n{}", body(text));
        let cases = [
            (body("x[0] = pack2x16float(vec2f(1.5));"), C::empty()),
            (body("x[0] = u32(f16(x[1]));"), C::SHADER_FLOAT16),
            (body("x[0] = u32(u64(x[1]) >> 32u);"), C::SHADER_INT64),
            (body("x[0] = u32(f64(x[1]));"), C::FLOAT64),
            (body("let a = 3li;"), C::SHADER_INT64),
            (body("let a = u64(x[0]); x[0] = u32(bitcast<f64>(a));"), C::SHADER_INT64 | C::FLOAT64),
            (storage("atomic<u32>", "atomicMax(&y, 1u);"), C::empty()),
            (storage("atomic<u64>", "atomicMax(&y, 1lu);"), C::SHADER_INT64 | C::SHADER_INT64_ATOMIC_MIN_MAX),
            (storage("atomic<u64>", "let o = atomicMax(&y, 1lu);"), C::SHADER_INT64 | C::SHADER_INT64_ATOMIC_ALL_OPS),
            (storage("atomic<i64>", "atomicAdd(&y, 1li);"), C::SHADER_INT64 | C::SHADER_INT64_ATOMIC_ALL_OPS),
            (storage("atomic<f32>", "atomicAdd(&y, 1.0);"), C::SHADER_FLOAT32_ATOMIC),
            (body("if x[0] > 1u { x[0] = subgroupAdd(x[1]); }"), C::SUBGROUP),
            (body("x[0] = subgroupBallot(true).x;"), C::SUBGROUP),
            (body("x[0] = subgroupShuffle(x[1], 0u);"), C::SUBGROUP),
            (body("loop { subgroupBarrier(); break; }"), C::SUBGROUP | C::SUBGROUP_BARRIER),
            (subgroup_member.to_owned(), C::SUBGROUP),
            (format!("const unused = array<f16, 2>();\n{}", body("")), C::SHADER_FLOAT16),
            (storage("array<vec2<i16>>", "y[0] = vec2<i16>();"), C::SHADER_INT16),
        ];
        for (text, expected) in cases {
            let enabled = "enable f16; enable wgpu_int16;
                @group(0) @binding(0) var<storage, read_write> x: array<u32>;";
            let text = format!("{enabled}\n{text}");
            let module = naga::front::wgsl::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            let info = validate_kernel(&module).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
            let found = needed(&module, &info);
            assert_eq!(found, expected, "{text}");
            let accepts = |set: Capabilities| validator(ALWAYS | set).validate(&module).is_ok();
            assert!(accepts(found), "{text}");
            for one in found.iter() {
                assert!(!accepts(OPTIONAL.difference(one) & found), "{one:?}\n{text}");
            }
        }
    }
}
