//! Where the inputs of a chain lie, and how their elements reach a block. `Machine` calls it at the beginning of each block and row. Elements that lie side by
//! side and have the lanes' size are not copied at all (`Place::Direct`); what is here serves all other inputs. Views are walked from the innermost axis,
//! with joined axes (`walk`).

use super::walk::Walk;
use super::{Lane, Machine, SHORT};
use crate::backend::native::{CopyShape, Roll};

/// The element of a view at the beginning of a row.
pub(super) fn start_of(view: &CopyShape, mut row: usize) -> usize {
    let outer = view.sides.len().saturating_sub(1);
    let mut at = view.offset;
    if outer == 1 {
        return at + row * view.strides.first().copied().unwrap_or(0);
    }
    for (side, stride) in view.sides[..outer].iter().zip(&view.strides).rev() {
        at += row % side * stride;
        row /= side;
    }
    at
}

impl<T: Lane> Machine<'_, T> {
    /// The element of an input at the beginning of a row.
    pub(in super::super) fn start(&self, input: u16, row: usize) -> usize {
        start_of(&self.shape.inputs[usize::from(input)], row)
    }

    pub(super) fn is_byte(&self, input: u16) -> bool {
        self.shape.inputs[usize::from(input)].bytes == 1
    }

    fn is_word(&self, input: u16) -> bool {
        self.shape.inputs[usize::from(input)].bytes == 4
    }

    /// An element of an input.
    ///
    /// # Safety
    /// The input has it.
    pub(super) unsafe fn element(&self, input: u16, place: usize) -> T {
        let from = self.inputs[usize::from(input)];
        // SAFETY: the input has this element (this function's contract).
        unsafe {
            if self.is_byte(input) {
                T::of_byte(from.start().cast::<u8>().add(place).read())
            } else if self.shape.inputs[usize::from(input)].bytes == size_of::<T>() {
                from.start().cast::<T>().add(place).read()
            } else {
                T::constant(from.at(place).read())
            }
        }
    }

    /// The places in a view of elements of a row from one on.
    pub(super) fn count(&self, view: u16, row: usize, first: usize, to: &mut [T]) {
        let view = &self.shape.places[usize::from(view)];
        let word = |place: usize| T::constant(f32::from_bits(place as u32));
        let run = |to: &mut [T], at: usize, step: usize| {
            to.iter_mut().enumerate().for_each(|(lane, to)| *to = word(at + lane * step));
        };
        if !self.plan.flat {
            let step = view.strides.last().copied().unwrap_or(0);
            return run(to, start_of(view, row) + first * step, step);
        }
        let walk = Walk::new(view);
        match walk.axes.first() {
            Some(&(_, step)) => walk.runs(first, to.len(), |at, count, done| {
                run(&mut to[done..done + count], view.offset + at, step);
            }),
            None => to.fill(word(view.offset)),
        }
    }

    /// Elements of an input from one on, a step apart.
    ///
    /// # Safety
    /// The input has them.
    pub(super) unsafe fn copy(&self, input: u16, start: usize, stride: usize, to: &mut [T]) {
        // SAFETY: the input has the elements (this function's contract), and `to` is no part of it.
        unsafe {
            if self.is_byte(input) && stride == 1 {
                let from = self.inputs[usize::from(input)].start().cast::<u8>().add(start);
                T::of_bytes(std::slice::from_raw_parts(from, to.len()), to);
            } else if self.shape.inputs[usize::from(input)].bytes == size_of::<T>() {
                let from = self.inputs[usize::from(input)].start().cast::<T>().add(start);
                if stride == 1 {
                    from.copy_to_nonoverlapping(to.as_mut_ptr(), to.len());
                } else if stride == 2 {
                    T::every_second(from, to);
                } else {
                    to.iter_mut().enumerate().for_each(|(lane, to)| *to = from.add(lane * stride).read());
                }
            } else if self.is_word(input) && stride == 1 {
                let from = self.inputs[usize::from(input)].start().cast::<u32>().add(start);
                T::of_words(std::slice::from_raw_parts(from, to.len()), to);
            } else {
                to.iter_mut().enumerate().for_each(|(lane, to)| *to = self.element(input, start + lane * stride));
            }
        }
    }

    /// Returns where `count` elements of a rolled input lie, from the element `first` of a row on.
    ///
    /// # Safety
    /// The input has them, and the block is this step's own.
    pub(super) unsafe fn roll(&self, [input, roll]: [u16; 2], block: usize, [row, first, count]: [usize; 3]) -> *mut T {
        let (view, along) = (&self.shape.inputs[usize::from(input)], self.shape.rolls[usize::from(roll)]);
        let last = self.shape.sides.len().saturating_sub(1);
        let step = view.strides.last().map_or(0, |stride| stride * if along.axis == last { along.step } else { 1 });
        let is_run = along.axis != last || first + count <= along.wraps_at() || along.wraps_at() <= first;
        // SAFETY: the input has the elements, and the block, with room for `count`, is this step's own (this function's contract).
        unsafe {
            if !self.plan.flat && is_run && step == 1 && view.bytes == size_of::<T>() {
                return self.inputs[usize::from(input)]
                    .start()
                    .cast::<T>()
                    .add(self.start_of_roll(view, along, row, first));
            }
            let made = self.blocks.add(block * self.plan.lanes);
            let to = std::slice::from_raw_parts_mut(made, count);
            if !self.plan.flat {
                self.copy_rolled(input, (view, along), [row, first], to);
                return made;
            }
            let length = self.shape.sides.last().copied().unwrap_or(1);
            let mut done = 0;
            while done < count {
                let (row, column) = ((first + done) / length, (first + done) % length);
                let part = (length - column).min(count - done);
                self.copy_rolled(input, (view, along), [row, column], &mut to[done..done + part]);
                done += part;
            }
            made
        }
    }

    /// The place in memory of an element of a rolled view, by its row and its place there.
    fn start_of_roll(&self, view: &CopyShape, roll: Roll, mut row: usize, first: usize) -> usize {
        let Some((_, outer)) = self.shape.sides.split_last() else { return view.offset };
        let place =
            |axis: usize, place: usize| view.strides[axis] * if axis == roll.axis { roll.place(place) } else { place };
        let mut at = view.offset + place(outer.len(), first);
        for (axis, side) in outer.iter().enumerate().rev() {
            at += place(axis, row % side);
            row /= side;
        }
        at
    }

    /// Copies elements of a rolled row.
    ///
    /// # Safety
    /// The input has them.
    unsafe fn copy_rolled(&self, input: u16, (view, roll): (&CopyShape, Roll), [row, first]: [usize; 2], to: &mut [T]) {
        let stride = view.strides.last().copied().unwrap_or(0);
        let end = first + to.len();
        let (edge, step) = if roll.axis + 1 == self.shape.sides.len() {
            (roll.wraps_at().clamp(first, end), stride * roll.step)
        } else {
            (end, stride)
        };
        let (before, behind) = to.split_at_mut(edge - first);
        for (place, part) in [(first, before), (edge, behind)] {
            if !part.is_empty() {
                // SAFETY: the input has the elements (this function's contract).
                unsafe { self.copy(input, self.start_of_roll(view, roll, row, place), step, part) };
            }
        }
    }

    /// Elements of an input from one on, in their order.
    ///
    /// # Safety
    /// The input has them.
    pub(super) unsafe fn gather(&self, input: u16, first: usize, to: &mut [T]) {
        let view = &self.shape.inputs[usize::from(input)];
        let walk = &self.walks[usize::from(input)];
        let step = walk.axes.first().map_or(0, |&(_, step)| step);
        let from = self.inputs[usize::from(input)].start().cast::<T>();
        let is_own = view.bytes == size_of::<T>();
        walk.runs(first, to.len(), |at, count, done| {
            let at = view.offset + at;
            let to = &mut to[done..done + count];
            // SAFETY: the input has the elements (this function's contract), and `to` is no part of it.
            unsafe {
                match step {
                    0 => self.element(input, at).fill(to),
                    1 if count > SHORT && self.is_byte(input) && !is_own => {
                        let from = self.inputs[usize::from(input)].start().cast::<u8>().add(at);
                        T::of_bytes(std::slice::from_raw_parts(from, count), to);
                    }
                    1 if count > SHORT && self.is_word(input) && !is_own => {
                        let from = self.inputs[usize::from(input)].start().cast::<u32>().add(at);
                        T::of_words(std::slice::from_raw_parts(from, count), to);
                    }
                    _ if !is_own => {
                        to.iter_mut().enumerate().for_each(|(lane, to)| *to = self.element(input, at + lane * step));
                    }
                    // A loop that ends after a few is quicker than a call.
                    1 if count > SHORT => from.add(at).copy_to_nonoverlapping(to.as_mut_ptr(), count),
                    2 if count > SHORT => T::every_second(from.add(at), to),
                    _ => to.iter_mut().enumerate().for_each(|(lane, to)| *to = from.add(at + lane * step).read()),
                }
            }
        });
    }
}
