//! Reductions of views of any dtype: elements widen as they are loaded, integers to 64 bits, which wrap, and floats to float64. How work is cut depends
//! on sizes alone, so the number of threads changes no bit.

use super::fault::Fault;
use super::floats::Floats;
use super::forms::forms;
use super::native::{Call, Operation, SCANS_PAY, Work, unlike};
use crate::backend::native::{Combination, FoldShape};
use crate::spmd::{Limits, Stopped};
use crate::tensor::{DType, Kind};
use crate::threads;
use cantus_base::listed::Listed;

/// Elements of a task, at least.
const TASK: usize = 1 << 15;
/// Results that a task keeps totals of: they lie in the first cache.
const BESIDE: usize = 2048;
/// Results beside each other that a task has at least, if it has all lines.
const LINE: usize = 256;
/// Tasks that few results are cut into, at most.
const PARTS: usize = 64;
/// Totals that are carried side by side along a row.
const LANES: usize = 16;
/// Elements whose sum is taken before it goes to the total: float64 rounds fewer times.
const STRETCH: usize = 512;
/// Totals of lines that are narrower lie side by side several times.
const NARROW: usize = 32;

/// A total in 64 bits: of an integer, or of a float64.
type Bits = u64;

/// The axes of a reduction. Neighbouring axes that are contiguous are joined.
struct Axes {
    /// Sides, steps, and steps in the result.
    kept: Vec<[usize; 3]>,
    /// Sides and steps.
    reduced: Vec<[usize; 2]>,
    offset: usize,
    /// The dtype of an element: of a complex number's part.
    from: DType,
    to: DType,
}

/// The dtype of a dtype's parts, and how many it has.
fn parts_of(dtype: DType) -> (DType, usize) {
    match dtype {
        DType::Complex64 => (DType::F32, 2),
        DType::Complex128 => (DType::F64, 2),
        real => (real, 1),
    }
}

impl Axes {
    fn new(shape: &FoldShape) -> Self {
        let ((from, parts), (to, _)) = (parts_of(shape.from), parts_of(shape.to));
        let view = &shape.view;
        let all =
            view.sides.iter().copied().zip(view.strides.iter().map(|stride| stride.saturating_mul(parts))).listed();
        let (before, behind) = all.split_at(shape.kept.min(all.len()));
        // Kept axes in the order of the result, from the last one on: their elements are contiguous.
        let mut kept: Vec<[usize; 3]> = Vec::new();
        let mut place = 1;
        for (side, stride) in std::iter::once((parts, 1)).chain(before.iter().rev().copied()) {
            match kept.last_mut() {
                _ if side == 1 => {}
                Some([inner, step, result]) if stride == *step * *inner && place == *result * *inner => *inner *= side,
                _ => kept.push([side, stride, place]),
            }
            place *= side;
        }
        // What is reduced in the order of memory.
        let mut reduced: Vec<[usize; 2]> = Vec::new();
        let mut behind = behind.iter().filter(|(side, _)| *side > 1).listed();
        behind.sort_by_key(|(_, stride)| *stride);
        for &(side, stride) in behind {
            match reduced.last_mut() {
                Some([inner, step]) if stride == *step * *inner => *inner *= side,
                _ => reduced.push([side, stride]),
            }
        }
        Self { kept, reduced, offset: view.offset * parts, from, to }
    }

    /// Takes the kept axis that is folded side by side: the one with the shortest step where that is shorter than those along which elements are
    /// combined, else the longest.
    fn beside(&mut self) -> [usize; 3] {
        let along = self.reduced.first().map_or(usize::MAX, |&[_, step]| step);
        let nearest = (0..self.kept.len()).min_by_key(|&axis| self.kept[axis][1]);
        let longest = (0..self.kept.len()).max_by_key(|&axis| self.kept[axis][0]);
        let chosen = nearest.filter(|&axis| self.kept[axis][1] < along).or(longest);
        chosen.map_or([1, 0, 1], |axis| self.kept.remove(axis))
    }
}

impl Operation for FoldShape {
    fn serves(&self) -> bool {
        let complex = |dtype: DType| dtype.kind() == Kind::Complex;
        let kinds = match self.by {
            _ if complex(self.from) => self.to == self.from && self.by == Combination::Sum,
            Combination::Sum | Combination::Product => match (self.from.kind(), self.to.kind()) {
                (Kind::Float, Kind::Float) => self.from.bytes() >= 4 && self.to.bytes() >= self.from.bytes(),
                (Kind::Float, _) => false,
                (_, Kind::Float) => self.to.bytes() >= 4 && self.by == Combination::Sum,
                (_, Kind::Complex) => false,
                _ => self.to.bytes() >= 4,
            },
            Combination::Greatest | Combination::Least => self.to == self.from.computed(),
        };
        let counted = super::copies::sizes(&self.view).is_some() && self.view.bytes == self.from.bytes();
        kinds && counted && self.kept <= self.view.sides.len() && kernel(self).is_some()
    }

    fn sizes(&self) -> Option<Vec<usize>> {
        let [reach, _] = super::copies::word_sizes(&self.view)?;
        let kept = self.view.sides.get(..self.kept)?;
        let results = kept.iter().try_fold(1_usize, |product, &side| product.checked_mul(side))?;
        Some(vec![reach, results.checked_mul(self.to.bytes())?.div_ceil(4)])
    }

    fn work(&self) -> Work {
        Work { size: self.view.sides.iter().fold(1, |product, &side| product.saturating_mul(side)), pays: SCANS_PAY }
    }

    fn run(&self, bindings: &[Floats], call: &Call<'_>) -> Result<(), Fault> {
        let (&[x, y], Some(kernel)) = (bindings, kernel(self)) else { return Err(unlike()) };
        Ok(fold(self, kernel, x, y, call.limits)?)
    }
}

/// Combines elements into totals. Arguments: the first element's address; the number of results and the distance between their first elements; the
/// number of elements of each result and the distance between them.
type Fold = unsafe fn(*const u8, [usize; 2], [usize; 2], &mut [Bits]);

/// The functions of a class of elements.
#[derive(Clone, Copy)]
struct Kernel {
    fold: Fold,
    combine: fn(Bits, Bits) -> Bits,
    neutral: fn() -> Bits,
    /// Totals are float64.
    float: bool,
}

/// A total of elements.
trait Total: Copy {
    fn bits(self) -> Bits;
    fn of_bits(bits: Bits) -> Self;
    fn is_nan(self) -> bool;
}

impl Total for i64 {
    fn bits(self) -> Bits {
        self.cast_unsigned()
    }
    fn of_bits(bits: Bits) -> Self {
        bits.cast_signed()
    }
    fn is_nan(self) -> bool {
        false
    }
}

impl Total for u64 {
    fn bits(self) -> Bits {
        self
    }
    fn of_bits(bits: Bits) -> Self {
        bits
    }
    fn is_nan(self) -> bool {
        false
    }
}

impl Total for f64 {
    fn bits(self) -> Bits {
        self.to_bits()
    }
    fn of_bits(bits: Bits) -> Self {
        Self::from_bits(bits)
    }
    fn is_nan(self) -> bool {
        f64::is_nan(self)
    }
}

/// A combination of a class of elements.
trait Class {
    type Element: Copy;
    type Total: Total;
    const NEUTRAL: Self::Total;
    /// Totals are float64, and depend on the order of elements.
    const FLOAT: bool;
    /// Totals are the first in an order; NaN comes before all.
    const ORDER: bool;
    fn widened(element: Self::Element) -> Self::Total;
    fn combine(a: Self::Total, b: Self::Total) -> Self::Total;
    /// Returns whether a total comes before another one, of an order's.
    fn before(a: Self::Total, b: Self::Total) -> bool;
}

macro_rules! classes {
    ($($name:ident: |$x:ident: $element:ty| $widened:expr => $total:ty, $neutral:expr, |$a:ident, $b:ident| $combine:expr $(, $before:expr)?;)*) => {$(
        struct $name;

        impl Class for $name {
            type Element = $element;
            type Total = $total;
            const NEUTRAL: $total = $neutral;
            const FLOAT: bool = is_float(stringify!($total));
            #[inline(always)]
            fn widened($x: $element) -> $total {
                $widened
            }
            const ORDER: bool = {
                const BEFORE: &[&str] = &[$(stringify!($before))?];
                !BEFORE.is_empty()
            };
            #[inline(always)]
            fn combine($a: $total, $b: $total) -> $total {
                $combine
            }
            #[inline(always)]
            #[allow(unused_variables, reason = "sums have no order")]
            fn before($a: $total, $b: $total) -> bool {
                false $(|| $before)?
            }
        }

        impl $name {
            const KERNEL: Kernel = {
                forms! {
                    /// # Safety
                    /// As [`fold_by`].
                    unsafe fn fold(from: *const u8, kept: [usize; 2], reduced: [usize; 2], totals: &mut [Bits]) = form
                }
                /// # Safety
                /// As [`fold_by`].
                #[inline(always)]
                unsafe fn form<I>(from: *const u8, kept: [usize; 2], reduced: [usize; 2], totals: &mut [Bits]) {
                    // SAFETY: the elements lie there (this function's contract).
                    unsafe { fold_by::<$name>(from, kept, reduced, totals) }
                }
                Kernel {
                    fold,
                    combine: |a, b| $name::combine(<$total>::of_bits(a), <$total>::of_bits(b)).bits(),
                    neutral: || <$name as Class>::NEUTRAL.bits(),
                    float: <$name as Class>::FLOAT,
                }
            };
        }
    )*};
}

const fn is_float(total: &str) -> bool {
    matches!(total.as_bytes(), [b'f', ..])
}

classes! {
    // Any byte but 0 is true.
    SumBool: |x: u8| i64::from(x != 0) => i64, 0, |a, b| a.wrapping_add(b);
    SumU8: |x: u8| i64::from(x) => i64, 0, |a, b| a.wrapping_add(b);
    SumI8: |x: i8| i64::from(x) => i64, 0, |a, b| a.wrapping_add(b);
    SumU16: |x: u16| i64::from(x) => i64, 0, |a, b| a.wrapping_add(b);
    SumI16: |x: i16| i64::from(x) => i64, 0, |a, b| a.wrapping_add(b);
    SumU32: |x: u32| i64::from(x) => i64, 0, |a, b| a.wrapping_add(b);
    SumI32: |x: i32| i64::from(x) => i64, 0, |a, b| a.wrapping_add(b);
    SumI64: |x: i64| x => i64, 0, |a, b| a.wrapping_add(b);
    SumF32: |x: f32| f64::from(x) => f64, 0.0, |a, b| a + b;
    SumF64: |x: f64| x => f64, 0.0, |a, b| a + b;
    ProductU32: |x: u32| i64::from(x) => i64, 1, |a, b| a.wrapping_mul(b);
    ProductI32: |x: i32| i64::from(x) => i64, 1, |a, b| a.wrapping_mul(b);
    ProductI64: |x: i64| x => i64, 1, |a, b| a.wrapping_mul(b);
    ProductF32: |x: f32| f64::from(x) => f64, 1.0, |a, b| a * b;
    ProductF64: |x: f64| x => f64, 1.0, |a, b| a * b;
    GreatestU8: |x: u8| i64::from(x) => i64, i64::MIN, |a, b| a.max(b), a > b;
    GreatestI8: |x: i8| i64::from(x) => i64, i64::MIN, |a, b| a.max(b), a > b;
    GreatestU16: |x: u16| i64::from(x) => i64, i64::MIN, |a, b| a.max(b), a > b;
    GreatestI16: |x: i16| i64::from(x) => i64, i64::MIN, |a, b| a.max(b), a > b;
    GreatestI64: |x: i64| x => i64, i64::MIN, |a, b| a.max(b), a > b;
    GreatestU64: |x: u64| x => u64, 0, |a, b| a.max(b), a > b;
    // NaN, once it was met.
    GreatestF64: |x: f64| x => f64, f64::NEG_INFINITY, |a, b| if a.is_nan() || a > b { a } else { b }, a > b;
    LeastU8: |x: u8| i64::from(x) => i64, i64::MAX, |a, b| a.min(b), a < b;
    LeastI8: |x: i8| i64::from(x) => i64, i64::MAX, |a, b| a.min(b), a < b;
    LeastU16: |x: u16| i64::from(x) => i64, i64::MAX, |a, b| a.min(b), a < b;
    LeastI16: |x: i16| i64::from(x) => i64, i64::MAX, |a, b| a.min(b), a < b;
    LeastI64: |x: i64| x => i64, i64::MAX, |a, b| a.min(b), a < b;
    LeastU64: |x: u64| x => u64, u64::MAX, |a, b| a.min(b), a < b;
    LeastF64: |x: f64| x => f64, f64::INFINITY, |a, b| if a.is_nan() || a < b { a } else { b }, a < b;
}

/// The functions of a reduction. Orders of 32 bits are left to the reductions of chains.
fn kernel(shape: &FoldShape) -> Option<Kernel> {
    use Combination::{Greatest, Least, Product, Sum};
    let (from, _) = parts_of(shape.from);
    Some(match (shape.by, from) {
        (Sum, DType::Bool) => SumBool::KERNEL,
        (Sum, DType::U8) => SumU8::KERNEL,
        (Sum, DType::I8) => SumI8::KERNEL,
        (Sum, DType::U16) => SumU16::KERNEL,
        (Sum, DType::I16) => SumI16::KERNEL,
        (Sum, DType::U32) => SumU32::KERNEL,
        (Sum, DType::I32) => SumI32::KERNEL,
        // Words wrap to the same bits, with a sign or without.
        (Sum, DType::I64 | DType::U64) => SumI64::KERNEL,
        (Sum, DType::F32) => SumF32::KERNEL,
        (Sum, DType::F64) => SumF64::KERNEL,
        (Product, DType::U32) => ProductU32::KERNEL,
        (Product, DType::I32) => ProductI32::KERNEL,
        (Product, DType::I64 | DType::U64) => ProductI64::KERNEL,
        (Product, DType::F32) => ProductF32::KERNEL,
        (Product, DType::F64) => ProductF64::KERNEL,
        (Greatest, DType::U8) => GreatestU8::KERNEL,
        (Greatest, DType::I8) => GreatestI8::KERNEL,
        (Greatest, DType::U16) => GreatestU16::KERNEL,
        (Greatest, DType::I16) => GreatestI16::KERNEL,
        (Greatest, DType::I64) => GreatestI64::KERNEL,
        (Greatest, DType::U64) => GreatestU64::KERNEL,
        (Greatest, DType::F64) => GreatestF64::KERNEL,
        (Least, DType::U8) => LeastU8::KERNEL,
        (Least, DType::I8) => LeastI8::KERNEL,
        (Least, DType::U16) => LeastU16::KERNEL,
        (Least, DType::I16) => LeastI16::KERNEL,
        (Least, DType::I64) => LeastI64::KERNEL,
        (Least, DType::U64) => LeastU64::KERNEL,
        (Least, DType::F64) => LeastF64::KERNEL,
        _ => return None,
    })
}

/// # Safety
/// The elements lie there, one for each result and each place along it.
#[inline(always)]
unsafe fn fold_by<C: Class>(
    from: *const u8,
    [results, across]: [usize; 2],
    [count, along]: [usize; 2],
    totals: &mut [Bits],
) {
    let from = from.cast::<C::Element>();
    let Some(totals) = totals.get_mut(..results) else { return };
    // SAFETY: the elements lie there (this function's contract).
    unsafe {
        if results > 1 && (across < along || count == 1) {
            lines::<C>(from, across, [count, along], totals);
        } else {
            for (result, total) in totals.iter_mut().enumerate() {
                add::<C>(total, row::<C>(from.add(result * across), count, along));
            }
        }
    }
}

/// The element at a place.
///
/// # Safety
/// It lies there.
#[inline(always)]
unsafe fn element<C: Class>(from: *const C::Element, place: usize) -> C::Total {
    // SAFETY: the element lies there (this function's contract).
    C::widened(unsafe { from.add(place).read_unaligned() })
}

#[inline(always)]
fn add<C: Class>(total: &mut Bits, value: C::Total) {
    let old = C::Total::of_bits(*total);
    *total = if C::ORDER {
        // By bits: a choice would become stores under a mask, which some processors take ten times as long for.
        let stays = Bits::from(old.is_nan() | C::before(old, value)).wrapping_neg();
        value.bits() ^ (*total ^ value.bits()) & stays
    } else {
        C::combine(old, value).bits()
    };
}

/// Combines the second half of the first `2 HALF` lanes with the first one.
#[inline(always)]
fn halve<C: Class, const HALF: usize>(lanes: &mut [C::Total; LANES]) {
    for lane in 0..HALF {
        lanes[lane] = C::combine(lanes[lane], lanes[lane + HALF]);
    }
}

/// The total of a row.
///
/// # Safety
/// The elements lie there.
#[inline(always)]
unsafe fn row<C: Class>(from: *const C::Element, count: usize, step: usize) -> C::Total {
    let mut all = C::NEUTRAL;
    // SAFETY: the elements lie there (this function's contract).
    unsafe {
        if step != 1 {
            for place in 0..count {
                all = C::combine(all, element::<C>(from, place * step));
            }
            return all;
        }
        // The compiler carries integers side by side by itself; of lanes by name it makes columns, which it gathers.
        if !C::FLOAT {
            for place in 0..count {
                all = C::combine(all, element::<C>(from, place));
            }
            return all;
        }
        if C::ORDER {
            return first_of_row::<C>(from, count);
        }
        let mut done = 0;
        while count - done >= LANES {
            let end = count.min(done + STRETCH);
            let mut lanes = [C::NEUTRAL; LANES];
            while end - done >= LANES {
                for (lane, total) in lanes.iter_mut().enumerate() {
                    *total = C::combine(*total, element::<C>(from, done + lane));
                }
                done += LANES;
            }
            halve::<C, 8>(&mut lanes);
            halve::<C, 4>(&mut lanes);
            halve::<C, 2>(&mut lanes);
            all = C::combine(all, C::combine(lanes[0], lanes[1]));
        }
        for place in done..count {
            all = C::combine(all, element::<C>(from, place));
        }
    }
    all
}

/// The first of a row of floats in an order, NaN if there is one: lanes choose without asking for it, and remember that they met one.
///
/// # Safety
/// The elements lie there.
#[inline(always)]
unsafe fn first_of_row<C: Class>(from: *const C::Element, count: usize) -> C::Total {
    let (mut lanes, mut met) = ([C::NEUTRAL; LANES], [0; LANES]);
    let whole = count - count % LANES;
    for at in (0..whole).step_by(LANES) {
        for (lane, (best, met)) in lanes.iter_mut().zip(&mut met).enumerate() {
            // SAFETY: the element lies there (this function's contract).
            let value = unsafe { element::<C>(from, at + lane) };
            *best = if C::before(*best, value) { *best } else { value };
            *met |= if value.is_nan() { Bits::MAX } else { 0 };
        }
    }
    let mut all = if met == [0; LANES] { C::NEUTRAL } else { C::Total::of_bits(f64::NAN.to_bits()) };
    for best in lanes {
        all = C::combine(all, best);
    }
    for place in whole..count {
        // SAFETY: the element lies there (this function's contract).
        all = C::combine(all, unsafe { element::<C>(from, place) });
    }
    all
}

/// Combines lines, `step` elements from one to the next, into a total for each place of a line.
///
/// # Safety
/// The elements lie there.
#[inline(always)]
unsafe fn lines<C: Class>(from: *const C::Element, near: usize, [count, step]: [usize; 2], totals: &mut [Bits]) {
    let length = totals.len();
    // SAFETY: the elements lie there (this function's contract).
    unsafe {
        if near != 1 {
            for line in 0..count {
                for (place, total) in totals.iter_mut().enumerate() {
                    add::<C>(total, element::<C>(from, line * step + place * near));
                }
            }
            return;
        }
        if step == length && length < NARROW {
            // Lines are contiguous: several are read as one.
            let mut beside = [C::NEUTRAL; 2 * NARROW];
            let mut width = (2 * NARROW / length + 1).next_power_of_two() / 2 * length;
            let Some(beside) = beside.get_mut(..width) else { return };
            let all = count * length;
            let mut at = 0;
            while at < all {
                let taken = beside.len().min(all - at);
                for (place, total) in beside[..taken].iter_mut().enumerate() {
                    *total = C::combine(*total, element::<C>(from, at + place));
                }
                at += taken;
            }
            while width > length {
                width /= 2;
                let (first, second) = beside[..2 * width].split_at_mut(width);
                first.iter_mut().zip(&*second).for_each(|(total, &value)| *total = C::combine(*total, value));
            }
            for (total, &value) in totals.iter_mut().zip(&*beside) {
                add::<C>(total, value);
            }
            return;
        }
        // Four lines for each time that totals are read and written.
        let whole = count - count % 4;
        for line in (0..whole).step_by(4) {
            let [a, b, c, d] = [
                from.add(line * step),
                from.add((line + 1) * step),
                from.add((line + 2) * step),
                from.add((line + 3) * step),
            ];
            for (place, total) in totals.iter_mut().enumerate() {
                let first = C::combine(element::<C>(a, place), element::<C>(b, place));
                let second = C::combine(element::<C>(c, place), element::<C>(d, place));
                add::<C>(total, C::combine(first, second));
            }
        }
        for line in whole..count {
            for (place, total) in totals.iter_mut().enumerate() {
                add::<C>(total, element::<C>(from, line * step + place));
            }
        }
    }
}

/// Reduces; the sizes were checked.
fn fold(shape: &FoldShape, kernel: Kernel, x: Floats, y: Floats, limits: &Limits<'_>) -> Result<(), Stopped> {
    let (mut axes, neutral) = (Axes::new(shape), (kernel.neutral)());
    let [results, across, to_next] = axes.beside();
    let outer: usize = axes.kept.iter().map(|[side, ..]| side).product();
    let count: usize = axes.reduced.iter().map(|[side, _]| side).product();
    let (run, along) = axes.reduced.first().map_or((1, 1), |&[side, step]| (side, step));
    // Lines of many results are cut into tasks side by side; where that would leave too little of a line, along it, and parts are combined.
    let beside = TASK / count;
    let lines = results > 1 && across < along;
    let wide = if lines && beside < LINE { BESIDE } else { beside.clamp(1, BESIDE) }.min(results);
    let blocks = results.div_ceil(wide);
    let parts = (PARTS / (outer * blocks)).min(count * wide / TASK).max(1);
    let part = count.div_ceil(parts);
    let parts = count.div_ceil(part);
    let tasks = outer * blocks * parts;
    let together = if parts == 1 { threads::share(tasks, (TASK / (wide * count)).max(1)) } else { 1 };
    let mut partials = vec![neutral; if parts == 1 { 0 } else { tasks * wide }];
    let to = Partials(partials.as_mut_ptr());
    let bytes = axes.from.bytes();
    // The first result of a block, and the element at which it begins.
    let begin = |mut place: usize, block: usize| {
        let (mut result, mut at) = (block * wide * to_next, axes.offset + block * wide * across);
        for &[side, step, to_next] in &axes.kept {
            result += place % side * to_next;
            at += place % side * step;
            place /= side;
        }
        (result, at)
    };
    let write = |result: usize, totals: &[Bits]| {
        // SAFETY: `sizes` counted the results, and each is written by one task.
        unsafe { write_totals(&axes, kernel, y, (result, to_next), totals) };
    };
    threads::try_each(tasks.div_ceil(together), |task| {
        limits.begin().check()?;
        let mut totals = vec![neutral; wide];
        for number in task * together..tasks.min((task + 1) * together) {
            let (place, number_of_part) = (number / parts, number % parts);
            let block = place % blocks;
            let (result, at) = begin(place / blocks, block);
            let totals = &mut totals[..wide.min(results - block * wide)];
            totals.fill(neutral);
            let (mut next, end) = (number_of_part * part, count.min((number_of_part + 1) * part));
            while next < end {
                let (mut row, column) = (next / run, next % run);
                let taken = (run - column).min(end - next);
                let mut at = at + column * along;
                for &[side, step] in axes.reduced.iter().skip(1) {
                    at += row % side * step;
                    row /= side;
                }
                // SAFETY: `sizes` found every element that the view reaches within the binding.
                unsafe {
                    let from = x.start().cast::<u8>().cast_const().add(at * bytes);
                    (kernel.fold)(from, [totals.len(), across], [taken, along], totals);
                }
                next += taken;
            }
            if parts == 1 {
                write(result, totals);
            } else {
                // SAFETY: each task has `wide` totals, which it alone writes.
                unsafe { totals.as_ptr().copy_to_nonoverlapping(to.at(number * wide), totals.len()) };
            }
        }
        Ok::<_, Stopped>(())
    })?;
    for (place, partials) in partials.chunks_exact_mut(parts * wide).enumerate() {
        let block = place % blocks;
        let (result, _) = begin(place / blocks, block);
        let (totals, rest) = partials.split_at_mut(wide);
        for partial in rest.chunks_exact(wide) {
            totals.iter_mut().zip(partial).for_each(|(total, &more)| *total = (kernel.combine)(*total, more));
        }
        write(result, &totals[..wide.min(results - block * wide)]);
    }
    Ok(())
}

/// Writes totals as results, `step` places from one to the next.
///
/// # Safety
/// There are such results, and nothing else writes to them.
unsafe fn write_totals(axes: &Axes, kernel: Kernel, y: Floats, (first, step): (usize, usize), totals: &[Bits]) {
    // SAFETY: there are such results (this function's contract); the low bytes of an integer are its value in 32 bits.
    unsafe {
        if axes.to.bytes() == 4 {
            let y = y.start().cast::<u32>().add(first);
            match (axes.to, kernel.float) {
                (DType::F32, true) => spaced(y, step, totals, |total| (f64::from_bits(total) as f32).to_bits()),
                (DType::F32, false) => spaced(y, step, totals, |total| (total.cast_signed() as f32).to_bits()),
                _ => spaced(y, step, totals, |total| total as u32),
            }
        } else {
            let y = y.start().cast::<u64>().add(first);
            match (axes.to, kernel.float) {
                (DType::F64, false) => spaced(y, step, totals, |total| (total.cast_signed() as f64).to_bits()),
                _ => spaced(y, step, totals, |total| total),
            }
        }
    }
}

/// Writes a value for each total, `step` places from one to the next.
///
/// # Safety
/// There are such places, and nothing else writes to them.
#[inline(always)]
unsafe fn spaced<T>(y: *mut T, step: usize, totals: &[Bits], value: impl Fn(Bits) -> T) {
    for (place, &total) in totals.iter().enumerate() {
        let at = if step == 1 { place } else { place * step };
        // SAFETY: there is such a place (this function's contract).
        unsafe { y.add(at).write_unaligned(value(total)) };
    }
}

/// Totals that tasks write, each its own.
struct Partials(*mut Bits);

// SAFETY: each place is written by one task.
unsafe impl Sync for Partials {}

impl Partials {
    /// # Safety
    /// There is such a place.
    unsafe fn at(&self, place: usize) -> *mut Bits {
        // SAFETY: there is such a place (this function's contract).
        unsafe { self.0.add(place) }
    }
}
