//! Values that come with the batch.

use super::machine::Machine;
use crate::spmd::SUBGROUP_SIZE;
use crate::spmd::bytecode::{Input, Instr, Op};

/// # Safety
/// `i` is of a checked program.
pub(crate) unsafe fn input(machine: &Machine<'_>, i: &Instr) {
    let Op::Input(input) = i.op else { return };
    let batch = &machine.batch;
    // SAFETY: the caller's promise; a word for each lane, or one.
    unsafe {
        let d = machine.target::<u32>(i.d, if input.is_uniform() { 1 } else { machine.padded });
        match input {
            Input::FirstWorkgroup(axis) => d[0] = batch.first_workgroup[axis as usize % 3],
            Input::NumWorkgroups(axis) => d[0] = batch.num_workgroups[axis as usize % 3],
            Input::LocalId(axis) => d.copy_from_slice(&batch.tables[axis as usize % 3][..machine.padded]),
            Input::LocalIndex => d.copy_from_slice(&batch.tables[3][..machine.padded]),
            Input::GroupInBatch => d.copy_from_slice(&batch.tables[4][..machine.padded]),
            Input::Workgroup(axis) => {
                let [x, y, _] = batch.num_workgroups.map(|side| u64::from(side.max(1)));
                let [fx, fy, fz] = batch.first_workgroup.map(u64::from);
                for (d, group) in d.iter_mut().zip(&batch.tables[4]) {
                    // Linear order: x fastest. Only the padding could run past the grid.
                    let column = fx + u64::from(*group);
                    let row = fy + column / x;
                    *d = match axis {
                        0 => (column % x) as u32,
                        1 => (row % y) as u32,
                        _ => (fz + row / y) as u32,
                    };
                }
            }
            Input::SubgroupId => {
                for (d, index) in d.iter_mut().zip(&batch.tables[3]) {
                    *d = index / SUBGROUP_SIZE;
                }
            }
            Input::SubgroupInvocation => {
                for (d, index) in d.iter_mut().zip(&batch.tables[3]) {
                    *d = index % SUBGROUP_SIZE;
                }
            }
            // `check` refuses them.
            Input::RowStart | Input::RowLocalStart | Input::RowLocal(_) | Input::Argument(_) => {}
        }
    }
}
