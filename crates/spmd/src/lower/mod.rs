//! Lowering: naga IR to bytecode for the lock-step executor.
//!
//! # What comes in
//! A validated naga module whose overrides are resolved, and an entry point (`compile`). What comes out is `Bytecode`: plain data that `exec` runs
//! without naga. It has one `Code` for each way of putting workgroups into a batch (`Batching`): one workgroup, a row along x, or linear order.
//!
//! # Stages
//! 1. **Survey** (`survey`, `Globals`). Finds the bindings, the workgroup memory and whether there are subgroup operations. A kernel with workgroup
//!    memory or these gets a code for one workgroup at a time (`Batching::Single`) and, if its workgroups are small, one for several (`Batching::Groups`).
//!    Any other gets a code for rows and one for linear order.
//! 2. **Lower** (`Lowering`). Walks the statements once. Calls are inlined (`call`), composite values become scalars (`types`), and local variables
//!    become registers (`variable`), or memory of each lane where they are indexed at run time. `control` turns divergent control flow into masks.
//!    `Builder` collects instructions over virtual registers and folds constants. Loops of few, known rounds are lowered round by round (`unroll`).
//! 3. **Repeat until stable** (`lower_until_stable`). The first attempt assumes that every variable is uniform (the same in all lanes of the batch) and
//!    that every construct is left by all lanes together. A violation is a `Fact`. With new facts the entry point is lowered again from the beginning.
//! 4. **Allocate** (`allocate::code`). `fuse` drops values that are known and joins instructions that often follow each other. Then copies, values that are
//!    set again before they are read, and dead instructions are dropped, and registers are assigned by last use.
//! 5. **Check** (`Bytecode::check`). The lowering's own result passes the same check as bytes from a file.
//!
//! For kernels compiled ahead, `flat` gives the instructions to the generator of Rust without `fuse` and before registers are assigned.
//!
//! # What carries it
//! - `Operand`: a scalar, as a constant or a register. A register is uniform (one lane), a vector (all lanes) or a mask (`Class`).
//! - `Value`: the scalars of an expression, or a `Pointer` (a root and a path).
//! - `Frame`: a function that is being inlined. `Scope`: a construct of control flow, with its labels and, if it is divergent, its mask.
//! - `Facts`: what earlier attempts found, by the numbers of variables and constructs, which are the same in every attempt.
//!
//! # What holds
//! - Facts only grow, so the attempts end. Beyond `MAX_ATTEMPTS` or `MAX_SEARCH` everything that can vary does. Most kernels take two or three attempts.
//! - A fact takes effect where it is found, also in the attempt that it voids, so a chain of variables takes one attempt and not one for each.
//! - Inlining is bounded by `MAX_INSTRUCTIONS` and `MAX_WORK`, workgroup memory by `MAX_WORKGROUP_BYTES`, and registers by `MAX_WORDS`.
//! - Every operand form is one of `Op::forms`. `check` refuses anything else, and the lane loops handle only what the table lists.
//! - An attempt that found a fact emits no code.
//!
//! # What is surprising
//! - Barriers emit nothing: in lock-step every lane is past what comes before.
//! - A uniform value is computed by the same code as a vector, in one lane, so it has the same bits.
//! - The fused load of a texel is found by the shape of its instructions, not by a function's name. A test fails if the library of textures hides it.
//!
//! # An example
//! `var s = 0.0; for (var i = 0u; i < id.x; i++) { s += x[i]; }` in a kernel without barriers. In the first attempt `s` and `i` are uniform. The
//! condition is not, because `id.x` differs between lanes, so lanes leave the loop at different times: `Divergent(loop)`. What follows in its body is
//! under a mask, so the store to `s` finds `Varying`. `i` is read by the loop alone (`survey::carried`): lanes that have left it may get any `i`, so its
//! store needs no mask, and it stays uniform. The second attempt starts with a mask for the loop and a vector register for `s`, finds nothing new, and is
//! allocated. A jump leaves the loop when its mask is empty. `break` in an `if` of its own takes lanes from that mask at once (`MaskDrop`).

mod allocate;
mod arithmetic;
mod builder;
mod call;
mod control;
mod convert;
mod cooperative;
mod expression;
mod flat;
mod fuse;
mod input;
mod math;
mod packing;
mod pointer;
mod statement;
mod survey;
mod types;
mod unroll;
mod variable;

use std::rc::Rc;

use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{AddressSpace, Function, GlobalVariable, Handle, LocalVariable, Module, ShaderStage, StorageAccess};
use rustc_hash::{FxHashMap, FxHashSet};

use super::SUBGROUP_SIZE;
use super::bytecode::{Batching, BindingInfo, Bytecode, Code, LANE_STEP, MAX_LANES, MAX_WORKGROUP_BYTES, Op};
use super::check::MAX_WORDS;
use builder::{Builder, Operand};
pub use builder::{Class, Register};
use cantus_base::listed::Ordered;
use control::Scope;
pub use flat::{Flat, flat};
use pointer::Pointer;
use survey::Survey;
use types::{Ty, Types};
use variable::Variable;

/// A construct that the CPU executor does not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("the CPU executor does not support {construct}")]
pub struct Unsupported {
    /// The construct, in WGSL's words.
    pub construct: String,
    /// The place in the source, in bytes.
    pub span: Option<core::ops::Range<usize>>,
}

type Result<T> = std::result::Result<T, Unsupported>;

/// Lanes of a batch, where workgroups may share one: enough to drown the interpreter's cost, few enough for the
/// registers to stay in the first-level cache.
const BATCH_LANES: u32 = 512;
/// Lanes of a batch of workgroups with memory of their own, and the bytes that their memory may take together: what they touch stays in the second-level
/// cache.
const GROUPS_LANES: u32 = 256;
const GROUPS_BYTES: u32 = 1 << 18;
/// A kernel that grows beyond this when its calls are inlined is refused.
const MAX_INSTRUCTIONS: usize = 400_000;
/// Statements lowered and scalars computed in one attempt: calls may multiply both without adding an instruction.
const MAX_WORK: usize = 1 << 23;
/// The search for what is uniform may take this many attempts, or this much work where each takes long.
const MAX_ATTEMPTS: usize = 24;
const MAX_SEARCH: usize = 1 << 20;

/// Compiles one compute entry point of a validated module.
///
/// Overrides must be resolved (`naga::back::pipeline_constants::process_overrides`).
///
/// # Errors
/// [`Unsupported`] names the first construct that the executor does not run: textures, ray queries, and
/// kernels too large to inline.
pub fn compile(module: &Module, info: &ModuleInfo, entry_point: usize) -> std::result::Result<Bytecode, Unsupported> {
    let refuse = |construct: &str| Unsupported { construct: construct.to_owned(), span: None };
    let entry = module.entry_points.get(entry_point).ok_or_else(|| refuse("an entry point that does not exist"))?;
    if entry.stage != ShaderStage::Compute {
        return Err(refuse("entry points other than compute"));
    }
    // `process_overrides` leaves the overrides' names behind, but no use of them.
    if entry.workgroup_size_overrides.is_some() {
        return Err(refuse("overrides that are not resolved"));
    }
    let invocations = entry.workgroup_size.iter().try_fold(1_u32, |product, side| product.checked_mul(*side));
    let invocations = invocations
        .filter(|size| (1..=MAX_LANES).contains(size))
        .ok_or_else(|| refuse("workgroups of no invocation or of more than 65536"))?;
    let globals = Globals::new(module, info.get_entry_point(entry_point), &[])?;
    let survey = Survey::entry(module, &entry.function);
    let single = globals.workgroup_bytes > 0 || survey.subgroups;
    let together = globals.together(invocations, survey.subgroups);
    let batchings: &[Batching] = match (single, together) {
        (true, 1) => &[Batching::Single],
        (true, _) => &[Batching::Single, Batching::Groups],
        (false, _) => &[Batching::Row, Batching::Linear],
    };
    let mut codes = Vec::new();
    for batching in batchings {
        let code = lower_until_stable(module, info, entry_point, &globals, *batching, [invocations, together])?;
        if code.words > MAX_WORDS {
            return Err(refuse(
                "kernels whose variables and values take more than 256 MiB for one batch of invocations",
            ));
        }
        codes.push(code);
    }
    let program = Bytecode {
        workgroup_size: entry.workgroup_size,
        bindings: globals.bindings,
        workgroup_bytes: globals.workgroup_bytes,
        codes,
        checked: Default::default(),
    };
    // The executor trusts only what was checked, the lowering's own work included.
    program.check().map_err(|corrupt| refuse(&format!("this kernel, by a fault of its own: {corrupt}")))?;
    Ok(program)
}

fn lower_until_stable(
    module: &Module,
    info: &ModuleInfo,
    entry_point: usize,
    globals: &Globals,
    batching: Batching,
    [invocations, together]: [u32; 2],
) -> Result<Code> {
    let lanes = match batching {
        Batching::Single => invocations,
        Batching::Row | Batching::Linear => invocations.max(BATCH_LANES / invocations * invocations),
        Batching::Groups => together * invocations,
    };
    let lanes = lanes.next_multiple_of(LANE_STEP);
    let mut facts = Facts::default();
    loop {
        let one_group = batching == Batching::Single || lanes / invocations == 1;
        let mut lowering = Lowering::new(module, info, globals, &facts, batching, one_group);
        lowering.entry_point(entry_point)?;
        let Lowering { builder, found, work, .. } = lowering;
        if found.is_empty() {
            return Ok(allocate::code(builder, &globals.bindings, batching, lanes));
        }
        facts.extend(found, work);
    }
}

/// The results of earlier attempts.
#[derive(Default)]
struct Facts {
    found: FxHashSet<Fact>,
    attempts: usize,
    work: usize,
    /// The budget is spent: whatever can vary does.
    all_vary: bool,
}

impl Facts {
    fn hold(&self, fact: &Fact) -> bool {
        self.found.contains(fact) || self.all_vary && !matches!(fact, Fact::Indexed(_))
    }

    fn extend(&mut self, found: FxHashSet<Fact>, work: usize) {
        self.found.extend(found);
        self.attempts += 1;
        self.work = self.work.saturating_add(work);
        self.all_vary = self.attempts > MAX_ATTEMPTS || self.work > MAX_SEARCH;
    }
}

/// A violation of the optimistic assumptions. Ids number variables and constructs in the order in which the lowering
/// meets them, which is the same in every attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Fact {
    /// A scalar of a variable differs between invocations.
    Varying(usize, usize),
    /// A variable is indexed at run time and lives in memory.
    Indexed(usize),
    /// Invocations leave the construct at different times: it needs a mask of its own.
    Divergent(u32),
}

/// The module's variables that the entry point uses, and where they live.
struct Globals {
    bindings: Vec<BindingInfo>,
    places: FxHashMap<Handle<GlobalVariable>, Place>,
    workgroup_bytes: u32,
    /// A binding that the kernel writes holds atomics.
    atomics: bool,
}

#[derive(Clone, Copy)]
enum Place {
    Binding(u32),
    /// Offset in bytes, and the words of each scalar.
    Workgroup {
        base: u32,
        unit: u32,
    },
    Private,
    /// An override that comes with the launch of a kernel compiled ahead.
    Argument(u8),
}

impl Globals {
    /// `arguments` are the names of variables that stand for overrides, which come with the launch.
    fn new(module: &Module, info: &FunctionInfo, arguments: &[String]) -> Result<Self> {
        let types = Types::new(module);
        let mut globals =
            Globals { bindings: Vec::new(), places: FxHashMap::default(), workgroup_bytes: 0, atomics: false };
        let mut bound = Vec::new();
        for (handle, variable) in module.global_variables.iter() {
            if info[handle].is_empty() {
                continue;
            }
            let span = module.global_variables.get_span(handle).to_range();
            let refuse = |construct: &str| Unsupported { construct: construct.to_owned(), span: span.clone() };
            if let Some(place) = arguments.iter().position(|known| variable.name.as_ref() == Some(known)) {
                let place = u8::try_from(place).map_err(|_| refuse("more than 256 overrides"))?;
                globals.places.insert(handle, Place::Argument(place));
                continue;
            }
            match variable.space {
                AddressSpace::Storage { .. } | AddressSpace::Uniform => {
                    let binding = variable.binding.ok_or_else(|| refuse("buffers without a binding"))?;
                    if matches!(module.types[variable.ty].inner, naga::TypeInner::BindingArray { .. }) {
                        return Err(refuse("binding arrays"));
                    }
                    bound.push((binding.group, binding.binding, handle));
                }
                AddressSpace::WorkGroup => {
                    let ty = Ty::Handle(variable.ty);
                    let unit = if types.has_wide(ty) { 2 } else { 1 };
                    let scalars = types.scalars(ty).ok_or_else(|| refuse("workgroup variables of this type"))?;
                    let base = globals.workgroup_bytes.next_multiple_of(8);
                    let end = u64::from(base) + scalars * u64::from(unit) * 4;
                    globals.workgroup_bytes = u32::try_from(end)
                        .ok()
                        .filter(|bytes| *bytes <= MAX_WORKGROUP_BYTES)
                        .ok_or_else(|| refuse("workgroup variables of more than 4 MiB"))?;
                    globals.places.insert(handle, Place::Workgroup { base, unit });
                }
                AddressSpace::Private => {
                    globals.places.insert(handle, Place::Private);
                }
                AddressSpace::Handle => return Err(refuse("textures, samplers and acceleration structures")),
                AddressSpace::Immediate => return Err(refuse("immediates")),
                _ => return Err(refuse("variables of this address space")),
            }
        }
        bound.order_by_key(|(group, binding, _)| (*group, *binding));
        for (place, (group, binding, handle)) in bound.into_iter().enumerate() {
            let variable = &module.global_variables[handle];
            let writable = match variable.space {
                AddressSpace::Storage { access } => access.intersects(StorageAccess::STORE | StorageAccess::ATOMIC),
                _ => false,
            };
            globals.atomics |= writable && has_atomics(module, variable.ty);
            globals.bindings.push(BindingInfo {
                group,
                binding,
                name: variable.name.clone().unwrap_or_default(),
                writable,
                min_bytes: types.min_bytes(variable.ty),
                align: if types.has_wide(Ty::Handle(variable.ty)) { 8 } else { 4 },
            });
            globals.places.insert(handle, Place::Binding(place as u32));
        }
        Ok(globals)
    }

    /// Returns how many workgroups with memory of their own run in one batch. Those that have atomics in a buffer run one after the other: one may wait
    /// there for what an earlier one does.
    fn together(&self, invocations: u32, subgroups: bool) -> u32 {
        let straddles = subgroups && !invocations.is_multiple_of(SUBGROUP_SIZE);
        if self.atomics || straddles {
            return 1;
        }
        (GROUPS_LANES / invocations).min(GROUPS_BYTES / self.workgroup_bytes.max(1)).max(1)
    }
}

fn has_atomics(module: &Module, ty: Handle<naga::Type>) -> bool {
    match &module.types[ty].inner {
        naga::TypeInner::Atomic(_) => true,
        naga::TypeInner::Array { base, .. } => has_atomics(module, *base),
        naga::TypeInner::Struct { members, .. } => members.iter().any(|member| has_atomics(module, member.ty)),
        _ => false,
    }
}

/// The value of an expression.
#[derive(Clone)]
enum Value {
    Scalars(Rc<[Operand]>),
    Pointer(Rc<Pointer>),
}

/// The findings about a function, made before it is lowered.
type Surveyed = (Rc<survey::Homes>, Rc<survey::Carried>, Rc<survey::CountedLoops>);

/// One function being inlined.
struct Frame<'m> {
    function: &'m Function,
    info: &'m FunctionInfo,
    values: Vec<Option<Value>>,
    arguments: Vec<Value>,
    variables: FxHashMap<Handle<LocalVariable>, usize>,
    /// The variable that takes the result; `None` while a single return gives it directly.
    result: Option<usize>,
    direct: Option<Value>,
    homes: Rc<survey::Homes>,
    carried: Rc<survey::Carried>,
    counted: Rc<survey::CountedLoops>,
    /// Nothing follows the block being lowered: returning is falling off its end.
    tail: bool,
}

/// One attempt at lowering the entry point.
struct Lowering<'m, 'f> {
    module: &'m Module,
    info: &'m ModuleInfo,
    globals: &'f Globals,
    facts: &'f Facts,
    found: FxHashSet<Fact>,
    /// Statements lowered and scalars computed.
    work: usize,
    batching: Batching,
    /// Each batch is one workgroup.
    one_group: bool,
    /// Lanes of a row along x, where the batch is a part of one and not of workgroups: for kernels compiled ahead.
    row: Option<u32>,
    /// For a kernel compiled ahead.
    is_ahead: bool,
    builder: Builder,
    types: Types<'m>,
    scopes: Vec<Scope>,
    next_scope: u32,
    frames: Vec<Frame<'m>>,
    variables: Vec<Variable>,
    /// Variables of the private address space.
    privates: FxHashMap<Handle<GlobalVariable>, usize>,
    /// Private memory is shared by all inlined copies of a function: none of them run at once.
    private_homes: FxHashMap<(usize, Handle<LocalVariable>), u32>,
    surveyed: FxHashMap<usize, Surveyed>,
    workgroup_size: [u32; 3],
    span: naga::Span,
}

impl<'m, 'f> Lowering<'m, 'f> {
    fn new(
        module: &'m Module,
        info: &'m ModuleInfo,
        globals: &'f Globals,
        facts: &'f Facts,
        batching: Batching,
        one_group: bool,
    ) -> Self {
        Lowering {
            module,
            info,
            globals,
            facts,
            found: FxHashSet::default(),
            work: 0,
            batching,
            one_group,
            row: None,
            is_ahead: false,
            builder: Builder::default(),
            types: Types::new(module),
            scopes: Vec::new(),
            next_scope: 0,
            frames: Vec::new(),
            variables: Vec::new(),
            privates: FxHashMap::default(),
            private_homes: FxHashMap::default(),
            surveyed: FxHashMap::default(),
            workgroup_size: [1; 3],
            span: naga::Span::UNDEFINED,
        }
    }

    fn entry_point(&mut self, index: usize) -> Result<()> {
        let (module, info) = (self.module, self.info);
        let entry = &module.entry_points[index];
        self.workgroup_size = entry.workgroup_size;
        let arguments = self.inputs(&entry.function)?;
        self.function(&entry.function, info.get_entry_point(index), arguments, true)?;
        self.builder.emit(Builder::bare(Op::End));
        Ok(())
    }

    /// Counts work, and ends where there is too much of it.
    fn spend(&mut self, work: usize) -> Result<()> {
        self.work = self.work.saturating_add(work);
        if self.builder.instructions.len() > MAX_INSTRUCTIONS {
            return self.unsupported("kernels of this size: inlined, they have more than 400000 instructions");
        }
        if self.work > MAX_WORK {
            return self.unsupported("kernels of this size: inlined, their calls and values are more than 8 million");
        }
        Ok(())
    }

    fn unsupported<T>(&self, construct: impl Into<String>) -> Result<T> {
        Err(Unsupported { construct: construct.into(), span: self.span.to_range() })
    }

    /// Turns a missing answer into an error that names the construct.
    fn known<T>(&self, value: Option<T>, construct: &str) -> Result<T> {
        match value {
            Some(value) => Ok(value),
            None => self.unsupported(construct),
        }
    }

    fn frame(&self) -> Result<&Frame<'m>> {
        self.known(self.frames.last(), "code outside functions")
    }

    fn frame_mut(&mut self) -> Result<&mut Frame<'m>> {
        let span = self.span;
        self.frames
            .last_mut()
            .ok_or_else(|| Unsupported { construct: "code outside functions".to_owned(), span: span.to_range() })
    }
}
