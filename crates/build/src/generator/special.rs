//! Atomic operations and subgroup operations. Lanes meet here, so these operations have loops of their own between regions. An atomic that all lanes apply
//! to one element without reading the old value is folded first and applied once.

use rustc_hash::FxHashSet;

use cantus_spmd::bytecode::{A_UNIFORM, Atomic, Collective, FULL, Fold, Gather, Instr, Number, Op, Scan, Space};
use cantus_spmd::{Class, atomic_operation};

use super::analysis::{Ty, target};
use super::op::{Operands, cast};
use super::region::Lane;
use super::{Refusal, Writer};

impl Writer<'_> {
    pub(super) fn special(&mut self, position: usize) -> Result<(), Refusal> {
        let i = self.flat.instructions[position];
        self.open("{");
        match i.op {
            Op::Atomic(..) | Op::CompareExchange(_) => self.atomic(position, &i)?,
            Op::Subgroup(collective, number) => self.collective(position, &i, collective, number),
            Op::Ballot => {
                self.materialise(position, "a", i.a, Ty::U32);
                let (d, mask) = (self.names[i.d as usize].clone(), self.mask(&i));
                self.line(&format!("rt::ballot(&mut {d}_lanes[..], &a[..], {mask});"));
            }
            Op::Gather(mode) => self.gather(position, &i, mode),
            _ => return Err(Refusal(format!("the operation {:?}", i.op))),
        }
        self.close("}");
        Ok(())
    }

    fn mask(&self, i: &Instr) -> String {
        if i.m == FULL { "None".to_owned() } else { format!("Some(&{}_lanes[..])", self.names[i.m as usize]) }
    }

    /// An operand as lanes of its own.
    fn materialise(&mut self, position: usize, name: &str, register: u32, ty: Ty) {
        let none = FxHashSet::default();
        let value = Lane { writer: self, local: &none, fast: false }.value(register, ty);
        self.line(&format!("let mut {name} = rt::Lanes::<{}, LANES>::default();", ty.name()));
        self.open("{");
        let (registers, linear) = self.bases(&[position]);
        self.open_rows(&registers, &linear);
        let width = self.lane_width();
        self.lanes_do(&width, &format!("{name}.set(lane, {value});"));
        self.close_rows();
        self.close("}");
    }

    fn lane_width(&self) -> String {
        match self.flat.row {
            Some(_) => "n".to_owned(),
            None if self.has_rows() => self.flat.workgroup_size[0].to_string(),
            None => "LANES".to_owned(),
        }
    }

    fn collective(&mut self, position: usize, i: &Instr, collective: Collective, number: Number) {
        let ty = match number {
            Number::I32 | Number::U32 => Ty::U32,
            Number::F32 | Number::F16 => Ty::F32,
            Number::I64 | Number::U64 => Ty::U64,
            Number::F64 => Ty::F64,
        };
        self.materialise(position, "a", i.a, ty);
        let scan = match collective.scan {
            Scan::Reduce => "SCAN_REDUCE",
            Scan::Inclusive => "SCAN_INCLUSIVE",
            Scan::Exclusive => "SCAN_EXCLUSIVE",
        };
        let (identity, fold) = fold(collective.fold, number);
        let (d, mask) = (self.names[i.d as usize].clone(), self.mask(i));
        self.line(&format!(
            "rt::collect::<{{ rt::{scan} }}, {}>(&mut {d}_lanes[..], &a[..], {mask}, {identity}, |a, b| {fold});",
            ty.name()
        ));
    }

    fn gather(&mut self, position: usize, i: &Instr, mode: Gather) {
        self.materialise(position, "a", i.a, Ty::U32);
        let from = match mode {
            Gather::First => "first",
            Gather::Broadcast | Gather::Shuffle => "b",
            Gather::Down => "place.wrapping_add(b)",
            Gather::Up => "place.wrapping_sub(b)",
            Gather::Xor => "place ^ b",
            Gather::QuadBroadcast => "place & !3 | b & 3",
            Gather::QuadX => "place ^ 1",
            Gather::QuadY => "place ^ 2",
            Gather::QuadDiagonal => "place ^ 3",
        };
        self.materialise(position, "b", i.b, Ty::U32);
        let (d, mask) = (self.names[i.d as usize].clone(), self.mask(i));
        self.line(&format!(
            "rt::gather(&mut {d}_lanes[..], &a[..], Some(&b[..]), {mask}, |place, b, first| {{ let _ = (place, b, first); {from} }});"
        ));
    }

    fn atomic(&mut self, position: usize, i: &Instr) -> Result<(), Refusal> {
        let (Op::Atomic(_, number) | Op::CompareExchange(number)) = i.op else {
            return Err(Refusal::new("this atomic operation"));
        };
        let operation = atomic_operation(i.op).ok_or(Refusal::new("this atomic operation"))?;
        let (kind, ty) = if number.is_wide() { ("64", Ty::U64) } else { ("32", Ty::U32) };
        // One thread alone touches workgroup memory.
        let how = if self.access(i).space == Space::Workgroup { "plain" } else { "atomic" };
        let function = format!("rt::{how}_u{kind}");
        let has_value = !matches!(i.op, Op::Atomic(Atomic::Load, _));
        let place = self.places[i.x as usize].clone();
        let none = FxHashSet::default();
        let lane = Lane { writer: self, local: &none, fast: false };
        let value = if has_value { lane.value(i.b, ty) } else { "0".to_owned() };
        let other = if let Op::CompareExchange(_) = i.op { lane.value(i.c, ty) } else { "0".to_owned() };
        let index = self.index(position, &lane);
        let active = (i.m != FULL).then(|| lane.value(i.m, Ty::Bool));
        let d = target(self.flat, i).filter(|d| self.used[*d as usize]);
        let (registers, linear) = self.bases(&[position]);
        let width = self.lane_width();
        let folded = neutral(i.op).filter(|_| d.is_none() && i.form & A_UNIFORM != 0 && linear.is_empty());
        if let Some((neutral, fold)) = folded {
            // All lanes change one element, and nobody asks in which order: once for all of them.
            self.line(&format!("let mut all: {} = {neutral};", ty.name()));
            self.open_rows(&registers, &linear);
            let value = match active {
                Some(active) => format!("if {active} {{ {value} }} else {{ {neutral} }}"),
                None => value,
            };
            self.lanes_do(&width, &format!("let value = {value}; all = {fold};"));
            self.close_rows();
            let index = Operands::value(self, i.a, Ty::U32);
            self.line(&format!("{function}(rt::Atomic{kind}::{operation:?}, {place}.address({index}), all, 0);"));
            return Ok(());
        }
        self.open_rows(&registers, &linear);
        let call = format!("{function}(rt::Atomic{kind}::{operation:?}, {place}.address({index}), {value}, {other})");
        let statement = match d {
            Some(d) => {
                let own = self.types[d as usize];
                let stored = if own == Ty::Bool { Ty::U32 } else { own };
                format!("{}_lanes.set(lane, {});", self.names[d as usize], cast(call, ty, stored))
            }
            None => format!("{call};"),
        };
        let statement = match active {
            Some(active) => format!("if {active} {{ {statement} }}"),
            None => statement,
        };
        self.lanes_do(&width, &statement);
        self.close_rows();
        debug_assert!(d.is_none_or(|d| self.flat.registers[d as usize].class == Class::Vector));
        Ok(())
    }
}

/// The value that changes nothing, and how two values become one, for operations that lanes may run in any order.
fn neutral(op: Op) -> Option<(&'static str, &'static str)> {
    let Op::Atomic(atomic, number @ (Number::I32 | Number::U32)) = op else { return None };
    let signed = number == Number::I32;
    Some(match atomic {
        Atomic::Add | Atomic::Sub => ("0", "u32::wrapping_add(all, value)"),
        Atomic::And => ("u32::MAX", "all & value"),
        Atomic::Or => ("0", "all | value"),
        Atomic::Xor => ("0", "all ^ value"),
        Atomic::Min if signed => ("i32::MAX as u32", "i32::min(all as i32, value as i32) as u32"),
        Atomic::Max if signed => ("i32::MIN as u32", "i32::max(all as i32, value as i32) as u32"),
        Atomic::Min => ("u32::MAX", "u32::min(all, value)"),
        Atomic::Max => ("0", "u32::max(all, value)"),
        _ => return None,
    })
}

/// The identity of a fold and its step, as the executor has them.
fn fold(fold: Fold, number: Number) -> (String, String) {
    let (ty, float) = match number {
        Number::I32 => ("i32", false),
        Number::U32 => ("u32", false),
        Number::I64 => ("i64", false),
        Number::U64 => ("u64", false),
        Number::F32 | Number::F16 => ("f32", true),
        Number::F64 => ("f64", true),
    };
    if float {
        let (identity, step) = match fold {
            Fold::Mul => ("1.0".to_owned(), "a * b".to_owned()),
            Fold::Min => (format!("{ty}::INFINITY"), "if b < a { b } else { a }".to_owned()),
            Fold::Max => (format!("{ty}::NEG_INFINITY"), "if b > a { b } else { a }".to_owned()),
            _ => ("0.0".to_owned(), "a + b".to_owned()),
        };
        let step = if number == Number::F16 { format!("math::round_f16({step})") } else { step };
        return (identity, step);
    }
    let word = if number.is_wide() { "u64" } else { "u32" };
    let cast = |text: String| if ty == word { text } else { format!("({text}) as {word}") };
    let both = |function: &str| cast(format!("{ty}::{function}(a as {ty}, b as {ty})"));
    match fold {
        Fold::Add => ("0".to_owned(), format!("{word}::wrapping_add(a, b)")),
        Fold::Mul => ("1".to_owned(), format!("{word}::wrapping_mul(a, b)")),
        Fold::Min => (cast(format!("{ty}::MAX")), both("min")),
        Fold::Max => (cast(format!("{ty}::MIN")), both("max")),
        Fold::And => (format!("{word}::MAX"), "a & b".to_owned()),
        Fold::Or => ("0".to_owned(), "a | b".to_owned()),
        Fold::Xor => ("0".to_owned(), "a ^ b".to_owned()),
    }
}
