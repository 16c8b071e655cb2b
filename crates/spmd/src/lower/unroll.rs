//! Loops whose rounds are known are lowered round by round, the counter being a constant in each. The executor's cost is in its instructions: counting, comparing
//! and jumping are five for each round, and an array that is indexed by constants alone lives in registers, not in memory of each lane.

use naga::{BinaryOperator, Block, Expression, Handle, Statement};

use super::builder::Operand;
use super::types::Ty;
use super::variable::Storage;
use super::{Lowering, Result, Value, survey::Counted};
use crate::flow::blocks;
use crate::reflection::Scalar;

/// The most rounds that are unrolled, the expressions and statements that they may have together, inner loops' rounds included, and the instructions
/// of a kernel beyond which no loop is.
const MAX_ROUNDS: usize = 32;
const MAX_UNROLLED: usize = 4096;
const MAX_GROWN: usize = 60_000;

impl<'m> Lowering<'m, '_> {
    /// Lowers a loop with this body round by round, if it has few and known ones. False if it has not.
    pub(super) fn unroll(&mut self, body: &'m Block) -> Result<bool> {
        // LLVM decides for kernels compiled ahead.
        if self.is_ahead || self.builder.instructions.len() > MAX_GROWN {
            return Ok(false);
        }
        let loops = self.frame()?.counted.clone();
        let Some(counted) = loops.get(&(std::ptr::from_ref(body) as usize)) else { return Ok(false) };
        let Some(variable) = self.frame()?.variables.get(&counted.counter).copied() else { return Ok(false) };
        let is_register = matches!(&self.variables[variable].storage, Storage::Registers(parts) if parts.len() == 1);
        let Some((rounds, end)) = self.rounds(counted)?.filter(|_| is_register) else { return Ok(false) };
        if self.size(body)?.saturating_mul(rounds.len()) > MAX_UNROLLED {
            return Ok(false);
        }
        for round in rounds {
            self.forget(&counted.computed)?;
            self.variables[variable].constant = Some(round);
            self.block_without(body, Some(counted.exit))?;
        }
        self.forget(&counted.computed)?;
        self.variables[variable].constant = None;
        let carried = self.frame()?.carried.clone();
        let alone = carried.get(&(std::ptr::from_ref(body) as usize));
        if !alone.is_some_and(|alone| alone.contains(&counted.counter)) {
            self.assign(variable, 0, &[Operand::word(end)]);
        }
        Ok(true)
    }

    /// The counter in each round and behind the last one, if they are known and not too many.
    fn rounds(&mut self, counted: &Counted) -> Result<Option<(Vec<u32>, u32)>> {
        let function = self.frame()?.function;
        let kind = self.types.kind(Ty::Handle(function.local_variables[counted.counter].ty));
        let signed = match kind {
            Some(Scalar::I32) => true,
            Some(Scalar::U32) => false,
            _ => return Ok(None),
        };
        let known = [counted.start, counted.bound, counted.step].map(|handle| self.known_constant(handle)).into_iter();
        let known = known.collect::<Result<Vec<_>>>()?;
        let [Some(start), Some(bound), Some(step)] = known[..] else { return Ok(None) };
        // Signed numbers in the order of unsigned ones.
        let flip = if signed { 1 << 31 } else { 0 };
        let (mut rounds, mut counter) = (Vec::new(), start);
        loop {
            let (left, right) = (counter ^ flip, bound ^ flip);
            let goes_on = match counted.condition {
                BinaryOperator::Less => left < right,
                BinaryOperator::LessEqual => left <= right,
                BinaryOperator::Greater => left > right,
                BinaryOperator::GreaterEqual => left >= right,
                BinaryOperator::NotEqual => left != right,
                _ => return Ok(None),
            };
            if !goes_on {
                return Ok(Some((rounds, counter)));
            }
            if rounds.len() == MAX_ROUNDS {
                return Ok(None);
            }
            rounds.push(counter);
            counter = if counted.down { counter.wrapping_sub(step) } else { counter.wrapping_add(step) };
        }
    }

    /// A word that is known before anything is computed.
    fn known_constant(&mut self, handle: Handle<Expression>) -> Result<Option<u32>> {
        let frame = self.frame()?;
        let known = match frame.values.get(handle.index()) {
            Some(Some(Value::Scalars(scalars))) => scalars.first().copied(),
            _ => match &frame.function.expressions[handle] {
                Expression::Literal(_) | Expression::Constant(_) | Expression::ZeroValue(_) => {
                    self.scalars(handle)?.first().copied()
                }
                _ => None,
            },
        };
        Ok(known.and_then(|operand| operand.constant()).and_then(|bits| u32::try_from(bits).ok()))
    }

    /// Expressions and statements of a block, those of inner loops once for each of their rounds where these are known already.
    fn size(&mut self, block: &Block) -> Result<usize> {
        let mut size = 0_usize;
        for statement in block {
            size = size.saturating_add(match statement {
                Statement::Emit(range) => range.clone().count(),
                Statement::Call { function, .. } => self.module.functions[*function].expressions.len() + 1,
                _ => 1,
            });
            let mut inner = 0_usize;
            for block in blocks(statement) {
                inner = inner.saturating_add(self.size(block)?);
            }
            if let Statement::Loop { body, .. } = statement {
                let loops = self.frame()?.counted.clone();
                let counted = loops.get(&(std::ptr::from_ref(body) as usize));
                let rounds = match counted {
                    Some(counted) => self.rounds(counted)?.map_or(1, |(rounds, _)| rounds.len()),
                    None => 1,
                };
                inner = inner.saturating_mul(rounds);
            }
            size = size.saturating_add(inner);
        }
        Ok(size)
    }

    /// Lets expressions be computed anew.
    fn forget(&mut self, computed: &[Handle<Expression>]) -> Result<()> {
        let values = &mut self.frame_mut()?.values;
        for handle in computed {
            if let Some(value) = values.get_mut(handle.index()) {
                *value = None;
            }
        }
        Ok(())
    }
}
