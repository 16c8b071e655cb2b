//! The lowered entry point in virtual registers, for the generator of Rust (`cantus-build`): the same operations that the
//! executor runs, before they get places in its register file.

use naga::Module;
use naga::valid::ModuleInfo;
use rustc_hash::FxHashMap;

use super::super::bytecode::{Batching, BindingInfo, Instr, MAX_LANES, Op, Strided};
use super::builder::{Register, RegisterInfo};
use super::survey::Survey;
use super::{Facts, Globals, Lowering, Result, Unsupported, allocate};

/// One entry point, flattened.
#[doc(hidden)]
pub struct Flat {
    pub workgroup_size: [u32; 3],
    pub workgroup_bytes: u32,
    pub bindings: Vec<BindingInfo>,
    /// Lanes of a row along x, over workgroups; `None` where a batch is one workgroup.
    pub row: Option<u32>,
    pub registers: Vec<RegisterInfo>,
    /// Jumps hold positions.
    pub instructions: Vec<Instr>,
    pub accesses: Vec<Strided>,
    pub table: Vec<u8>,
    pub private_slots: u32,
    pub constants: FxHashMap<Register, (u64, bool)>,
    pub names: FxHashMap<Register, String>,
}

/// Lanes of a row, and of one in which loops diverge: there, fewer lanes wait for the slowest.
const ROW: u32 = 256;
const DIVERGENT_ROW: u32 = 64;

/// Lowers an entry point, overrides resolved, for rows of lanes or for whole workgroups. `arguments` are the variables that stand
/// for overrides whose values come with the launch.
#[doc(hidden)]
pub fn flat(module: &Module, info: &ModuleInfo, entry_point: usize, arguments: &[String]) -> Result<Flat> {
    let refuse = |construct: &str| Unsupported { construct: construct.to_owned(), span: None };
    let entry = module.entry_points.get(entry_point).ok_or_else(|| refuse("an entry point that does not exist"))?;
    let size = entry.workgroup_size.iter().try_fold(1_u32, |product, side| product.checked_mul(*side));
    if !size.is_some_and(|size| (1..=MAX_LANES).contains(&size)) {
        return Err(refuse("workgroups of no invocation or of more than 65536"));
    }
    let globals = Globals::new(module, info.get_entry_point(entry_point), arguments)?;
    let survey = Survey::entry(module, &entry.function);
    let single = globals.workgroup_bytes > 0 || survey.subgroups;
    let row = |lanes: u32| {
        let along = entry.workgroup_size[0].max(1);
        // Whole workgroups, or a workgroup's whole part.
        if along <= lanes {
            Some(lanes / along * along)
        } else {
            Some(if along.is_multiple_of(lanes) { lanes } else { along })
        }
    };
    let lower = |row: Option<u32>| -> Result<super::Builder> {
        let batching = if row.is_some() { Batching::Row } else { Batching::Single };
        let mut facts = Facts::default();
        loop {
            let mut lowering = Lowering::new(module, info, &globals, &facts, batching, row.is_none());
            lowering.row = row;
            lowering.is_ahead = true;
            lowering.entry_point(entry_point)?;
            let Lowering { builder, found, work, .. } = lowering;
            if found.is_empty() {
                return Ok(allocate::improve(builder));
            }
            facts.extend(found, work);
        }
    };
    let mut chosen = if single { None } else { row(ROW) };
    let mut builder = lower(chosen)?;
    let divergent = builder.instructions.iter().any(|i| matches!(i.op, Op::JumpAny));
    if chosen.is_some() && divergent {
        chosen = row(DIVERGENT_ROW);
        builder = lower(chosen)?;
    }
    Ok(Flat {
        workgroup_size: entry.workgroup_size,
        workgroup_bytes: globals.workgroup_bytes,
        bindings: globals.bindings,
        row: chosen,
        registers: builder.registers,
        instructions: builder.instructions,
        accesses: builder.accesses,
        table: builder.table,
        private_slots: builder.private_slots,
        constants: builder.constants.into_iter().map(|(value, register)| (register, value)).collect(),
        names: builder.names,
    })
}
