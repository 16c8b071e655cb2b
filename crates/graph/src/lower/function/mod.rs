//! WGSL functions as nodes of a graph: what the library defines of elements is not written twice. Calls are inlined, branches become selections,
//! loops of a known length are unrolled. What WGSL leaves to devices or defines beyond their instructions is made explicit.

mod numbers;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use naga::{
    Block, Expression, Function, GlobalVariable, Handle, Literal, LocalVariable, Module, RelationalFunction, Statement,
    Type, TypeInner, UnaryOperator,
};

use self::numbers::dtype;
use super::{Lowered, Refused, refused};
use crate::tensor::DType;
use crate::{Binary, Compare, Graph, Unary, Value};
use cantus_base::listed::Listed;

/// A value of WGSL: a number of each element, or several.
#[derive(Debug, Clone)]
pub(super) enum Item {
    One(Value),
    Many(Vec<Self>),
    Place(Place),
}

/// A variable, or a part of one.
#[derive(Debug, Clone)]
pub(super) struct Place {
    root: Root,
    path: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
enum Root {
    Local(Handle<LocalVariable>),
    Global(Handle<GlobalVariable>),
}

/// The longest loop that is unrolled.
const LONGEST: usize = 256;
/// Nodes that one function may become.
const MOST_NODES: usize = 20_000;

impl Item {
    pub(super) fn one(&self) -> Lowered<Value> {
        match self {
            Self::One(value) => Ok(*value),
            _ => refused("a vector where a number is expected"),
        }
    }

    /// Applies a function to every number.
    pub(super) fn each(&self, f: &mut impl FnMut(Value) -> Value) -> Self {
        match self {
            Self::One(value) => Self::One(f(*value)),
            Self::Many(parts) => Self::Many(parts.iter().map(|part| part.each(f)).listed()),
            Self::Place(place) => Self::Place(place.clone()),
        }
    }

    /// Applies a function to the numbers of two items, of which one may be a single number.
    pub(super) fn with(&self, other: &Self, f: &mut impl FnMut(Value, Value) -> Lowered<Value>) -> Lowered<Self> {
        Ok(match (self, other) {
            (Self::One(a), Self::One(b)) => Self::One(f(*a, *b)?),
            (Self::Many(a), Self::Many(b)) => Self::Many(a.iter().zip(b).map(|(a, b)| a.with(b, f)).try_listed()?),
            (Self::Many(a), Self::One(_)) => Self::Many(a.iter().map(|a| a.with(other, f)).try_listed()?),
            (Self::One(_), Self::Many(b)) => Self::Many(b.iter().map(|b| self.with(b, f)).try_listed()?),
            _ => return refused("arithmetic of pointers"),
        })
    }

    fn part(&self, index: u32) -> Lowered<Self> {
        match self {
            Self::Many(parts) => match parts.get(index as usize) {
                Some(part) => Ok(part.clone()),
                None => refused("a part that is not there"),
            },
            _ => refused("a part of a number"),
        }
    }

    /// A part, or the place of one.
    fn accessed(self, index: u32) -> Lowered<Self> {
        match self {
            Self::Place(Place { root, mut path }) => {
                path.push(index);
                Ok(Self::Place(Place { root, path }))
            }
            other => other.part(index),
        }
    }

    /// Its numbers in order.
    fn flattened(&self) -> Vec<Self> {
        match self {
            Self::Many(parts) => parts.iter().flat_map(Self::flattened).listed(),
            other => vec![other.clone()],
        }
    }
}

/// The state at a point of a function, relative to the branch and loop around it.
#[derive(Clone)]
struct State {
    locals: HashMap<Handle<LocalVariable>, Item>,
    result: Option<Item>,
    /// True where the function continues.
    live: Value,
    returned: Value,
    continued: Value,
}

/// A call.
struct Frame<'a> {
    function: &'a Function,
    arguments: Vec<Item>,
    values: HashMap<Handle<Expression>, Item>,
    /// Variables that count the rounds of the loop whose end is being run.
    counters: HashSet<Handle<LocalVariable>>,
}

/// Constants of a kernel's uniforms by their path, such as `grid.width` or `wave.number.0`.
pub(super) type Uniforms<'a> = dyn Fn(&str, DType) -> Option<f64> + 'a;

struct Inliner<'a> {
    module: &'a Module,
    graph: &'a mut Graph,
    uniforms: &'a Uniforms<'a>,
    /// The value that was stored to a global variable.
    stored: Option<Item>,
    depth: usize,
}

impl<'a> Inliner<'a> {
    fn truth(&mut self, truth: bool) -> Value {
        self.graph.constant(u64::from(truth), DType::Bool)
    }

    fn not(&mut self, x: Value) -> Value {
        self.graph.unary(Unary::Not, x)
    }

    /// `a` where `c`, `b` elsewhere, of truth values.
    fn choose(&mut self, c: Value, a: Value, b: Value) -> Value {
        match (self.graph.number(a), self.graph.number(b)) {
            (Some(x), Some(y)) if x == y => a,
            (Some(1), _) => self.graph.binary(Binary::Or, c, b),
            (Some(_), _) => {
                let other = self.not(c);
                self.graph.binary(Binary::And, other, b)
            }
            (_, Some(1)) => {
                let other = self.not(c);
                self.graph.binary(Binary::Or, other, a)
            }
            (_, Some(_)) => self.graph.binary(Binary::And, c, a),
            _ => self.graph.select(c, a, b),
        }
    }

    /// `a` where the condition is true, `b` elsewhere; a condition of several numbers is one for each part.
    fn selected(&mut self, condition: &Item, a: &Item, b: &Item) -> Lowered<Item> {
        match condition {
            Item::One(condition) => self.merged_item(*condition, a, b),
            Item::Many(conditions) => {
                let mut parts = Vec::new();
                for (place, condition) in (0..).zip(conditions) {
                    parts.push(self.merged_item(condition.one()?, &a.part(place)?, &b.part(place)?)?);
                }
                Ok(Item::Many(parts))
            }
            Item::Place(_) => refused("a selection by a pointer"),
        }
    }

    fn merged_item(&mut self, c: Value, a: &Item, b: &Item) -> Lowered<Item> {
        a.with(b, &mut |a, b| Ok(self.graph.select(c, a, b)))
    }

    fn merged(&mut self, c: Value, a: State, b: State) -> Lowered<State> {
        let mut locals = HashMap::new();
        for (local, item) in &a.locals {
            let merged = match b.locals.get(local) {
                Some(other) => self.merged_item(c, item, other)?,
                None => item.clone(),
            };
            locals.insert(*local, merged);
        }
        for (local, item) in b.locals {
            locals.entry(local).or_insert(item);
        }
        let result = match (a.result, b.result) {
            (Some(a), Some(b)) => Some(self.merged_item(c, &a, &b)?),
            (a, b) => a.or(b),
        };
        let mut each = |a, b| self.choose(c, a, b);
        Ok(State {
            locals,
            result,
            live: each(a.live, b.live),
            returned: each(a.returned, b.returned),
            continued: each(a.continued, b.continued),
        })
    }

    fn call(&mut self, function: &'a Function, arguments: Vec<Item>) -> Lowered<Option<Item>> {
        self.depth += 1;
        if self.depth > 64 || self.graph.nodes().len() > MOST_NODES {
            return refused("a function that is too large");
        }
        let (yes, no) = (self.truth(true), self.truth(false));
        let mut state = State { locals: HashMap::new(), result: None, live: yes, returned: no, continued: no };
        let mut frame = Frame { function, arguments, values: HashMap::new(), counters: HashSet::new() };
        self.block(&function.body, &mut frame, &mut state)?;
        self.depth -= 1;
        Ok(state.result)
    }

    fn block(&mut self, block: &Block, frame: &mut Frame<'a>, state: &mut State) -> Lowered<()> {
        for statement in block {
            if self.graph.number(state.live) == Some(0) {
                return Ok(());
            }
            self.statement(statement, frame, state)?;
        }
        Ok(())
    }

    fn statement(&mut self, statement: &Statement, frame: &mut Frame<'a>, state: &mut State) -> Lowered<()> {
        match statement {
            Statement::Emit(range) => {
                for handle in range.clone() {
                    let value = self.expression(handle, frame, state)?;
                    frame.values.insert(handle, value);
                }
            }
            Statement::Block(block) => self.block(block, frame, state)?,
            Statement::If { condition, accept, reject } => {
                let condition = self.value(*condition, frame, state)?.one()?;
                match self.graph.number(condition) {
                    Some(0) => self.block(reject, frame, state)?,
                    Some(_) => self.block(accept, frame, state)?,
                    None => {
                        let (mut first, mut second) = (state.clone(), state.clone());
                        self.block(accept, frame, &mut first)?;
                        self.block(reject, frame, &mut second)?;
                        *state = self.merged(condition, first, second)?;
                    }
                }
            }
            Statement::Loop { body, continuing, break_if } => {
                self.unrolled([body, continuing], *break_if, frame, state)?;
            }
            Statement::Break => state.live = self.truth(false),
            Statement::Continue => {
                state.continued = self.graph.binary(Binary::Or, state.continued, state.live);
                state.live = self.truth(false);
            }
            Statement::Return { value } => {
                if let Some(value) = value {
                    let value = self.value(*value, frame, state)?;
                    state.result = Some(match &state.result {
                        Some(known) => {
                            let known = known.clone();
                            self.merged_item(state.live, &value, &known)?
                        }
                        None => value,
                    });
                }
                state.returned = self.graph.binary(Binary::Or, state.returned, state.live);
                state.live = self.truth(false);
            }
            Statement::Store { pointer, value } => {
                let value = self.value(*value, frame, state)?;
                let Item::Place(place) = self.value(*pointer, frame, state)? else { return refused("a store") };
                match place.root {
                    Root::Local(local) => self.store(local, &place.path, value, frame, state)?,
                    Root::Global(_) => self.stored = Some(value),
                }
            }
            Statement::Call { function, arguments, result } => {
                let arguments = arguments.iter().map(|value| self.value(*value, frame, state)).try_listed()?;
                let module = self.module;
                let value = self.call(&module.functions[*function], arguments)?;
                if let (Some(handle), Some(value)) = (result, value) {
                    frame.values.insert(*handle, value);
                }
            }
            other => return refused(format!("{other:?}").split([' ', '(']).next().unwrap_or_default()),
        }
        Ok(())
    }

    fn unrolled(
        &mut self,
        [body, continuing]: [&Block; 2],
        break_if: Option<Handle<Expression>>,
        frame: &mut Frame<'a>,
        state: &mut State,
    ) -> Lowered<()> {
        // All that enters the loop is alive in it; what does not keeps what it had.
        let (yes, no) = (self.truth(true), self.truth(false));
        let before = state.clone();
        (state.live, state.returned, state.continued) = (yes, no, no);
        let inside = loads([body, continuing]);
        let counters: HashSet<Handle<LocalVariable>> = frame
            .function
            .local_variables
            .iter()
            .map(|(handle, _)| handle)
            .filter(|local| {
                frame.function.expressions.iter().all(|(handle, expression)| match expression {
                    Expression::Load { pointer } => {
                        !matches!(frame.function.expressions[*pointer], Expression::LocalVariable(of) if of == *local)
                            || inside.contains(&handle)
                    }
                    _ => true,
                })
            })
            .collect();
        for round in 0.. {
            if round > LONGEST || self.graph.nodes().len() > MOST_NODES {
                return refused("a loop whose length depends on data");
            }
            self.block(body, frame, state)?;
            state.live = self.graph.binary(Binary::Or, state.live, state.continued);
            state.continued = no;
            let outer = std::mem::replace(&mut frame.counters, counters.clone());
            self.block(continuing, frame, state)?;
            frame.counters = outer;
            if let Some(condition) = break_if
                && self.graph.number(state.live) != Some(0)
            {
                let ended = self.value(condition, frame, state)?.one()?;
                let on = self.not(ended);
                state.live = self.graph.binary(Binary::And, state.live, on);
            }
            if self.graph.number(state.live) == Some(0) {
                break;
            }
        }
        // Who has not returned has broken out.
        state.live = self.not(state.returned);
        if self.graph.number(before.live).is_none() {
            let mut other = before.clone();
            (other.live, other.returned, other.continued) = (no, no, no);
            *state = self.merged(before.live, state.clone(), other)?;
        }
        state.returned = self.graph.binary(Binary::Or, state.returned, before.returned);
        state.continued = before.continued;
        Ok(())
    }

    fn store(
        &mut self,
        local: Handle<LocalVariable>,
        path: &[u32],
        value: Item,
        frame: &mut Frame<'a>,
        state: &mut State,
    ) -> Lowered<()> {
        let old = self.local(local, frame, state)?;
        let number = |graph: &Graph, item: &Item| match item {
            Item::One(value) => graph.number(*value).is_some(),
            _ => false,
        };
        // A counter is known in every round: nothing that has left the loop reads it.
        let counts = frame.counters.contains(&local) && number(self.graph, &old) && number(self.graph, &value);
        let mut whole = old;
        let mut part = &mut whole;
        for &index in path {
            let Item::Many(parts) = part else { return refused("a part of a number") };
            let Some(inner) = parts.get_mut(index as usize) else { return refused("a part that is not there") };
            part = inner;
        }
        *part = if counts { value } else { self.merged_item(state.live, &value, &part.clone())? };
        state.locals.insert(local, whole);
        Ok(())
    }

    fn local(&mut self, local: Handle<LocalVariable>, frame: &mut Frame<'a>, state: &State) -> Lowered<Item> {
        if let Some(known) = state.locals.get(&local) {
            return Ok(known.clone());
        }
        let variable = &frame.function.local_variables[local];
        match variable.init {
            Some(init) => self.value(init, frame, state),
            None => self.zero(variable.ty),
        }
    }

    fn zero(&mut self, ty: Handle<Type>) -> Lowered<Item> {
        let scalar = |this: &mut Self, scalar: naga::Scalar| -> Lowered<Item> {
            Ok(Item::One(this.graph.constant(0, dtype(scalar.kind, scalar.width)?)))
        };
        match &self.module.types[ty].inner {
            TypeInner::Scalar(of) => scalar(self, *of),
            TypeInner::Vector { size, scalar: of } => {
                Ok(Item::Many(vec![scalar(self, *of)?; usize::from(*size as u8)]))
            }
            TypeInner::Struct { members, .. } => {
                Ok(Item::Many(members.iter().map(|member| self.zero(member.ty)).try_listed()?))
            }
            _ => refused("a zero of such a type"),
        }
    }

    fn value(&mut self, handle: Handle<Expression>, frame: &mut Frame<'a>, state: &State) -> Lowered<Item> {
        match frame.values.get(&handle) {
            Some(known) => Ok(known.clone()),
            None => self.expression(handle, frame, state),
        }
    }

    fn literal(&mut self, literal: Literal) -> Lowered<Item> {
        let (bits, dtype) = match literal {
            Literal::F64(x) => (x.to_bits(), DType::F64),
            Literal::F32(x) => (u64::from(x.to_bits()), DType::F32),
            Literal::U32(x) => (u64::from(x), DType::U32),
            Literal::I32(x) => (u64::from(x.cast_unsigned()), DType::I32),
            Literal::U64(x) => (x, DType::U64),
            Literal::I64(x) => (x.cast_unsigned(), DType::I64),
            Literal::Bool(x) => (u64::from(x), DType::Bool),
            other => return refused(format!("the literal {other:?}")),
        };
        Ok(Item::One(self.graph.constant(bits, dtype)))
    }

    /// An expression of the module's own.
    fn global(&mut self, handle: Handle<Expression>) -> Lowered<Item> {
        match &self.module.global_expressions[handle] {
            Expression::Literal(literal) => self.literal(*literal),
            Expression::Constant(constant) => self.global(self.module.constants[*constant].init),
            Expression::ZeroValue(ty) => self.zero(*ty),
            Expression::Compose { components, .. } => {
                Ok(Item::Many(components.iter().map(|part| self.global(*part)).try_listed()?))
            }
            Expression::Splat { size, value } => Ok(Item::Many(vec![self.global(*value)?; usize::from(*size as u8)])),
            _ => refused("a constant"),
        }
    }

    fn uniform(&mut self, ty: Handle<Type>, path: &str) -> Lowered<Item> {
        let module = self.module;
        match &module.types[ty].inner {
            TypeInner::Scalar(scalar) => {
                let dtype = dtype(scalar.kind, scalar.width)?;
                match (self.uniforms)(path, dtype) {
                    Some(number) => Ok(Item::One(self.graph.float(number, dtype))),
                    None => refused(format!("the uniform {path}")),
                }
            }
            TypeInner::Vector { size, scalar } => {
                let dtype = dtype(scalar.kind, scalar.width)?;
                let part = |place: usize| match (self.uniforms)(&format!("{path}.{place}"), dtype) {
                    Some(number) => Ok(Item::One(self.graph.float(number, dtype))),
                    None => refused(format!("the uniform {path}")),
                };
                Ok(Item::Many((0..usize::from(*size as u8)).map(part).try_listed()?))
            }
            TypeInner::Struct { members, .. } => {
                let name = |member: &naga::StructMember| format!("{path}.{}", member.name.as_deref().unwrap_or("?"));
                Ok(Item::Many(members.iter().map(|member| self.uniform(member.ty, &name(member))).try_listed()?))
            }
            _ => refused(format!("the uniform {path}")),
        }
    }

    fn load(&mut self, place: &Place, frame: &mut Frame<'a>, state: &State) -> Lowered<Item> {
        let mut item = match place.root {
            Root::Local(local) => self.local(local, frame, state)?,
            Root::Global(global) => {
                let module = self.module;
                let variable = &module.global_variables[global];
                if variable.space != naga::AddressSpace::Uniform {
                    return refused("a read of a buffer");
                }
                self.uniform(variable.ty, variable.name.as_deref().unwrap_or("?"))?
            }
        };
        for &index in &place.path {
            item = item.part(index)?;
        }
        Ok(item)
    }

    fn expression(&mut self, handle: Handle<Expression>, frame: &mut Frame<'a>, state: &State) -> Lowered<Item> {
        let function = frame.function;
        Ok(match &function.expressions[handle] {
            Expression::Literal(literal) => self.literal(*literal)?,
            Expression::Constant(constant) => self.global(self.module.constants[*constant].init)?,
            Expression::ZeroValue(ty) => self.zero(*ty)?,
            Expression::Compose { ty, components } => {
                let parts = Item::Many(components.iter().map(|part| self.value(*part, frame, state)).try_listed()?);
                match self.module.types[*ty].inner {
                    TypeInner::Vector { .. } => Item::Many(parts.flattened()),
                    _ => parts,
                }
            }
            Expression::Splat { size, value } => {
                Item::Many(vec![self.value(*value, frame, state)?; usize::from(*size as u8)])
            }
            Expression::Swizzle { size, vector, pattern } => {
                let vector = self.value(*vector, frame, state)?;
                let parts = pattern.iter().take(usize::from(*size as u8));
                Item::Many(parts.map(|part| vector.part(*part as u32)).try_listed()?)
            }
            Expression::AccessIndex { base, index } => self.value(*base, frame, state)?.accessed(*index)?,
            Expression::Access { base, index } => match self.value(*base, frame, state)? {
                // The element that an invocation stores is its own: see `mapped`.
                place @ Item::Place(Place { root: Root::Global(_), .. }) => place,
                base => {
                    let index = self.value(*index, frame, state)?.one()?;
                    let number = self.graph.number(index);
                    base.accessed(number.map_or_else(|| refused("an index that depends on data"), Ok)? as u32)?
                }
            },
            Expression::FunctionArgument(index) => {
                let argument = frame.arguments.get(*index as usize).cloned();
                argument.map_or_else(|| refused("an argument"), Ok)?
            }
            Expression::GlobalVariable(global) => Item::Place(Place { root: Root::Global(*global), path: Vec::new() }),
            Expression::LocalVariable(local) => Item::Place(Place { root: Root::Local(*local), path: Vec::new() }),
            Expression::Load { pointer } => match self.value(*pointer, frame, state)? {
                Item::Place(place) => self.load(&place, frame, state)?,
                _ => return refused("a load"),
            },
            Expression::Unary { op, expr } => {
                let x = self.value(*expr, frame, state)?;
                let op = if *op == UnaryOperator::Negate { Unary::Negate } else { Unary::Not };
                x.each(&mut |x| self.graph.unary(op, x))
            }
            Expression::Binary { op, left, right } => {
                let (x, y) = (self.value(*left, frame, state)?, self.value(*right, frame, state)?);
                x.with(&y, &mut |x, y| self.binary(*op, x, y))?
            }
            Expression::Select { condition, accept, reject } => {
                let condition = self.value(*condition, frame, state)?;
                let (a, b) = (self.value(*accept, frame, state)?, self.value(*reject, frame, state)?);
                self.selected(&condition, &a, &b)?
            }
            Expression::Relational { fun, argument } => {
                let argument = self.value(*argument, frame, state)?;
                match fun {
                    RelationalFunction::All => self.folded(Binary::And, &argument)?,
                    RelationalFunction::Any => self.folded(Binary::Or, &argument)?,
                    RelationalFunction::IsNan => argument.each(&mut |x| self.graph.compare(Compare::Ne, x, x)),
                    RelationalFunction::IsInf => return refused("isInf"),
                }
            }
            Expression::Math { fun, arg, arg1, arg2, .. } => {
                let x = self.value(*arg, frame, state)?;
                let more = [arg1, arg2].into_iter().flatten();
                let more: Vec<Item> = more.map(|argument| self.value(*argument, frame, state)).try_listed()?;
                self.math(*fun, &x, &more)?
            }
            Expression::As { expr, kind, convert } => {
                let x = self.value(*expr, frame, state)?;
                x.with(&x, &mut |x, _| self.converted(x, *kind, *convert))?
            }
            Expression::CallResult(_) => return refused("a call without a result"),
            _ => return refused("such an expression"),
        })
    }
}

/// The loads that blocks emit.
fn loads(blocks: [&Block; 2]) -> HashSet<Handle<Expression>> {
    let mut found = HashSet::new();
    let mut open: Vec<&Block> = blocks.to_vec();
    while let Some(block) = open.pop() {
        for statement in block {
            match statement {
                Statement::Emit(range) => found.extend(range.clone()),
                Statement::Block(block) => open.push(block),
                Statement::If { accept, reject, .. } => open.extend([accept, reject]),
                Statement::Loop { body, continuing, .. } => open.extend([body, continuing]),
                Statement::Switch { cases, .. } => open.extend(cases.iter().map(|case| &case.body)),
                _ => {}
            }
        }
    }
    found
}

/// Modules parsed so far, by text.
fn parsed(text: &str) -> Lowered<Arc<Module>> {
    static MODULES: LazyLock<Mutex<HashMap<String, Arc<Module>>>> = LazyLock::new(Mutex::default);
    const KEPT: usize = 1024;
    if let Some(known) = MODULES.lock().unwrap_or_else(PoisonError::into_inner).get(text) {
        return Ok(known.clone());
    }
    let module = naga::front::wgsl::parse_str(text).map_err(|error| Refused(error.message().to_owned()))?;
    let module = Arc::new(module);
    let mut modules = MODULES.lock().unwrap_or_else(PoisonError::into_inner);
    if modules.len() >= KEPT {
        modules.clear();
    }
    modules.insert(text.to_owned(), module.clone());
    Ok(module)
}

/// Returns the result of the function `name` of a text for these arguments.
pub(super) fn called(graph: &mut Graph, text: &str, name: &str, arguments: Vec<Item>) -> Lowered<Item> {
    let module = parsed(text)?;
    let Some((_, function)) = module.functions.iter().find(|(_, function)| function.name.as_deref() == Some(name))
    else {
        return refused(format!("no function {name}"));
    };
    let mut inliner = Inliner { module: &module, graph, uniforms: &|_, _| None, stored: None, depth: 0 };
    match inliner.call(function, arguments)? {
        Some(result) => Ok(result),
        None => refused(format!("{name} returns nothing")),
    }
}

/// Returns the elements that the invocations of a kernel store, one each, at the place of their id in a result of rows and columns.
pub(super) fn mapped(graph: &mut Graph, text: &str, shape: [usize; 2], uniforms: &Uniforms<'_>) -> Lowered<Item> {
    let module = parsed(text)?;
    let Some(entry) = module.entry_points.first() else { return refused("no entry point") };
    let (row, column) = (graph.iota(0, DType::U32, &shape), graph.iota(1, DType::U32, &shape));
    let zero = graph.constant(0, DType::U32);
    let id = Item::Many([column, row, zero].map(Item::One).to_vec());
    let mut inliner = Inliner { module: &module, graph, uniforms, stored: None, depth: 0 };
    inliner.call(&entry.function, vec![id])?;
    inliner.stored.map_or_else(|| refused("nothing is stored"), Ok)
}
