//! The constructs of a kernel that drivers are known to get wrong. Each has a kernel of that name in `shaders/answers` whose results are
//! known, and the engine believes a driver only after it has given them.

use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{
    AddressSpace, BinaryOperator, Block, Expression, Function, Handle, MathFunction, Module, ScalarKind, Statement,
    TypeInner, UnaryOperator,
};

use super::rounds;

macro_rules! needs {
    ($($(#[$doc:meta])* $need:ident = $name:literal,)*) => {
        /// A construct that a driver must have shown to get right.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Need { $($(#[$doc])* $need,)* }

        impl Need {
            /// Every need, in the order in which they are asked.
            pub const ALL: &[Self] = &[$(Self::$need,)*];

            /// The name of its kernel in `shaders/answers`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$need => $name,)* }
            }
        }
    };
}

needs! {
    /// The ids of a dispatch in three dimensions.
    Ids = "ids",
    /// Integers that wrap.
    IntegerArithmetic = "integer_arithmetic",
    /// Exact float arithmetic and rounding.
    Floats = "floats",
    /// `&&`, `||`, `select`, comparisons of vectors.
    Conditions = "conditions",
    /// `continue`, `break`, `return` in loops, variables that swap.
    Loops = "loops",
    /// More than 65,535 rounds of all loops of an invocation together.
    LongLoops = "long_loops",
    /// `switch` in loops.
    Switches = "switches",
    /// A `switch` of many cases, and a long chain of `else if`.
    ManyCases = "many_cases",
    /// Integer division and remainder, by zero too.
    IntegerDivision = "integer_division",
    /// Shifts by amounts known at run time.
    Shifts = "shifts",
    /// Functions of bits.
    Bits = "bits",
    /// Floats to integers beyond their range.
    FloatToInt = "float_to_int",
    /// Packing into words.
    Packing = "packing",
    /// Computed indices into local arrays, vectors and matrices.
    DynamicIndexing = "dynamic_indexing",
    /// Private variables begin as declared.
    PrivateMemory = "private_memory",
    /// Pointers handed to functions.
    Pointers = "pointers",
    /// Products of matrices.
    Matrices = "matrices",
    /// Layouts of structures in storage.
    ArrayStrides = "array_strides",
    /// Layouts of structures in uniform blocks.
    UniformLayout = "uniform_layout",
    /// Workgroup memory begins as zeros.
    WorkgroupZeroed = "workgroup_zeroed",
    /// A store before a barrier is read after it.
    WorkgroupSums = "workgroup_sums",
    /// Barriers in loops.
    BarriersInLoops = "barriers_in_loops",
    /// Barriers under conditions that are the same for a workgroup.
    BarriersUnderConditions = "barriers_under_conditions",
    /// Atomics in storage and workgroup memory.
    Atomics = "atomics",
    /// Subgroup operations.
    Subgroups = "subgroups",
    /// f16 arithmetic.
    Halves = "halves",
    /// 64-bit integers.
    WideIntegers = "wide_integers",
    /// f64 arithmetic.
    Doubles = "doubles",
    /// More than 65,535 workgroups in one dimension.
    LargeDispatch = "large_dispatch",
    /// Matrices that a subgroup multiplies together.
    CooperativeMatrices = "cooperative_matrices",
    /// The same for 8 x 8 elements.
    SmallCooperativeMatrices = "small_cooperative_matrices",
    /// The reproducible form of float32 arithmetic; asked for in reproducible mode alone.
    SameBits = "same_bits",
}

impl std::fmt::Display for Need {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// An entry point's demands on a driver and on a device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Demands {
    pub(super) needs: Needs,
    /// An estimate of the operations of an invocation.
    pub(super) operations: u64,
    /// The statements once every call is written out.
    pub(super) written_out: u64,
    /// The numbers of the largest array of an invocation's own with a computed index, or the cases of the longest `switch`.
    pub(super) longest: u64,
}

impl Demands {
    /// Returns the needs of an entry point and of all functions that it calls.
    pub(super) fn of(module: &Module, info: &ModuleInfo, entry_point: usize) -> Self {
        let mut walk = Walk { module, info, needs: Needs::default(), longest: 0, calls: Vec::new() };
        walk.entry(entry_point);
        let Walk { mut needs, longest, .. } = walk;
        if rounds::of_entry_point(module, entry_point).is_none_or(|rounds| rounds > rounds::SMALL) {
            needs.insert(Need::LongLoops);
        }
        let operations = rounds::operations(module, entry_point);
        Self { needs, operations, written_out: rounds::written_out(module, entry_point), longest }
    }
}

/// A set of needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[doc(hidden)]
pub struct Needs(u64);

impl Needs {
    #[doc(hidden)]
    pub fn insert(&mut self, need: Need) {
        self.0 |= 1 << need as u8;
    }

    #[doc(hidden)]
    pub fn remove(&mut self, need: Need) {
        self.0 &= !(1 << need as u8);
    }

    #[doc(hidden)]
    pub fn contains(self, need: Need) -> bool {
        self.0 & (1 << need as u8) != 0
    }

    #[doc(hidden)]
    pub fn iter(self) -> impl Iterator<Item = Need> {
        Need::ALL.iter().copied().filter(move |need| self.contains(*need))
    }
}

/// The constructs around a statement.
#[derive(Clone, Copy, Default, PartialEq)]
struct Place {
    in_loop: bool,
    under_condition: bool,
    /// The conditions that were false on the way here; each case of a `switch` is one.
    refused: u32,
}

/// More conditions one after the other than this are many: llvmpipe forgets what lies behind 78.
const MANY: u32 = 48;

/// The scalars of a value, or of what a pointer points to.
pub(crate) fn numbers(module: &Module, inner: &TypeInner) -> u64 {
    let of = |ty: Handle<naga::Type>| numbers(module, &module.types[ty].inner);
    match *inner {
        TypeInner::Pointer { base, .. } => of(base),
        TypeInner::Array { base, size: naga::ArraySize::Constant(count), .. } => {
            of(base).saturating_mul(count.get().into())
        }
        TypeInner::Vector { size, .. } | TypeInner::ValuePointer { size: Some(size), .. } => size as u64,
        TypeInner::Matrix { columns, rows, .. } => columns as u64 * rows as u64,
        TypeInner::Struct { ref members, .. } => {
            members.iter().map(|member| of(member.ty)).fold(0, u64::saturating_add)
        }
        _ => 1,
    }
}

struct Walk<'a> {
    module: &'a Module,
    info: &'a ModuleInfo,
    needs: Needs,
    longest: u64,
    calls: Vec<(Handle<Function>, Place)>,
}

impl Walk<'_> {
    fn entry(&mut self, entry_point: usize) {
        self.needs.insert(Need::Ids);
        let Some(entry) = self.module.entry_points.get(entry_point) else { return };
        self.function(&entry.function, self.info.get_entry_point(entry_point));
        self.block(&entry.function.body, Place::default());
        // Each function once for each kind of place that it is called from: calls can be nested exponentially.
        let mut done = Vec::new();
        while let Some(call) = self.calls.pop() {
            if done.contains(&call) {
                continue;
            }
            done.push(call);
            let (handle, place) = call;
            let (module, info) = (self.module, self.info);
            let function = &module.functions[handle];
            self.function(function, &info[handle]);
            self.block(&function.body, place);
        }
    }

    fn function(&mut self, function: &Function, info: &FunctionInfo) {
        for (handle, global) in self.module.global_variables.iter() {
            if info[handle].is_empty() {
                continue;
            }
            match global.space {
                AddressSpace::WorkGroup => {
                    self.needs.insert(Need::WorkgroupZeroed);
                    self.needs.insert(Need::WorkgroupSums);
                }
                AddressSpace::Private => self.needs.insert(Need::PrivateMemory),
                AddressSpace::Storage { .. } if self.composite(global.ty) => self.needs.insert(Need::ArrayStrides),
                AddressSpace::Uniform if self.composite(global.ty) => self.needs.insert(Need::UniformLayout),
                _ => {}
            }
        }
        self.arguments(function);
        for (handle, expression) in function.expressions.iter() {
            let Some(need) = self.need_of(expression, handle, function, info) else { continue };
            self.needs.insert(need);
            match info[handle].ty.inner_with(&self.module.types).scalar() {
                Some(scalar) if scalar.kind == ScalarKind::Float && scalar.width == 2 => {
                    self.needs.insert(Need::Halves);
                }
                Some(scalar) if scalar.kind == ScalarKind::Float && scalar.width == 8 => {
                    self.needs.insert(Need::Doubles);
                }
                Some(scalar) if scalar.width == 8 => self.needs.insert(Need::WideIntegers),
                _ => {}
            }
        }
    }

    fn arguments(&mut self, function: &Function) {
        for argument in &function.arguments {
            if matches!(self.module.types[argument.ty].inner, TypeInner::Pointer { .. }) {
                self.needs.insert(Need::Pointers);
            }
            if let Some(naga::Binding::BuiltIn(naga::BuiltIn::SubgroupSize | naga::BuiltIn::SubgroupInvocationId)) =
                argument.binding
            {
                self.needs.insert(Need::Subgroups);
            }
        }
    }

    /// Returns the need of an expression, if it has one. Notes the longest array of numbers that it indexes.
    fn need_of(
        &mut self,
        expression: &Expression,
        handle: Handle<Expression>,
        function: &Function,
        info: &FunctionInfo,
    ) -> Option<Need> {
        let types = &self.module.types;
        let inner = |of: Handle<Expression>| info[of].ty.inner_with(types);
        let kind = |of: Handle<Expression>| inner(of).scalar().map(|scalar| scalar.kind);
        let whole = |of: Handle<Expression>| matches!(kind(of), Some(ScalarKind::Sint | ScalarKind::Uint));
        let is_local = |of: Handle<Expression>| {
            !matches!(
                inner(of).pointer_space(),
                Some(AddressSpace::Storage { .. } | AddressSpace::Uniform | AddressSpace::WorkGroup)
            )
        };
        Some(match *expression {
            Expression::Binary { op, left, right } => match op {
                BinaryOperator::Divide | BinaryOperator::Modulo if whole(left) => Need::IntegerDivision,
                BinaryOperator::ShiftLeft | BinaryOperator::ShiftRight
                    if !matches!(function.expressions[right], Expression::Literal(_)) =>
                {
                    Need::Shifts
                }
                BinaryOperator::Multiply
                    if [left, right].iter().any(|&of| matches!(inner(of), TypeInner::Matrix { .. })) =>
                {
                    Need::Matrices
                }
                _ if whole(left) => Need::IntegerArithmetic,
                _ => Need::Floats,
            },
            Expression::Unary { op: UnaryOperator::Negate, expr } if whole(expr) => Need::IntegerArithmetic,
            Expression::Select { .. } | Expression::Relational { .. } => Need::Conditions,
            Expression::As { expr, kind: to, convert: Some(_) }
                if kind(expr) == Some(ScalarKind::Float) && matches!(to, ScalarKind::Sint | ScalarKind::Uint) =>
            {
                Need::FloatToInt
            }
            Expression::Access { base, .. } if is_local(base) => {
                self.longest = self.longest.max(numbers(self.module, inner(base)));
                Need::DynamicIndexing
            }
            Expression::CooperativeLoad { .. } | Expression::CooperativeMultiplyAdd { .. } => match inner(handle) {
                TypeInner::CooperativeMatrix { rows: naga::CooperativeSize::Eight, .. } => {
                    Need::SmallCooperativeMatrices
                }
                _ => Need::CooperativeMatrices,
            },
            Expression::Math { fun, .. } => of_function(fun).unwrap_or(Need::Floats),
            _ => return None,
        })
    }

    /// Returns whether a layout has more to it than scalars or vectors of two and four in a row.
    fn composite(&self, ty: Handle<naga::Type>) -> bool {
        match &self.module.types[ty].inner {
            TypeInner::Scalar(_) | TypeInner::Atomic(_) => false,
            TypeInner::Vector { size, .. } => *size == naga::VectorSize::Tri,
            TypeInner::Array { base, .. } => self.composite(*base),
            TypeInner::Struct { members, .. } => members.iter().any(|member| {
                !matches!(self.module.types[member.ty].inner, TypeInner::Scalar(_) | TypeInner::Atomic(_))
            }),
            _ => true,
        }
    }

    /// A place behind further conditions that were false.
    fn behind(&mut self, place: Place, conditions: usize) -> Place {
        let refused = place.refused.saturating_add(u32::try_from(conditions).unwrap_or(u32::MAX)).min(MANY + 1);
        if refused > MANY {
            self.needs.insert(Need::ManyCases);
        }
        Place { refused, ..place }
    }

    /// Walks a block, and returns whether the function may end in it. What follows is under a condition then.
    fn block(&mut self, block: &Block, mut place: Place) -> bool {
        let mut may_end = false;
        for statement in block {
            let ends = match statement {
                Statement::Return { .. } => true,
                Statement::Block(block) => self.block(block, place),
                Statement::If { accept, reject, .. } => {
                    self.needs.insert(Need::Conditions);
                    let place = Place { under_condition: true, ..place };
                    let behind = self.behind(place, 1);
                    self.block(accept, place) | self.block(reject, behind)
                }
                Statement::Switch { cases, .. } => {
                    self.needs.insert(Need::Switches);
                    self.longest = self.longest.max(cases.len() as u64);
                    let place = Place { under_condition: true, ..self.behind(place, cases.len()) };
                    cases.iter().fold(false, |ends, case| self.block(&case.body, place) | ends)
                }
                Statement::Loop { body, continuing, .. } => {
                    self.needs.insert(Need::Loops);
                    let place = Place { in_loop: true, ..place };
                    self.block(body, place) | self.block(continuing, place)
                }
                other => {
                    self.plain(other, place);
                    false
                }
            };
            may_end |= ends;
            place.under_condition |= ends;
        }
        may_end
    }

    /// Notes what a statement without blocks needs.
    fn plain(&mut self, statement: &Statement, place: Place) {
        match statement {
            Statement::ControlBarrier(_) | Statement::WorkGroupUniformLoad { .. } => {
                if place.in_loop {
                    self.needs.insert(Need::BarriersInLoops);
                }
                if place.under_condition {
                    self.needs.insert(Need::BarriersUnderConditions);
                }
            }
            Statement::Atomic { .. } => self.needs.insert(Need::Atomics),
            Statement::SubgroupBallot { .. }
            | Statement::SubgroupGather { .. }
            | Statement::SubgroupCollectiveOperation { .. } => self.needs.insert(Need::Subgroups),
            Statement::Call { function, .. } => self.calls.push((*function, place)),
            _ => {}
        }
        let _ = self.info;
    }
}

fn of_function(fun: MathFunction) -> Option<Need> {
    use MathFunction as F;
    Some(match fun {
        F::CountTrailingZeros
        | F::CountLeadingZeros
        | F::CountOneBits
        | F::ReverseBits
        | F::ExtractBits
        | F::InsertBits
        | F::FirstTrailingBit
        | F::FirstLeadingBit => Need::Bits,
        F::Pack4x8snorm
        | F::Pack4x8unorm
        | F::Pack2x16snorm
        | F::Pack2x16unorm
        | F::Pack2x16float
        | F::Unpack4x8snorm
        | F::Unpack4x8unorm
        | F::Unpack2x16snorm
        | F::Unpack2x16unorm
        | F::Unpack2x16float => Need::Packing,
        F::Transpose | F::Determinant | F::Outer | F::Dot | F::Cross => Need::Matrices,
        _ => return None,
    })
}
