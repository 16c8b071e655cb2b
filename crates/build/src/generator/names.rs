//! Names of registers and places, and constants as text.

use cantus_base::listed::Listed;
use cantus_spmd::bytecode::{Element, Space};
use cantus_spmd::{Class, Flat, Register};

use super::analysis::Ty;

/// A name for each register: the source's, if it has one.
pub(super) fn register_names(flat: &Flat) -> Vec<String> {
    let name = |register: usize| match flat.names.get(&(register as Register)) {
        Some(name) => format!("{}_{register}", word(name)),
        None => match flat.registers[register].class {
            Class::Vector => format!("v{register}"),
            Class::Uniform => format!("s{register}"),
            Class::Mask => format!("m{register}"),
        },
    };
    (0..flat.registers.len()).map(name).listed()
}

fn word(name: &str) -> String {
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    format!(
        "{}{}",
        if plain.starts_with(|c: char| c.is_ascii_digit()) { "n" } else { "" },
        plain.trim_start_matches('_')
    )
}

pub(super) fn place_names(flat: &Flat) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (index, access) in flat.accesses.iter().enumerate() {
        let base = match access.space {
            Space::Binding(binding) => word(&flat.bindings[binding as usize].name),
            Space::Workgroup | Space::Groups => "shared".to_owned(),
            Space::Table => "table".to_owned(),
            Space::Private { .. } => "private".to_owned(),
        };
        names.push(format!("{base}_at{}_{index}", access.offset));
    }
    names
}

/// The marker of an element, and the type it is loaded as.
pub(super) fn element(element: Element) -> (&'static str, Ty) {
    match element {
        Element::Word => ("Word", Ty::U32),
        Element::Wide => ("Wide", Ty::U64),
        Element::Half => ("Half", Ty::F32),
        Element::Short => ("Short", Ty::U32),
        Element::UnsignedShort => ("UnsignedShort", Ty::U32),
    }
}

/// A constant of a type, from its bits.
pub(super) fn literal(bits: u64, ty: Ty) -> String {
    match ty {
        Ty::Bool => (bits as u32 != 0).to_string(),
        Ty::U32 => format!("{}_u32", bits as u32),
        Ty::U64 => format!("{bits}_u64"),
        Ty::F32 => {
            let value = f32::from_bits(bits as u32);
            if value.is_finite() {
                signed(format!("{value:?}_f32"))
            } else {
                format!("f32::from_bits({:#x})", bits as u32)
            }
        }
        Ty::F64 => {
            let value = f64::from_bits(bits);
            if value.is_finite() { signed(format!("{value:?}_f64")) } else { format!("f64::from_bits({bits:#x})") }
        }
    }
}

fn signed(text: String) -> String {
    if text.starts_with('-') { format!("({text})") } else { text }
}
