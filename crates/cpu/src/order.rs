//! Rows in ascending or descending order, by the width of their elements: bytes by counting, long rows of wider ones by digits, short rows many at a time,
//! each in a lane, and rows between by blocks whose lanes are sorted together and then merged. Equal elements keep their order.

use super::fault::Fault;
use super::floats::Floats;
use super::forms::forms;
use super::native::{Call, Operation, SCANS_PAY, Work, exactly};
use crate::backend::native::OrderShape;
use crate::spmd::math::Isa;
use crate::spmd::{Limits, Stopped};
use crate::tensor::{DType, Kind};
use crate::threads;
use cantus_base::memory;

/// Bytes of the lanes in which short rows lie side by side.
const LANE_BYTES: usize = 64;
/// Rows up to this length are sorted in lanes where there are as many: a network compares n log² n pairs.
const SHORT: usize = 256;

const MANY: usize = 4;
/// Elements of a row, for each byte of a key, up to which blocks of lanes that are merged beat digits: a pass over the row for each doubling, and two for
/// each byte that varies.
const BLOCKS_PAY: usize = 128;
/// Rows of fewer elements are sorted by comparisons.
const LEAST: usize = 24;
/// Elements of a lane, at most: a network compares n log² n pairs, a merge looks at each element once.
const LANE: usize = 96;
/// Elements of a task.
const TASK: usize = 1 << 13;
/// Elements of a part of a long row.
const PART: usize = 1 << 17;

impl Operation for OrderShape {
    fn serves(&self) -> bool {
        self.dtype.kind() != Kind::Complex && self.length > 0
    }

    fn sizes(&self) -> Option<Vec<usize>> {
        let words = self.rows.checked_mul(self.length)?.checked_mul(self.dtype.bytes())?.div_ceil(4);
        Some(vec![words, words])
    }

    fn work(&self) -> Work {
        Work { size: self.rows.saturating_mul(self.length), pays: SCANS_PAY }
    }

    fn run(&self, bindings: &[Floats], call: &Call<'_>) -> Result<(), Fault> {
        let [x, y] = exactly(bindings)?;
        let limits = call.limits;
        Ok(match self.dtype.bytes() {
            1 => order::<u8>(self, x, y, limits),
            2 => order::<u16>(self, x, y, limits),
            4 => order::<u32>(self, x, y, limits),
            _ if x.start().cast::<u64>().is_aligned() && y.start().cast::<u64>().is_aligned() => {
                order::<u64>(self, x, y, limits)
            }
            _ => return Err("numbers of 64 bits begin at no multiple of 8 bytes".into()),
        }?)
    }
}

/// The order of elements, by their bits.
#[derive(Clone, Copy)]
struct Rule<K> {
    /// The bits inverted in a negative number's key.
    negative: K,
    /// Those inverted in the key of any other number.
    other: K,
    /// The magnitude above which floats are NaN; the greatest one where they are not floats.
    finite: K,
    /// All bits in descending order.
    turned: K,
    float: bool,
}

/// An element's bits.
trait Bits: Copy + Ord + Default + Send + Sync + 'static {
    const LANES: usize = LANE_BYTES / size_of::<Self>();
    /// The greatest key.
    const GREATEST: Self;
    fn rule(dtype: DType, descending: bool) -> Rule<Self>;
    /// The key of an element's bits: unsigned numbers of the elements' order. Both zeros have one key, and every NaN.
    fn key(self, rule: &Rule<Self>) -> Self;
    fn digit(self, at: usize) -> usize;
    /// Those bits, and the ones in which it differs from another.
    fn differing(self, other: Self, bits: Self) -> Self;
    /// Makes keys of bits, of which each can be told from its key. Returns false if there are equal ones that differ: -0 or NaN.
    fn keyed(all: &mut [Self], rule: &Rule<Self>) -> bool;
    /// Makes bits of such keys.
    fn unkeyed(all: &mut [Self], rule: &Rule<Self>);
    /// The lesser and the greater key.
    fn exchanged<I: Isa>(self, other: Self) -> (Self, Self);
    /// Sorts each lane of `count` rows of lanes.
    fn network(all: &mut [Self], count: usize);
}

macro_rules! bits {
    ($($word:ident $signed:ident: $keyed:ident $keyed_by:ident $unkeyed:ident $unkeyed_by:ident $network:ident $network_by:ident;)*) => {$(
        impl Bits for $word {
            const GREATEST: Self = $word::MAX;

            fn rule(dtype: DType, descending: bool) -> Rule<Self> {
                const SIGN: $word = 1 << ($word::BITS - 1);
                let (negative, other, finite, float) = match dtype {
                    DType::F64 => ($word::MAX, SIGN, f64::INFINITY.to_bits() as $word, true),
                    DType::F32 => ($word::MAX, SIGN, f32::INFINITY.to_bits() as $word, true),
                    DType::F16 => ($word::MAX, SIGN, 0x7c00_u32 as $word, true),
                    DType::BF16 => ($word::MAX, SIGN, 0x7f80_u32 as $word, true),
                    _ if dtype.kind() == Kind::Signed => (SIGN, SIGN, $word::MAX, false),
                    _ => (0, 0, $word::MAX, false),
                };
                Rule { negative, other, finite, turned: if descending { $word::MAX } else { 0 }, float }
            }

            #[inline(always)]
            fn key(self, rule: &Rule<Self>) -> Self {
                const SIGN: $word = 1 << ($word::BITS - 1);
                let sign = (self.cast_signed() >> ($word::BITS - 1)).cast_unsigned();
                let key = self ^ (sign & rule.negative | !sign & rule.other);
                let key = if rule.float & (self == SIGN) { SIGN } else { key };
                let key = if rule.float & (self & !SIGN > rule.finite) { $word::MAX } else { key };
                key ^ rule.turned
            }

            #[inline(always)]
            fn digit(self, at: usize) -> usize {
                (self >> (8 * at)) as usize & 0xff
            }

            #[inline(always)]
            fn differing(self, other: Self, bits: Self) -> Self {
                bits | (self ^ other)
            }

            fn keyed(all: &mut [Self], rule: &Rule<Self>) -> bool {
                $keyed(all, rule)
            }

            fn unkeyed(all: &mut [Self], rule: &Rule<Self>) {
                $unkeyed(all, rule);
            }

            #[inline(always)]
            fn exchanged<I: Isa>(self, other: Self) -> (Self, Self) {
                // Without a least of 64 bits the choice would become stores under a mask, which some processors take ten times as long for.
                if size_of::<Self>() < 8 || I::VECTOR_BYTES >= 64 {
                    return (self.min(other), self.max(other));
                }
                let swapped = (self ^ other) & $word::from(self > other).wrapping_neg();
                (self ^ swapped, other ^ swapped)
            }

            fn network(all: &mut [Self], count: usize) {
                $network(all, count);
            }
        }

        forms! {
            fn $keyed(all: &mut [$word], rule: &Rule<$word>) -> bool = $keyed_by
        }
        forms! {
            fn $unkeyed(all: &mut [$word], rule: &Rule<$word>) = $unkeyed_by
        }
        forms! {
            fn $network(all: &mut [$word], count: usize) = $network_by
        }

        #[inline(always)]
        fn $keyed_by<I>(all: &mut [$word], rule: &Rule<$word>) -> bool {
            const SIGN: $word = 1 << ($word::BITS - 1);
            let Rule { negative, other, finite, turned, float } = *rule;
            let mut special: $word = 0;
            for bits in all {
                let sign = (bits.cast_signed() >> ($word::BITS - 1)).cast_unsigned();
                special |= $word::from((*bits == SIGN) | (*bits & !SIGN > finite));
                *bits ^= (sign & negative | !sign & other) ^ turned;
            }
            !float || special == 0
        }

        #[inline(always)]
        fn $unkeyed_by<I>(all: &mut [$word], rule: &Rule<$word>) {
            let Rule { negative, other, turned, .. } = *rule;
            for key in all {
                let bits = *key ^ turned;
                // What is not negative has its first bit set in a key of floats and signed numbers.
                let sign = (bits.cast_signed() >> ($word::BITS - 1)).cast_unsigned();
                *key = bits ^ (sign & other | !sign & negative);
            }
        }

        #[inline(always)]
        fn $network_by<I: Isa>(all: &mut [$word], count: usize) {
            merged::<_, I>(all, count);
        }
    )*};
}

bits! {
    u8 i8: keyed_bytes keyed_bytes_by unkeyed_bytes unkeyed_bytes_by bytes_network bytes_network_by;
    u16 i16: keyed_halves keyed_halves_by unkeyed_halves unkeyed_halves_by halves_network halves_network_by;
    u32 i32: keyed_words keyed_words_by unkeyed_words unkeyed_words_by words_network words_network_by;
    u64 i64: keyed_doubles keyed_doubles_by unkeyed_doubles unkeyed_doubles_by doubles_network doubles_network_by;
}

/// Sorts each lane by merge exchange (Batcher, 1968; Knuth, 5.2.2, algorithm M), which compares the same places whatever they hold.
#[inline(always)]
fn merged<K: Bits, I: Isa>(all: &mut [K], count: usize) {
    if count < 2 {
        return;
    }
    let top = count.next_power_of_two() / 2;
    let mut step = top;
    while step > 0 {
        let (mut merge, mut rest, mut distance) = (top, 0, step);
        loop {
            // Runs of `step` places whose bit is `rest`.
            let mut first = rest;
            while first + distance < count {
                let places = step.min(count - distance - first);
                let (low, high) = all.split_at_mut((first + distance) * K::LANES);
                let low = &mut low[first * K::LANES..(first + places) * K::LANES];
                for (low, high) in low.iter_mut().zip(&mut high[..places * K::LANES]) {
                    (*low, *high) = K::exchanged::<I>(*low, *high);
                }
                first += 2 * step;
            }
            if merge == step {
                break;
            }
            (distance, merge, rest) = (merge - step, merge / 2, step);
        }
        step /= 2;
    }
}

/// Parts of a row whose digits are counted in turn: where one digit is frequent, the next count of it would have to wait for the one before.
const STREAMS: usize = 4;

/// Sorts by the bytes of keys, from the last to the first. Bytes that are alike everywhere cost no pass.
fn by_digits<K: Bits>(row: &mut [K], spare: &mut [K], key: impl Fn(K) -> K) {
    let Some(first) = row.first().map(|&value| key(value)) else { return };
    let differ = row.iter().fold(K::default(), |differ, &value| key(value).differing(first, differ));
    let (mut from, mut to, mut is_moved) = (&mut *row, spare, false);
    for at in (0..size_of::<K>()).filter(|&at| differ.digit(at) != 0) {
        let mut counts = [[0_u32; 256]; STREAMS];
        in_turn(from, |stream, value| counts[stream][key(value).digit(at)] += 1);
        let mut start = 0;
        for digit in 0..256 {
            for counts in &mut counts {
                start += std::mem::replace(&mut counts[digit], start);
            }
        }
        in_turn(from, |stream, value| {
            let next = &mut counts[stream][key(value).digit(at)];
            to[*next as usize] = value;
            *next += 1;
        });
        (from, to, is_moved) = (to, from, !is_moved);
    }
    if is_moved {
        to.copy_from_slice(from);
    }
}

/// Sorts by digits, which are those of whole keys where equal elements are alike.
fn in_digits<K: Bits>(row: &mut [K], spare: &mut [K], rule: &Rule<K>) {
    let alike = K::keyed(row, rule);
    if alike {
        by_digits(row, spare, |key| key);
    }
    K::unkeyed(row, rule);
    if !alike {
        by_digits(row, spare, |value| value.key(rule));
    }
}

/// Takes an element of each part of a row, then the next ones. A part's elements come in their order.
#[inline(always)]
fn in_turn<K: Copy>(row: &[K], mut take: impl FnMut(usize, K)) {
    let part = row.len() / STREAMS;
    let (whole, rest) = row.split_at(part * STREAMS);
    let parts: [&[K]; STREAMS] = std::array::from_fn(|stream| &whole[stream * part..(stream + 1) * part]);
    for place in 0..part {
        for (stream, part) in parts.iter().enumerate() {
            take(stream, part[place]);
        }
    }
    // They are behind the last part, and so are their digits.
    rest.iter().for_each(|&value| take(STREAMS - 1, value));
}

/// Sorts bytes by how often each occurs.
fn by_counts<K: Bits>(row: &mut [K], rule: &Rule<K>) {
    let (mut counts, mut values) = ([0_usize; 256], [K::default(); 256]);
    for value in row.iter() {
        let key = value.key(rule).digit(0);
        counts[key] += 1;
        values[key] = *value;
    }
    let mut rest = row;
    for (count, value) in counts.into_iter().zip(values) {
        let (same, behind) = rest.split_at_mut(count);
        same.fill(value);
        rest = behind;
    }
}

/// Sorts a row; `spare` is room.
fn sorted<K: Bits>(row: &mut [K], spare: &mut Vec<K>, rule: &Rule<K>) {
    if size_of::<K>() == 1 && row.len() >= LEAST {
        return by_counts(row, rule);
    }
    if row.len() > BLOCKS_PAY * size_of::<K>() {
        spare.resize(row.len(), K::default());
        return in_digits(row, spare, rule);
    }
    let differ = K::keyed(row, rule);
    match row.len() {
        // Elements with equal keys but different bits (-0 and 0, NaN) must stay in their order: a stable sort.
        _ if !differ => {
            K::unkeyed(row, rule);
            return row.sort_by_key(|value| value.key(rule));
        }
        0..LEAST => row.sort_unstable(),
        _ => by_blocks(row, spare),
    }
    K::unkeyed(row, rule);
}

/// Sorts keys: in each block of lanes every lane, side by side; then lanes are merged two by two. `spare` is room.
fn by_blocks<K: Bits>(row: &mut [K], spare: &mut Vec<K>) {
    let blocks = row.len().div_ceil(K::LANES * LANE);
    let length = row.len().div_ceil(K::LANES * blocks);
    // The greatest keys fill the last lanes, and stay behind all others.
    let (lanes, whole) = (K::LANES * blocks, K::LANES * blocks * length);
    spare.clear();
    spare.resize(2 * whole, K::GREATEST);
    let (mut from, mut to) = spare.split_at_mut(whole);
    to[..row.len()].copy_from_slice(row);
    for (lot, block) in to.chunks_exact_mut(K::LANES * length).enumerate() {
        K::network(block, length);
        // Each lane becomes a run.
        let runs = from[lot * K::LANES * length..].chunks_exact_mut(length).take(K::LANES);
        for (lane, run) in runs.enumerate() {
            run.iter_mut().zip(block[lane..].iter().step_by(K::LANES)).for_each(|(to, &key)| *to = key);
        }
    }
    let mut width = length;
    while width < lanes * length {
        for (pair, to) in from.chunks(2 * width).zip(to.chunks_mut(2 * width)) {
            match pair.split_at_checked(width) {
                Some((a, b)) if a.len() == b.len() => merge_alike(a, b, to),
                Some((a, b)) => merge_any(a, b, to),
                None => to.copy_from_slice(pair),
            }
        }
        (from, to) = (to, from);
        width *= 2;
    }
    row.copy_from_slice(&from[..row.len()]);
}

/// Merges two runs of one length, from both ends at once: neither end comes to the other run's last key before the middle, so nothing is asked but which
/// key is next.
fn merge_alike<K: Bits>(a: &[K], b: &[K], to: &mut [K]) {
    let length = a.len();
    debug_assert!(b.len() == length && to.len() == 2 * length);
    let (front, back) = to.split_at_mut(length);
    let (mut i, mut p) = (0, length);
    for (at, (front, back)) in front.iter_mut().zip(back.iter_mut().rev()).enumerate() {
        // Of `at` keys of the front, `i` are from `a`; of as many of the back, `length - p` are.
        let (j, q) = (at - i, length - (at - (length - p)));
        // SAFETY: `i` and `j` are at most `at`, `p` and `q` at least `length - at`, and `at < length`.
        let ((x, y), (z, w)) =
            unsafe { ((*a.get_unchecked(i), *b.get_unchecked(j)), (*a.get_unchecked(p - 1), *b.get_unchecked(q - 1))) };
        *front = x.min(y);
        i += usize::from(x <= y);
        *back = z.max(w);
        p -= usize::from(z > w);
    }
}

/// Merges two runs.
fn merge_any<K: Bits>(a: &[K], b: &[K], to: &mut [K]) {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    for to in to {
        let next = match (a.peek(), b.peek()) {
            (Some(x), Some(y)) if x <= y => a.next(),
            (_, Some(_)) => b.next(),
            (_, None) => a.next(),
        };
        *to = next.copied().unwrap_or_default();
    }
}

/// Sorts up to [`Bits::LANES`] contiguous rows of `length` elements in lanes of `spare`.
fn in_lanes<K: Bits>(rows: &mut [K], length: usize, spare: &mut Vec<K>, rule: &Rule<K>) {
    spare.clear();
    spare.resize(length * K::LANES, K::default());
    for (lane, row) in rows.chunks_exact(length).enumerate() {
        for (to, &value) in spare[lane..].iter_mut().step_by(K::LANES).zip(row) {
            *to = value;
        }
    }
    if !K::keyed(spare, rule) {
        // Elements with equal keys but different bits (-0 and 0, NaN) must stay in their order: a stable sort.
        rows.chunks_exact_mut(length).for_each(|row| row.sort_by_key(|value| value.key(rule)));
        return;
    }
    K::network(spare, length);
    K::unkeyed(spare, rule);
    for (lane, row) in rows.chunks_exact_mut(length).enumerate() {
        for (to, &value) in row.iter_mut().zip(spare[lane..].iter().step_by(K::LANES)) {
            *to = value;
        }
    }
}

/// Merges two sorted parts; of equal ones the first part's come first.
fn merge<K: Bits>([a, b]: [&[K]; 2], to: &mut [K], rule: &Rule<K>) {
    let (mut i, mut j) = (0, 0);
    for to in to {
        let takes_a = match (a.get(i), b.get(j)) {
            (Some(x), Some(y)) => x.key(rule) <= y.key(rule),
            (first, _) => first.is_some(),
        };
        *to = if takes_a { a[i] } else { b[j] };
        (i, j) = if takes_a { (i + 1, j) } else { (i, j + 1) };
    }
}

/// Elements that tasks write, each its own.
struct Parts<K>(*mut K);

// SAFETY: each element is written by one task.
unsafe impl<K: Send> Sync for Parts<K> {}

impl<K> Parts<K> {
    /// # Safety
    /// There are these elements, and nothing else touches them while the slice lives.
    #[expect(clippy::mut_from_ref, reason = "tasks have distinct parts")]
    unsafe fn of(&self, first: usize, count: usize) -> &mut [K] {
        // SAFETY: as this function's own contract.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(first), count) }
    }
}

/// Sorts a long row: parts of one size, then two by two. The result does not depend on the number of threads.
fn long<K: Bits>(row: &mut [K], rule: &Rule<K>, limits: &Limits<'_>) -> Result<(), Stopped> {
    let length = row.len();
    let mut other = vec![K::default(); length];
    let (mut from, mut to) = (Parts(row.as_mut_ptr()), Parts(other.as_mut_ptr()));
    threads::try_each(length.div_ceil(PART), |part| {
        limits.begin().check()?;
        let (first, count) = (part * PART, PART.min(length - part * PART));
        // SAFETY: parts are distinct.
        let (row, spare) = unsafe { (from.of(first, count), to.of(first, count)) };
        if size_of::<K>() == 1 {
            by_counts(row, rule)
        } else {
            in_digits(row, spare, rule)
        }
        Ok::<_, Stopped>(())
    })?;
    let mut width = PART;
    while width < length {
        // Each pair is cut where the first part's middle, and so on, would stand, so that all threads have work to the end.
        let pieces = (2 * width / PART).max(1);
        let pairs = length.div_ceil(2 * width);
        threads::try_each(pairs * pieces, |number| {
            limits.begin().check()?;
            let (pair, piece) = (number / pieces, number % pieces);
            let first = pair * 2 * width;
            let middle = (first + width).min(length);
            let end = (first + 2 * width).min(length);
            // SAFETY: the rounds before wrote them, and this one only reads them.
            let (a, b) = unsafe { (&*from.of(first, middle - first), &*from.of(middle, end - middle)) };
            let cut = |piece: usize| {
                let at = a.len() * piece / pieces;
                let behind = match a.get(at) {
                    _ if piece == 0 => 0,
                    _ if piece == pieces => b.len(),
                    Some(value) => b.partition_point(|other| other.key(rule) < value.key(rule)),
                    None => b.len(),
                };
                (at, behind)
            };
            let ((a0, b0), (a1, b1)) = (cut(piece), cut(piece + 1));
            // SAFETY: pieces are distinct.
            let to = unsafe { to.of(first + a0 + b0, a1 - a0 + b1 - b0) };
            merge([&a[a0..a1], &b[b0..b1]], to, rule);
            Ok::<_, Stopped>(())
        })?;
        std::mem::swap(&mut from, &mut to);
        width *= 2;
    }
    if !std::ptr::eq(from.0, row.as_mut_ptr()) {
        row.copy_from_slice(&other);
    }
    Ok(())
}

/// Sorts the rows; the sizes were checked.
fn order<K: Bits>(shape: &OrderShape, x: Floats, y: Floats, limits: &Limits<'_>) -> Result<(), Stopped> {
    let OrderShape { rows, length, .. } = *shape;
    let rule = K::rule(shape.dtype, shape.descending);
    let result = Parts(y.start().cast::<K>());
    let copied = |first: usize, count: usize| {
        // SAFETY: both have `rows * length` elements; nothing writes the input, and tasks have distinct parts of the result.
        unsafe {
            let to = result.of(first, count);
            memory::copy(x.start().cast::<K>().add(first), to.as_mut_ptr(), count);
            to
        }
    };
    if length >= 2 * PART {
        for row in 0..rows {
            long(copied(row * length, length), &rule, limits)?;
        }
        return Ok(());
    }
    let is_short = length <= SHORT && rows >= MANY;
    let lot = if is_short { K::LANES } else { 1 };
    let together = threads::share(rows.div_ceil(lot), (TASK / (lot * length)).max(1)).max(1) * lot;
    threads::try_each(rows.div_ceil(together), |task| {
        let mut spare = Vec::new();
        for first in (task * together..rows.min((task + 1) * together)).step_by(lot) {
            limits.begin().check()?;
            let all = copied(first * length, lot.min(rows - first) * length);
            if is_short {
                in_lanes(all, length, &mut spare, &rule);
            } else {
                sorted(all, &mut spare, &rule);
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;
    use cantus_base::listed::Listed;

    fn is_sorted_as_std_sorts<K: Bits + std::fmt::Debug>(dtype: DType, bits: impl Fn(u64) -> K) {
        let mut state = 11_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let (mut spare, mut lengths) = (Vec::new(), vec![1, 2, LEAST - 1, LEAST, 63, 64, 65, 70, 300, 1024, 4099]);
        lengths.extend([
            K::LANES * LANE,
            K::LANES * LANE + 1,
            3 * K::LANES * LANE + 5,
            BLOCKS_PAY * size_of::<K>(),
            BLOCKS_PAY * size_of::<K>() + 1,
        ]);
        for length in lengths {
            for most in [u64::MAX, 7] {
                for descending in [false, true] {
                    let rule = K::rule(dtype, descending);
                    let mut row: Vec<K> = (0..length).map(|_| bits(next() % most)).collect();
                    let mut expected = row.clone();
                    expected.sort_by_key(|value| value.key(&rule));
                    sorted(&mut row, &mut spare, &rule);
                    assert!(row == expected, "{dtype} of {length}, descending {descending}, below {most}");
                }
            }
        }
    }

    #[test]
    fn rows_are_sorted_as_std_sorts_them() {
        is_sorted_as_std_sorts(DType::F64, |x| x.rotate_right(5));
        is_sorted_as_std_sorts(DType::F64, |x| (x as f64).to_bits());
        is_sorted_as_std_sorts(DType::I64, |x| x);
        is_sorted_as_std_sorts(DType::U64, |x| x);
        is_sorted_as_std_sorts(DType::F32, |x| x as u32);
        is_sorted_as_std_sorts(DType::F32, |x| ((x as f32) / 3.0).to_bits());
        is_sorted_as_std_sorts(DType::I32, |x| x as u32);
        is_sorted_as_std_sorts(DType::F16, |x| x as u16);
        is_sorted_as_std_sorts(DType::U16, |x| x as u16);
        is_sorted_as_std_sorts(DType::I8, |x| x as u8);
    }

    /// Rows on both sides of each way's bounds, with equal elements that differ in their bits, beside the standard library's stable sort.
    #[test]
    fn every_way_sorts_alike() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for length in [1, 2, 23, 24, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 4097, 66_001] {
            for special in [0, 7, 1000] {
                let row: Vec<f64> = (0..length)
                    .map(|_| {
                        let value = next();
                        match value % 1000 {
                            at if at < special => [0.0, -0.0, f64::NAN, -f64::NAN][(value >> 20) as usize % 4],
                            _ => ((value >> 11) as f64 / (1_u64 << 53) as f64 - 0.5) * 1000.0,
                        }
                    })
                    .collect();
                for descending in [false, true] {
                    let order = |a: f64, b: f64| {
                        let order = a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()));
                        if descending { order.reverse() } else { order }
                    };
                    let doubles = row.iter().map(|value| value.to_bits()).listed();
                    check(&doubles, DType::F64, descending, |a, b| order(f64::from_bits(a), f64::from_bits(b)));
                    let floats = row.iter().map(|value| (*value as f32).to_bits()).listed();
                    let of = |bits| f64::from(f32::from_bits(bits));
                    check(&floats, DType::F32, descending, |a, b| order(of(a), of(b)));
                    let turn = |order: Ordering| if descending { order.reverse() } else { order };
                    let words = row.iter().map(|value| (*value * 1e4) as i32 as u32).listed();
                    check(&words, DType::I32, descending, |a, b| turn(a.cast_signed().cmp(&b.cast_signed())));
                    let halves = row.iter().map(|value| value.to_bits() as u16).listed();
                    check(&halves, DType::U16, descending, |a, b| turn(a.cmp(&b)));
                }
            }
        }
    }

    fn check<K: Bits + std::fmt::Debug>(row: &[K], dtype: DType, descending: bool, order: impl Fn(K, K) -> Ordering) {
        let rule = K::rule(dtype, descending);
        let mut known = row.to_vec();
        known.sort_by(|&a, &b| order(a, b));
        let (mut by_way, mut by_digit) = (row.to_vec(), row.to_vec());
        sorted(&mut by_way, &mut Vec::new(), &rule);
        in_digits(&mut by_digit, &mut vec![K::default(); row.len()], &rule);
        assert!(by_way == known && by_digit == known, "{dtype}, {}, descending: {descending}", row.len());
    }
}
