//! Dispatches beyond a device's workgroups per dimension: the kernel is rewritten so that its ids stay right.
//!
//! A device limits the workgroups of one dimension (usually to 65,535). A larger dispatch runs as another grid of at least as
//! many workgroups, through a second entry point that wraps the kernel's own: it numbers the workgroups, lets the surplus ones
//! return before anything else, and computes `workgroup_id`, `num_workgroups` and `global_invocation_id` from the true counts, which it
//! reads from a uniform. Local ids and subgroup builtins are passed on. All of this is uniform across a workgroup, so barriers
//! inside stay legal. The result is validated again.

use naga::{
    AddressSpace, BinaryOperator, Binding, Block, BuiltIn, EntryPoint, Expression, Function, FunctionArgument,
    GlobalVariable, Handle, Literal, MemoryDecorations, Module, ResourceBinding, Scalar, Span, Statement, StructMember,
    Type, TypeInner, UnaryOperator, VectorSize,
};

#[cfg(any(test, feature = "_gpu"))]
use super::Kernel;
use super::{Resolved, capabilities};
use crate::error::{Error, Result};

/// Bytes of the uniform that a folded kernel reads.
#[doc(hidden)]
pub const UNIFORM_BYTES: usize = 32;

/// A kernel with its folded entry point, which keeps the name.
#[doc(hidden)]
pub struct Folded {
    pub(crate) module: Module,
    #[cfg_attr(
        not(any(feature = "vulkan", target_arch = "wasm32")),
        allow(dead_code, reason = "not every backend takes it")
    )]
    pub(crate) info: naga::valid::ModuleInfo,
    #[cfg_attr(not(target_arch = "wasm32"), expect(dead_code, reason = "for errors of the WGSL writer"))]
    name: String,
}

/// The plan of a folded dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub struct Plan {
    /// The workgroups to dispatch.
    #[doc(hidden)]
    pub grid: [u32; 3],
    /// The uniform's contents.
    #[doc(hidden)]
    pub uniform: [u8; UNIFORM_BYTES],
}

/// Plans the dispatch of `counts` workgroups where each dimension holds `limit`.
///
/// `None` when there are 2^32 workgroups or more in all, or the limit is too small for them.
#[doc(hidden)]
pub fn plan(counts: [u32; 3], limit: u32) -> Option<Plan> {
    let total = counts.iter().try_fold(1_u64, |product, &count| product.checked_mul(count.into()))?;
    let total = u32::try_from(total).ok().filter(|&total| total > 0)?;
    let width = total.min(limit);
    let rows = total.div_ceil(width.max(1));
    let height = rows.min(limit);
    let depth = rows.div_ceil(height.max(1));
    // Row numbers must not overflow in the kernel either.
    height.checked_mul(depth)?;
    if width == 0 || depth > limit {
        return None;
    }
    let words = [counts[0], counts[1], counts[2], width, height, total / width, total % width, 0];
    let mut uniform = [0; UNIFORM_BYTES];
    for (bytes, word) in uniform.chunks_exact_mut(4).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    Some(Plan { grid: [width, height, depth], uniform })
}

/// Rewrites a kernel so that it can be folded; its uniform goes to that group and binding, which must be free.
#[cfg(feature = "_gpu")]
#[doc(hidden)]
pub fn fold(kernel: &Kernel, group: u32, binding: u32) -> Result<Folded> {
    fold_resolved(kernel.resolved()?, group, binding)
}

/// As [`fold`], of another text of the same kernel.
pub(crate) fn fold_resolved(resolved: &Resolved, group: u32, binding: u32) -> Result<Folded> {
    let name = resolved.name().to_owned();
    let mut module = resolved.module().clone();
    let entry = module.entry_points.swap_remove(resolved.entry_point());
    module.entry_points.clear();
    super::amend::sizes::settle(&mut module);
    let folded = Rewrite::new(&mut module, ResourceBinding { group, binding }).wrap(entry)?;
    module.entry_points.push(folded);
    let info = capabilities::validate(&module).map_err(|error| fault(&name, &error.emit_to_string("")))?;
    Ok(Folded { module, info, name })
}

fn fault(name: &str, message: &str) -> Error {
    Error::Unsupported {
        kernel: name.to_owned(),
        device: "more workgroups than one dimension holds".to_owned(),
        construct: "folding failed (a defect: please report the kernel; dispatch fewer workgroups at a time)"
            .to_owned(),
        report: message.to_owned(),
    }
}

impl Folded {
    /// The module, and what its validation found out.
    #[cfg(all(any(feature = "vulkan", feature = "wgpu"), not(target_arch = "wasm32")))]
    #[doc(hidden)]
    pub fn into_parts(self) -> (Module, naga::valid::ModuleInfo) {
        (self.module, self.info)
    }

    /// The module as WGSL.
    #[cfg(all(feature = "wgpu", target_arch = "wasm32"))]
    #[doc(hidden)]
    pub fn to_wgsl(&self) -> Result<String> {
        super::amend::wgsl(&self.module, &self.info).map_err(|message| fault(&self.name, &message))
    }
}

/// The wrapping entry point, as it is built.
struct Rewrite<'a> {
    module: &'a mut Module,
    uint3: Handle<Type>,
    uniform: Handle<GlobalVariable>,
    function: Function,
}

/// The ids that change.
struct TrueIds {
    workgroup: Handle<Expression>,
    counts: Handle<Expression>,
    global: Handle<Expression>,
}

impl<'a> Rewrite<'a> {
    fn new(module: &'a mut Module, place: ResourceBinding) -> Self {
        let uint = |size| Type { name: None, inner: TypeInner::Vector { size, scalar: Scalar::U32 } };
        let uint3 = module.types.insert(uint(VectorSize::Tri), Span::UNDEFINED);
        let uint4 = module.types.insert(uint(VectorSize::Quad), Span::UNDEFINED);
        let member =
            |name: &str, offset| StructMember { name: Some(name.to_owned()), ty: uint4, binding: None, offset };
        let members = vec![member("counts_and_width", 0), member("height_full_rest", 16)];
        let inner = TypeInner::Struct { members, span: UNIFORM_BYTES as u32 };
        let ty = module.types.insert(Type { name: Some("FoldedCounts".to_owned()), inner }, Span::UNDEFINED);
        let uniform = GlobalVariable {
            name: Some("folded_counts".to_owned()),
            space: AddressSpace::Uniform,
            binding: Some(place),
            ty,
            init: None,
            memory_decorations: MemoryDecorations::empty(),
        };
        let uniform = module.global_variables.append(uniform, Span::UNDEFINED);
        Self { module, uint3, uniform, function: Function::default() }
    }

    /// Makes the entry point's function an ordinary one, and an entry point that calls it.
    fn wrap(mut self, entry: EntryPoint) -> Result<EntryPoint> {
        let EntryPoint { name, stage, workgroup_size, function: mut inner, .. } = entry;
        inner.name = Some(format!("{name}_unfolded"));
        let ids = self.true_ids(workgroup_size);
        let mut arguments = Vec::with_capacity(inner.arguments.len());
        for argument in &mut inner.arguments {
            arguments.push(self.argument(&name, argument.ty, argument.binding.as_ref(), &ids)?);
            argument.binding = None;
        }
        let callee = self.module.functions.append(inner, Span::UNDEFINED);
        self.statement(Statement::Call { function: callee, arguments, result: None });
        self.statement(Statement::Return { value: None });
        Ok(EntryPoint {
            name,
            stage,
            early_depth_test: None,
            workgroup_size,
            workgroup_size_overrides: None,
            function: self.function,
            mesh_info: None,
            task_payload: None,
            incoming_ray_payload: None,
        })
    }

    /// Returns the value passed to the kernel's own function for an argument: a builtin, or a structure of them.
    fn argument(
        &mut self,
        name: &str,
        ty: Handle<Type>,
        binding: Option<&Binding>,
        ids: &TrueIds,
    ) -> Result<Handle<Expression>> {
        if let Some(binding) = binding {
            return self.builtin(name, ty, binding, ids);
        }
        let members = match &self.module.types[ty].inner {
            TypeInner::Struct { members, .. } => members.clone(),
            _ => return Err(fault(name, "an argument of the entry point is neither a builtin nor a structure")),
        };
        let mut components = Vec::with_capacity(members.len());
        for member in members {
            let binding = member.binding.ok_or_else(|| fault(name, "a member of an argument is no builtin"))?;
            components.push(self.builtin(name, member.ty, &binding, ids)?);
        }
        Ok(self.emit(Expression::Compose { ty, components }))
    }

    fn builtin(
        &mut self,
        name: &str,
        ty: Handle<Type>,
        binding: &Binding,
        ids: &TrueIds,
    ) -> Result<Handle<Expression>> {
        match binding {
            Binding::BuiltIn(BuiltIn::WorkGroupId) => Ok(ids.workgroup),
            Binding::BuiltIn(BuiltIn::NumWorkGroups) => Ok(ids.counts),
            Binding::BuiltIn(BuiltIn::GlobalInvocationId) => Ok(ids.global),
            Binding::BuiltIn(builtin) => Ok(self.given(*builtin, ty)),
            Binding::Location { .. } => Err(fault(name, "an argument of the entry point has a @location")),
        }
    }

    /// A builtin as the device gives it: one argument of the wrapping entry point for each.
    fn given(&mut self, builtin: BuiltIn, ty: Handle<Type>) -> Handle<Expression> {
        let binding = Some(Binding::BuiltIn(builtin));
        let arguments = &mut self.function.arguments;
        let index = arguments.iter().position(|argument| argument.binding == binding).unwrap_or_else(|| {
            arguments.push(FunctionArgument { name: None, ty, binding });
            arguments.len() - 1
        });
        self.append(Expression::FunctionArgument(index as u32))
    }

    /// Numbers the workgroup, returns from surplus ones, and computes the true ids.
    fn true_ids(&mut self, workgroup_size: [u32; 3]) -> TrueIds {
        let place = self.given(BuiltIn::WorkGroupId, self.uint3);
        let local = self.given(BuiltIn::LocalInvocationId, self.uint3);
        let [column, line, layer] = [0, 1, 2].map(|axis| self.component(place, axis));
        let first = self.load(0);
        let [x, y, z, width] = [0, 1, 2, 3].map(|index| self.component(first, index));
        let second = self.load(1);
        let [height, full_rows, rest] = [0, 1, 2].map(|index| self.component(second, index));

        // A row of the grid is full, or the one that holds the rest, or surplus. Compared by rows: the number of a surplus workgroup
        // may exceed 32 bits.
        let above = self.binary(BinaryOperator::Multiply, layer, height);
        let row = self.binary(BinaryOperator::Add, above, line);
        let in_full = self.binary(BinaryOperator::Less, row, full_rows);
        let last = self.binary(BinaryOperator::Equal, row, full_rows);
        let within = self.binary(BinaryOperator::Less, column, rest);
        let in_last = self.binary(BinaryOperator::LogicalAnd, last, within);
        let wanted = self.binary(BinaryOperator::LogicalOr, in_full, in_last);
        let surplus = self.emit(Expression::Unary { op: UnaryOperator::LogicalNot, expr: wanted });
        let accept = Block::from_vec(vec![Statement::Return { value: None }]);
        self.statement(Statement::If { condition: surplus, accept, reject: Block::new() });

        let before = self.binary(BinaryOperator::Multiply, row, width);
        let number = self.binary(BinaryOperator::Add, before, column);
        let true_x = self.binary(BinaryOperator::Modulo, number, x);
        let slice = self.binary(BinaryOperator::Divide, number, x);
        let true_y = self.binary(BinaryOperator::Modulo, slice, y);
        let true_z = self.binary(BinaryOperator::Divide, slice, y);
        let workgroup = self.vector([true_x, true_y, true_z]);
        let counts = self.vector([x, y, z]);
        let size = workgroup_size.map(|side| self.append(Expression::Literal(Literal::U32(side))));
        let size = self.vector(size);
        let start = self.binary(BinaryOperator::Multiply, workgroup, size);
        let global = self.binary(BinaryOperator::Add, start, local);
        TrueIds { workgroup, counts, global }
    }

    /// Loads one half of the uniform.
    fn load(&mut self, index: u32) -> Handle<Expression> {
        let base = self.append(Expression::GlobalVariable(self.uniform));
        let pointer = self.emit(Expression::AccessIndex { base, index });
        self.emit(Expression::Load { pointer })
    }

    fn component(&mut self, base: Handle<Expression>, index: u32) -> Handle<Expression> {
        self.emit(Expression::AccessIndex { base, index })
    }

    fn binary(
        &mut self,
        op: BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
    ) -> Handle<Expression> {
        self.emit(Expression::Binary { op, left, right })
    }

    fn vector(&mut self, components: [Handle<Expression>; 3]) -> Handle<Expression> {
        self.emit(Expression::Compose { ty: self.uint3, components: components.to_vec() })
    }

    /// An expression that is evaluated here.
    fn emit(&mut self, expression: Expression) -> Handle<Expression> {
        let before = self.function.expressions.len();
        let handle = self.append(expression);
        let range = self.function.expressions.range_from(before);
        self.statement(Statement::Emit(range));
        handle
    }

    /// An expression that needs no evaluation: arguments, variables, literals.
    fn append(&mut self, expression: Expression) -> Handle<Expression> {
        self.function.expressions.append(expression, Span::UNDEFINED)
    }

    fn statement(&mut self, statement: Statement) {
        self.function.body.push(statement, Span::UNDEFINED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes on the host what the folded kernel does: the true id of a workgroup of the grid, or nothing for a
    /// surplus one.
    fn unfold(plan: Plan, place: [u32; 3]) -> Option<[u32; 3]> {
        let word = |index: usize| {
            let bytes = &plan.uniform[index * 4..index * 4 + 4];
            u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
        };
        let row = place[2] * word(4) + place[1];
        if !(row < word(5) || row == word(5) && place[0] < word(6)) {
            return None;
        }
        let number = row * word(3) + place[0];
        let slice = number / word(0);
        Some([number % word(0), slice % word(1), slice / word(1)])
    }

    #[test]
    fn every_workgroup_runs_once() {
        for limit in [3, 7, 100] {
            for counts in [[1, 1, 1], [8, 1, 1], [10, 3, 2], [1, 1, 26], [101, 1, 1], [9, 5, 4], [1, 27, 1]] {
                let total: u32 = counts.iter().product();
                let Some(plan) = plan(counts, limit) else {
                    assert!(total > limit.pow(3), "{counts:?} at {limit}");
                    continue;
                };
                assert!(plan.grid.iter().all(|&side| (1..=limit).contains(&side)));
                let mut seen = vec![0; total as usize];
                for z in 0..plan.grid[2] {
                    for y in 0..plan.grid[1] {
                        for x in 0..plan.grid[0] {
                            if let Some(id) = unfold(plan, [x, y, z]) {
                                assert!(id.iter().zip(counts).all(|(id, count)| *id < count));
                                seen[(id[0] + counts[0] * (id[1] + counts[1] * id[2])) as usize] += 1;
                            }
                        }
                    }
                }
                assert!(seen.iter().all(|&visits| visits == 1), "{counts:?} at {limit}");
            }
        }
    }

    #[test]
    fn the_largest_dispatches_do_not_overflow() {
        let most = plan([u32::MAX, 1, 1], 65_535).expect("fits");
        // The very last workgroup, and the ones behind it.
        let last = u32::MAX - 1;
        let (row, column) = (last / 65_535, last % 65_535);
        let (line, layer) = (row % most.grid[1], row / most.grid[1]);
        assert_eq!(unfold(most, [column, line, layer]), Some([last, 0, 0]));
        assert_eq!(unfold(most, [65_534, most.grid[1] - 1, most.grid[2] - 1]), None);
        assert_eq!(plan([65_536, 65_536, 1], 65_535), None);
        assert_eq!(plan([u32::MAX; 3], 65_535), None);
        assert_eq!(plan([0, 1, 1], 65_535), None);
        assert_eq!(plan([5, 1, 1], 0), None);
        assert_eq!(plan([9, 1, 1], 2), None);
    }

    #[test]
    fn the_folded_kernel_is_valid_wgsl() {
        let kernel = Kernel::from_wgsl(
            "struct Ids { @builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) i: u32 }
             override width: u32 = 8;
             @group(0) @binding(0) var<storage, read_write> folded_counts: array<u32>;
             var<workgroup> tile: array<u32, width>;
             @compute @workgroup_size(width) fn main(ids: Ids, @builtin(global_invocation_id) id: vec3u) {
                 tile[ids.i] = id.x;
                 workgroupBarrier();
                 folded_counts[ids.group.x] = tile[0];
             }
             @compute @workgroup_size(1) fn other() {}",
        );
        let kernel = kernel.and_then(|kernel| kernel.with_entry_point("main")).expect("is valid");
        let folded = fold(&kernel, 0, 1).expect("folds");
        let text = super::super::amend::wgsl(&folded.module, &folded.info).expect("is WGSL");
        let again = Kernel::from_wgsl(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let reflection = again.reflection().expect("has one entry point");
        assert_eq!(reflection.entry_point, "main");
        assert_eq!(reflection.workgroup_size, [8, 1, 1]);
        let places: Vec<_> = reflection.bindings.iter().map(|binding| (binding.group, binding.binding)).collect();
        assert_eq!(places, [(0, 0), (0, 1)]);
        assert_eq!(reflection.bindings[1].layout.min_bytes(), UNIFORM_BYTES as u64);
    }
}
