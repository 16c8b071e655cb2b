//! Functions, inlined. There are no calls at run time: each call lowers the body again, with its arguments as values. What a body costs is therefore
//! counted at each call (`MAX_WORK`). A `return` in the middle jumps to the end of the inlined body, and lanes that returned wait there.

use std::rc::Rc;

use naga::valid::FunctionInfo;
use naga::{Block, Function, Statement};

use super::super::bytecode::Op;
use super::builder::Operand;
use super::control::{Scope, ScopeKind};
use super::types::Ty;
use super::{Frame, Lowering, Result, Value, survey};
use cantus_base::listed::{Listed, Ordered};

/// Calls within calls: WGSL has no recursion, so this is only a guard for the stack.
const MAX_DEPTH: usize = if cfg!(target_arch = "wasm32") { 200 } else { 1000 };

impl<'m> Lowering<'m, '_> {
    /// Lowers a function's body here, and gives its result.
    pub(super) fn function(
        &mut self,
        function: &'m Function,
        info: &'m FunctionInfo,
        arguments: Vec<Value>,
        entry: bool,
    ) -> Result<Option<Value>> {
        if self.frames.len() > MAX_DEPTH {
            return self.unsupported(format!("calls nested deeper than {MAX_DEPTH}"));
        }
        // For the bookkeeping of the call itself: an empty function costs as well.
        self.spend(8 + function.expressions.len() / 8)?;
        let (id, divergent) = self.construct();
        // A single return at the very end gives its value directly; others meet in a variable that lanes observe
        // which have returned before.
        let result = match &function.result {
            Some(result) if !(survey::returns(&function.body) == 1 && ends_in_return(&function.body)) => {
                Some(self.new_variable(Ty::Handle(result.ty), self.scopes.len(), None)?)
            }
            _ => None,
        };
        let exit = self.builder.label();
        let mask = if divergent {
            let mask = self.new_mask();
            let around = self.mask();
            self.builder.mask(Op::MaskCopy, mask, around, None);
            Some(mask)
        } else {
            None
        };
        self.scopes.push(Scope {
            kind: ScopeKind::Function,
            id,
            mask,
            end: exit,
            exit,
            next: exit,
            divergent,
            reduced: false,
        });
        let address = std::ptr::from_ref(function) as usize;
        let survey = || {
            let (homes, carried) = (survey::homes(function), survey::carried(function));
            (Rc::new(homes), Rc::new(carried), Rc::new(survey::counted(function)))
        };
        let (homes, carried, counted) = self.surveyed.entry(address).or_insert_with(survey).clone();
        self.frames.push(Frame {
            function,
            info,
            values: vec![None; function.expressions.len()],
            arguments,
            variables: Default::default(),
            result,
            direct: None,
            homes,
            carried,
            counted,
            tail: true,
        });
        if let (Some(variable), Some(result)) = (result, &function.result) {
            self.initialise(variable, Ty::Handle(result.ty), None)?;
        }
        if entry {
            self.private_variables()?;
        }
        for (handle, local) in function.local_variables.iter() {
            let ty = Ty::Handle(local.ty);
            let variable = self.new_variable(ty, self.scopes.len(), Some((address, handle)))?;
            self.frame_mut()?.variables.insert(handle, variable);
            self.name_variable(variable, local.name.as_deref());
            let value = match local.init {
                Some(init) => Some(self.scalars(init)?),
                None => None,
            };
            self.initialise(variable, ty, value.as_deref())?;
            self.spend(1)?;
        }
        self.block(&function.body)?;
        self.builder.place(exit);
        let frame = self.frames.pop();
        self.scopes.pop();
        if let (Some(variable), Some(result)) = (result, &function.result) {
            return Ok(Some(self.load_variable(variable, Ty::Handle(result.ty))?));
        }
        Ok(frame.and_then(|frame| frame.direct))
    }

    /// Variables of the private address space begin with the entry point.
    fn private_variables(&mut self) -> Result<()> {
        let mut handles: Vec<_> = self.globals.places.iter().listed();
        handles.order_by_key(|(handle, _)| **handle);
        for (handle, place) in handles {
            if !matches!(place, super::Place::Private) {
                continue;
            }
            let global = &self.module.global_variables[*handle];
            let ty = Ty::Handle(global.ty);
            let variable = self.new_variable(ty, self.scopes.len(), None)?;
            self.privates.insert(*handle, variable);
            let value = match global.init {
                Some(init) => Some(self.global_constant(init)?),
                None => None,
            };
            self.initialise(variable, ty, value.as_deref())?;
        }
        Ok(())
    }

    /// Lowers a block; true if nothing after it is reached.
    pub(super) fn block(&mut self, block: &'m Block) -> Result<bool> {
        self.block_without(block, None)
    }

    /// Lowers a block without one of its statements; true if nothing after it is reached.
    pub(super) fn block_without(&mut self, block: &'m Block, left_out: Option<usize>) -> Result<bool> {
        let depth = self.scopes.len();
        let homes = self.frame()?.homes.clone();
        for local in homes.get(&(std::ptr::from_ref(block) as usize)).into_iter().flatten() {
            if let Some(variable) = self.frame()?.variables.get(local).copied() {
                self.variables[variable].depth = depth;
            }
        }
        let tail = self.frame()?.tail;
        for (place, (statement, span)) in block.span_iter().enumerate() {
            if left_out == Some(place) {
                continue;
            }
            self.span = *span;
            let last = place + 1 == block.len();
            let passes = matches!(statement, Statement::Block(_) | Statement::If { .. } | Statement::Return { .. });
            self.frame_mut()?.tail = tail && last && passes;
            self.spend(1)?;
            let ends = self.statement(statement)?;
            self.frame_mut()?.tail = tail;
            if ends {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn return_value(&mut self, value: Option<naga::Handle<naga::Expression>>) -> Result<()> {
        if let Some(value) = value {
            let value = self.evaluate(value)?;
            match (self.frame()?.result, &value) {
                (Some(variable), Value::Scalars(scalars)) => self.store_variable(variable, 0, scalars)?,
                (None, _) => self.frame_mut()?.direct = Some(value),
                (Some(_), Value::Pointer(_)) => return self.unsupported("functions that return pointers"),
            }
        }
        if !self.frame()?.tail {
            self.lower_return();
        }
        Ok(())
    }

    /// A constant of the module.
    pub(super) fn global_constant(&mut self, handle: naga::Handle<naga::Expression>) -> Result<Rc<[Operand]>> {
        self.constant_in(&self.module.global_expressions, handle)
    }
}

fn ends_in_return(block: &Block) -> bool {
    matches!(block.last(), Some(Statement::Return { .. }))
}
