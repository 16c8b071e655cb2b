//! The conformance suite's cases, by theme.

mod accuracy;
mod atomics;
mod bits;
mod builtins;
mod constants;
mod control;
mod cooperative;
mod dispatch;
mod float;
mod front;
mod half_and_small;
mod integer;
mod layout;
mod matrix;
mod memory;
mod out_of_range;
mod overrides;
mod pointers;
mod subgroup;
mod tensor;
mod wide;
mod workgroup;

use crate::case::Case;

/// All of them.
pub fn all() -> Vec<Case> {
    let themes = [
        integer::cases,
        bits::cases,
        float::cases,
        builtins::cases,
        matrix::cases,
        control::cases,
        pointers::cases,
        layout::cases,
        memory::cases,
        atomics::cases,
        dispatch::cases,
        half_and_small::cases,
        wide::cases,
        out_of_range::cases,
        accuracy::cases,
        subgroup::cases,
        cooperative::cases,
        overrides::cases,
        tensor::cases,
        workgroup::cases,
        constants::cases,
        front::cases,
    ];
    themes.into_iter().flat_map(|cases| cases()).collect()
}
