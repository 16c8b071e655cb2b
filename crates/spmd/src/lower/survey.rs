//! The survey of functions before they are lowered. `lower` runs it first: whether there are barriers or subgroup operations decides how workgroups become
//! batches. `homes` finds the block that each variable belongs to: lanes that are inactive there need not keep its value. `carried` finds variables that
//! only a loop reads: lanes that have left it need not keep them either. `counted` finds loops that do nothing but count.

use naga::{BinaryOperator, Block, BuiltIn, Expression, Function, Handle, LocalVariable, Module, Statement};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::flow::blocks;
use cantus_base::listed::Listed;

/// The constructs in the entry point and everything it calls.
#[derive(Default)]
pub(crate) struct Survey {
    /// Operations on subgroups, or ids of them.
    pub subgroups: bool,
    seen: FxHashSet<Handle<Function>>,
}

impl Survey {
    pub fn entry(module: &Module, function: &Function) -> Self {
        let mut survey = Survey::default();
        for argument in &function.arguments {
            let mut bindings = vec![argument.binding.as_ref()];
            if let naga::TypeInner::Struct { members, .. } = &module.types[argument.ty].inner {
                bindings.extend(members.iter().map(|member| member.binding.as_ref()));
            }
            survey.subgroups |= bindings.into_iter().flatten().any(|binding| {
                matches!(
                    binding,
                    naga::Binding::BuiltIn(BuiltIn::SubgroupId | BuiltIn::SubgroupInvocationId | BuiltIn::NumSubgroups)
                )
            });
        }
        survey.function(module, function);
        survey
    }

    fn function(&mut self, module: &Module, function: &Function) {
        let mut expressions = function.expressions.iter();
        self.subgroups |= expressions.any(|(_, expression)| {
            matches!(expression, Expression::CooperativeLoad { .. } | Expression::CooperativeMultiplyAdd { .. })
        });
        self.block(module, &function.body);
    }

    fn block(&mut self, module: &Module, block: &Block) {
        for statement in block {
            self.subgroups |= matches!(
                statement,
                Statement::SubgroupBallot { .. }
                    | Statement::SubgroupGather { .. }
                    | Statement::SubgroupCollectiveOperation { .. }
                    | Statement::CooperativeStore { .. }
            );
            if let Statement::Call { function, .. } = statement
                && self.seen.insert(*function)
            {
                self.function(module, &module.functions[*function]);
            }
            for inner in blocks(statement) {
                self.block(module, inner);
            }
        }
    }
}

/// Number of returns in the block.
pub(crate) fn returns(block: &Block) -> usize {
    block
        .iter()
        .map(|statement| match statement {
            Statement::Return { .. } => 1,
            _ => blocks(statement).into_iter().map(returns).sum(),
        })
        .sum()
}

/// Expressions of a side that is computed for all lanes rather than skipped.
const CHEAP: usize = 16;

/// The variable that a block stores into as a whole at its end, if it does nothing else but compute a little.
pub(crate) fn only_store(function: &Function, block: &Block) -> Option<Handle<LocalVariable>> {
    let mut expressions = 0;
    for (place, statement) in block.iter().enumerate() {
        let last = place + 1 == block.len();
        match statement {
            Statement::Emit(range) => expressions += range.clone().count(),
            Statement::If { accept, reject, .. } => {
                // A choice within a choice; nobody may see that it is made for more lanes, so only naga's own.
                let inner = only_store(function, accept)?;
                let own = function.local_variables[inner].name.is_none();
                if last || !own || only_store(function, reject)? != inner {
                    return None;
                }
            }
            Statement::Store { pointer, .. } if last && expressions <= CHEAP => {
                let Expression::LocalVariable(variable) = function.expressions[*pointer] else { return None };
                return Some(variable);
            }
            _ => return None,
        }
    }
    None
}

/// For each block (by address) the variables that live in it and nowhere else: invocations that are inactive when the block is entered
/// never see the values stored in them there.
pub(crate) type Homes = FxHashMap<usize, Vec<Handle<LocalVariable>>>;

pub(crate) fn homes(function: &Function) -> Homes {
    let reach = vec![None; function.expressions.len()];
    let mut search = Search { function, reach, homes: FxHashMap::default(), lived: FxHashMap::default() };
    search.block(&function.body, false);
    search.homes
}

struct Search<'a> {
    function: &'a Function,
    /// Variables that an expression leads to.
    reach: Vec<Option<FxHashSet<Handle<LocalVariable>>>>,
    homes: Homes,
    /// The blocks that are homes of a variable so far.
    lived: FxHashMap<Handle<LocalVariable>, Vec<usize>>,
}

type Set = FxHashSet<Handle<LocalVariable>>;

impl Search<'_> {
    fn expression(&mut self, handle: Handle<Expression>) -> Set {
        if let Some(known) = self.reach.get(handle.index()).and_then(Option::as_ref) {
            return known.clone();
        }
        let mut set = Set::default();
        let mut operands = Vec::new();
        match &self.function.expressions[handle] {
            Expression::LocalVariable(variable) => {
                set.insert(*variable);
            }
            // Values that were computed before do not touch the variable again; pointers lead to it.
            Expression::Load { pointer } => operands.push(*pointer),
            Expression::Access { base, index } => operands.extend([*base, *index]),
            Expression::AccessIndex { base, .. } => operands.push(*base),
            _ => {}
        }
        for operand in operands {
            set.extend(self.expression(operand));
        }
        if let Some(entry) = self.reach.get_mut(handle.index()) {
            *entry = Some(set.clone());
        }
        set
    }

    /// Variables used in the block. `repeats`: the block is in a loop of its function.
    fn block(&mut self, block: &Block, repeats: bool) -> Set {
        let mut all = Set::default();
        // Variables seen in more than one statement of this block, or in its own statements: this block is their home.
        let mut count: FxHashMap<Handle<LocalVariable>, (usize, bool)> = FxHashMap::default();
        let mut first: FxHashMap<Handle<LocalVariable>, bool> = FxHashMap::default();
        for statement in block {
            let mut here = Set::default();
            let mut handles = Vec::new();
            operands(statement, &mut handles);
            for handle in handles {
                here.extend(self.expression(handle));
            }
            let direct = here.clone();
            let inner_repeats = repeats || matches!(statement, Statement::Loop { .. });
            let inner: Vec<Set> = blocks(statement).into_iter().map(|inner| self.block(inner, inner_repeats)).listed();
            let mut places: FxHashMap<Handle<LocalVariable>, usize> = FxHashMap::default();
            for set in &inner {
                for variable in set {
                    *places.entry(*variable).or_default() += 1;
                }
            }
            for set in inner {
                here.extend(set);
            }
            for variable in &here {
                let entry = count.entry(*variable).or_insert((0, false));
                entry.0 += 1;
                entry.1 |= direct.contains(variable) || places.get(variable).is_some_and(|places| *places > 1);
                first.entry(*variable).or_insert_with(|| whole_store(self.function, statement, *variable));
            }
            all.extend(here);
        }
        let shared: Vec<_> =
            count.iter().filter(|(_, (statements, direct))| *statements > 1 || *direct).map(|(v, _)| *v).listed();
        for variable in &shared {
            // This block uses it beside an inner one, which is no home then.
            for home in self.lived.remove(variable).unwrap_or_default() {
                if let Some(others) = self.homes.get_mut(&home) {
                    others.retain(|other| other != variable);
                }
            }
        }
        let fresh = |variable: &Handle<LocalVariable>| first.get(variable).copied().unwrap_or(false);
        let homes: Vec<_> = shared.into_iter().filter(|variable| !repeats || fresh(variable)).listed();
        if !homes.is_empty() {
            let address = std::ptr::from_ref(block) as usize;
            for &variable in &homes {
                self.lived.entry(variable).or_default().push(address);
            }
            self.homes.insert(address, homes);
        }
        all
    }
}

/// For each loop (by the address of its body) the variables that it alone reads, and that are set anew before it begins: invocations that have
/// left it never see what is stored in them. Most counters of loops are such variables.
pub(crate) type Carried = FxHashMap<usize, Vec<Handle<LocalVariable>>>;

pub(crate) fn carried(function: &Function) -> Carried {
    let reach = vec![None; function.expressions.len()];
    let mut search = Search { function, reach, homes: FxHashMap::default(), lived: FxHashMap::default() };
    let mut loops = Vec::new();
    let all = search.uses(&function.body, false, &mut loops);
    let mut carried = Carried::default();
    for found in loops {
        let alone = found.uses.iter().filter(|(variable, uses)| {
            let stores = found.stores.get(variable).copied().unwrap_or(0);
            let is_set = stores > 0 || !found.repeats;
            is_set && all.get(variable).is_some_and(|all| *all == **uses + stores)
        });
        let mut alone: Vec<_> = alone.map(|(variable, _)| *variable).listed();
        alone.sort_unstable();
        carried.insert(found.body, alone);
    }
    carried
}

/// Statements that use each variable.
type Uses = FxHashMap<Handle<LocalVariable>, usize>;

/// A loop, its uses of variables, and the stores of whole variables before it in its block.
struct Loop {
    body: usize,
    uses: Uses,
    stores: Uses,
    /// It is in another loop of its function.
    repeats: bool,
}

impl Search<'_> {
    /// Counts the uses in a block, those in its own blocks as well, and notes its loops.
    fn uses(&mut self, block: &Block, repeats: bool, loops: &mut Vec<Loop>) -> Uses {
        let (mut all, mut stores) = (Uses::default(), Uses::default());
        for statement in block {
            let mut handles = Vec::new();
            operands(statement, &mut handles);
            let direct: Set = handles.into_iter().flat_map(|handle| self.expression(handle)).collect();
            for variable in direct {
                *all.entry(variable).or_default() += 1;
                *stores.entry(variable).or_default() += usize::from(whole_store(self.function, statement, variable));
            }
            let mut inner = Uses::default();
            for block in blocks(statement) {
                for (variable, uses) in self.uses(block, repeats || matches!(statement, Statement::Loop { .. }), loops)
                {
                    *inner.entry(variable).or_default() += uses;
                }
            }
            for (variable, uses) in &inner {
                *all.entry(*variable).or_default() += uses;
            }
            if let Statement::Loop { body, .. } = statement {
                let body = std::ptr::from_ref(body) as usize;
                loops.push(Loop { body, uses: inner, stores: stores.clone(), repeats });
            }
        }
        all
    }
}

/// A loop as `for (var i = start; i < bound; i += step)` makes it, which ends by its condition alone, and in which nothing else changes the counter.
pub(crate) struct Counted {
    pub counter: Handle<LocalVariable>,
    pub start: Handle<Expression>,
    /// The counter is its left operand, the bound its right one.
    pub condition: BinaryOperator,
    pub bound: Handle<Expression>,
    pub step: Handle<Expression>,
    /// The step is subtracted.
    pub down: bool,
    /// The place in the body of the branch that leaves the loop.
    pub exit: usize,
    /// The expressions that the body computes: anew in each round.
    pub computed: Vec<Handle<Expression>>,
}

/// The counted loops of a function, by the addresses of their bodies.
pub(crate) type CountedLoops = FxHashMap<usize, Counted>;

pub(crate) fn counted(function: &Function) -> CountedLoops {
    let mut stores = FxHashMap::default();
    each_statement(&function.body, &mut |statement| {
        if let Some(variable) = changed(function, statement) {
            *stores.entry(variable).or_insert(0) += 1;
        }
    });
    let mut found = CountedLoops::default();
    counted_in(function, &function.body, &stores, false, &mut found);
    found
}

fn each_statement(block: &Block, see: &mut impl FnMut(&Statement)) {
    for statement in block {
        see(statement);
        for inner in blocks(statement) {
            each_statement(inner, see);
        }
    }
}

/// The variable whose pointer the expression is.
fn variable(function: &Function, handle: Handle<Expression>) -> Option<Handle<LocalVariable>> {
    match function.expressions[handle] {
        Expression::LocalVariable(variable) => Some(variable),
        _ => None,
    }
}

/// The variable that a statement stores into as a whole.
fn changed(function: &Function, statement: &Statement) -> Option<Handle<LocalVariable>> {
    match statement {
        Statement::Store { pointer, .. } => variable(function, *pointer),
        _ => None,
    }
}

/// `repeats`: the block is in a loop.
fn counted_in(
    function: &Function,
    block: &Block,
    stores: &FxHashMap<Handle<LocalVariable>, usize>,
    repeats: bool,
    found: &mut CountedLoops,
) {
    for (place, statement) in block.iter().enumerate() {
        let is_loop = matches!(statement, Statement::Loop { .. });
        for inner in blocks(statement) {
            counted_in(function, inner, stores, repeats || is_loop, found);
        }
        let Statement::Loop { body, continuing, break_if: None } = statement else { continue };
        let Some((counter, step, down)) = stepped(function, continuing) else { continue };
        let mut before = block[..place].iter().rev().skip_while(|statement| matches!(statement, Statement::Emit(_)));
        let start = match before.next() {
            Some(Statement::Store { pointer, value }) if variable(function, *pointer) == Some(counter) => Some(*value),
            // Its first value is that of its declaration.
            _ if !repeats && stores.get(&counter) == Some(&1) => function.local_variables[counter].init,
            _ => None,
        };
        let header = body.iter().take_while(|statement| matches!(statement, Statement::Emit(_))).count();
        let (Some(start), Some(Statement::If { condition, accept, reject })) = (start, body.get(header)) else {
            continue;
        };
        let Expression::Binary { op, left, right } = function.expressions[*condition] else { continue };
        let is_exit = accept.is_empty() && matches!(reject[..], [Statement::Break]);
        if is_exit && loaded(function, left) == Some(counter) && only_counts(function, body, header, counter) {
            let mut computed = Vec::new();
            each_statement(body, &mut |statement| {
                if let Statement::Emit(range) = statement {
                    computed.extend(range.clone());
                }
                computed.extend(crate::flow::result(statement));
            });
            let counted = Counted { counter, start, condition: op, bound: right, step, down, exit: header, computed };
            found.insert(std::ptr::from_ref(body) as usize, counted);
        }
    }
}

/// The variable that the expression loads.
fn loaded(function: &Function, handle: Handle<Expression>) -> Option<Handle<LocalVariable>> {
    match function.expressions[handle] {
        Expression::Load { pointer } => variable(function, pointer),
        _ => None,
    }
}

/// The variable that a block does nothing with but add a step to it, or subtract one.
fn stepped(function: &Function, block: &Block) -> Option<(Handle<LocalVariable>, Handle<Expression>, bool)> {
    let mut statements = block.iter().filter(|statement| !matches!(statement, Statement::Emit(_)));
    let (Some(Statement::Store { pointer, value }), None) = (statements.next(), statements.next()) else { return None };
    let counter = variable(function, *pointer)?;
    let Expression::Binary { op, left, right } = function.expressions[*value] else { return None };
    let down = match op {
        BinaryOperator::Add => false,
        BinaryOperator::Subtract => true,
        _ => return None,
    };
    (loaded(function, left) == Some(counter)).then_some((counter, right, down))
}

/// Returns whether the body of a loop leaves it by its header alone, and changes its counter nowhere.
fn only_counts(function: &Function, body: &Block, header: usize, counter: Handle<LocalVariable>) -> bool {
    body.iter().enumerate().all(|(place, statement)| place == header || keeps(function, statement, counter, true, true))
}

/// Returns whether a statement neither changes the variable nor leaves the loop that it is in. `breaks`, `continues`: such statements would leave that loop.
fn keeps(
    function: &Function,
    statement: &Statement,
    counter: Handle<LocalVariable>,
    breaks: bool,
    continues: bool,
) -> bool {
    let is_counter = |handle: &Handle<Expression>| variable(function, *handle) == Some(counter);
    match statement {
        Statement::Break => !breaks,
        Statement::Continue => !continues,
        Statement::Return { .. } | Statement::Kill => false,
        Statement::Store { pointer, .. } => !is_counter(pointer),
        Statement::Call { arguments, .. } => !arguments.iter().any(is_counter),
        other => {
            let is_loop = matches!(other, Statement::Loop { .. });
            let is_switch = matches!(other, Statement::Switch { .. });
            let (breaks, continues) = (breaks && !is_loop && !is_switch, continues && !is_loop);
            let mut inner = blocks(other).into_iter().flatten();
            inner.all(|statement| keeps(function, statement, counter, breaks, continues))
        }
    }
}

/// Returns whether the statement stores the whole variable, from something else.
fn whole_store(function: &Function, statement: &Statement, variable: Handle<LocalVariable>) -> bool {
    match statement {
        Statement::Store { pointer, .. } => {
            matches!(function.expressions[*pointer], Expression::LocalVariable(stored) if stored == variable)
        }
        _ => false,
    }
}

/// Expressions that a statement evaluates or names itself.
fn operands(statement: &Statement, handles: &mut Vec<Handle<Expression>>) {
    match statement {
        Statement::Emit(range) => handles.extend(range.clone()),
        Statement::Store { pointer, value } => handles.extend([*pointer, *value]),
        Statement::Atomic { pointer, value, .. } => handles.extend([*pointer, *value]),
        Statement::WorkGroupUniformLoad { pointer, .. } => handles.push(*pointer),
        Statement::CooperativeStore { target, data } => handles.extend([*target, data.pointer, data.stride]),
        Statement::Call { arguments, .. } => handles.extend(arguments.iter().copied()),
        _ => {}
    }
}
