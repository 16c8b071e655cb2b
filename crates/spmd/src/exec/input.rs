//! Values that come with the batch.

use super::machine::Machine;
use crate::SUBGROUP_SIZE;
use crate::bytecode::{Input, Instr, Op};

/// The parts of `d` whose lanes have one number in the table, with it.
fn runs<'d>(mut d: &'d mut [u32], mut table: &'d [u32]) -> impl Iterator<Item = (&'d mut [u32], u32)> {
    std::iter::from_fn(move || {
        let number = *table.first()?;
        let length = table.iter().position(|other| *other != number).unwrap_or(table.len()).min(d.len());
        let (part, rest) = std::mem::take(&mut d).split_at_mut(length);
        (d, table) = (rest, &table[length..]);
        (!part.is_empty()).then_some((part, number))
    })
}

/// # Safety
/// `i` is of the checked program that the machine runs.
pub(crate) unsafe fn input(machine: &Machine<'_>, i: &Instr) {
    let Op::Input(input) = i.op else { return };
    let batch = &machine.batch;
    // SAFETY: `i` is checked (this function's contract): its target has a word for each lane, or one where it is uniform.
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
                // Linear order: x fastest. Only the padding could run past the grid.
                let place = |group: u32| {
                    let column = fx + u64::from(group);
                    let row = fy + column / x;
                    match axis {
                        0 => (column % x) as u32,
                        1 => (row % y) as u32,
                        _ => (fz + row / y) as u32,
                    }
                };
                // Divisions cost more than all else: once for each workgroup, whose lanes follow each other.
                for (d, groups) in runs(d, &batch.tables[4]) {
                    d.fill(place(groups));
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
