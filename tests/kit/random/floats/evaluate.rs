//! The results of programs, in intervals: by WGSL's accuracy of each operation.

use crate::check::ulp32;

use super::INPUTS;
use super::interval::Interval;
use super::program::*;

impl Function {
    /// One component.
    pub(super) fn apply(self, width: Width, x: &[Interval]) -> Interval {
        let a = x[0];
        let b = x.get(1).copied().unwrap_or(a);
        let c = x.get(2).copied().unwrap_or(b);
        let one = Interval::exact(1.0);
        let round = |value: Interval| value.rounded(width, 1.0);
        let within = |value: Interval, most: f64| value.map(|value| value.clamp(-most, most));
        let abs = |value: Interval| {
            let least = if value.low <= 0.0 && value.high >= 0.0 { 0.0 } else { value.low.abs().min(value.high.abs()) };
            Interval { low: least, high: value.low.abs().max(value.high.abs()) }
        };
        match self {
            Self::Negate => -a,
            Self::Abs => abs(a),
            Self::Floor => a.map(f64::floor),
            Self::Trunc => a.map(f64::trunc),
            Self::Round => a.map(f64::round_ties_even),
            Self::Fract if a.low.floor() == a.high.floor() => {
                // Of a tiny negative number it may be rounded up to 1.
                round(a.map(|value| value - value.floor()))
            }
            Self::Fract => Interval { low: 0.0, high: 1.0 },
            Self::Sign => a.map(|value| if value == 0.0 { 0.0 } else { value.signum() }),
            Self::Saturate => a.map(|value| value.clamp(0.0, 1.0)),
            // 1 / inverseSqrt(x), whose parts are off by 2 and 2.5 ULP.
            Self::Sqrt => abs(a).map(f64::sqrt).rounded(width, 5.0),
            Self::Exp => {
                let exponent = within(a, 4.0);
                let least = if width == Width::Half { 1.0 } else { 3.0 };
                exponent.map(f64::exp).rounded(width, least + 2.0 * exponent.low.abs().max(exponent.high.abs()))
            }
            Self::Sin => {
                let angle = within(a, 3.0);
                let mut ends = vec![angle.low.sin(), angle.high.sin()];
                let quarter = std::f64::consts::FRAC_PI_2;
                ends.extend(
                    [-quarter, quarter].iter().filter(|&&top| angle.low < top && top < angle.high).map(|top| top.sin()),
                );
                let error = if width == Width::Half { 2.0_f64.powi(-7) } else { 2.0_f64.powi(-11) };
                Interval::of(ends).widened(error)
            }
            Self::Add => round(a + b),
            Self::Sub => round(a + -b),
            Self::Mul => round(a * b),
            Self::Div => {
                let divisor = round(abs(b) + one);
                (a * Interval { low: 1.0 / divisor.high, high: 1.0 / divisor.low }).rounded(width, 2.5)
            }
            Self::Min => Interval { low: a.low.min(b.low), high: a.high.min(b.high) },
            Self::Max => Interval { low: a.low.max(b.low), high: a.high.max(b.high) },
            Self::Step => {
                Interval { low: if a.high <= b.low { 1.0 } else { 0.0 }, high: if a.low <= b.high { 1.0 } else { 0.0 } }
            }
            Self::Clamp => {
                let top = Self::Max.apply(width, &[b, c]);
                Self::Min.apply(width, &[Self::Max.apply(width, &[a, b]), top])
            }
            // a + (b - a) * c, or a * (1 - c) + b * c.
            Self::Mix => {
                let by_difference = round(a + round(round(b + -a) * c));
                let by_parts = round(round(a * round(one + -c)) + round(b * c));
                Interval::of([by_difference.low, by_parts.low, by_difference.high, by_parts.high])
            }
            Self::Fma => round(round(a * b) + c),
        }
    }
}

pub(super) struct Machine<'a> {
    pub(super) memory: Vec<Interval>,
    pub(super) lane: u32,
    pub(super) input: &'a [f32],
}

impl Machine<'_> {
    pub(super) fn first(&self, place: &Place, pointers: &[usize]) -> usize {
        let base = match place.base {
            Base::Memory(first) => first,
            Base::Parameter(number, offset) => pointers[number] + offset,
        };
        base + place.index.map_or(0, |(by, mask, stride)| ((self.lane + by) & mask) as usize * stride)
    }

    pub(super) fn store(&mut self, place: &Place, pointers: &[usize], values: &[Interval]) {
        let first = self.first(place, pointers);
        self.memory[first..first + values.len()].copy_from_slice(values);
    }

    pub(super) fn block(&mut self, statements: &[Statement], pointers: &[usize], program: &Program) {
        for statement in statements {
            match statement {
                Statement::Declare(place, value) | Statement::Assign(place, value, _) => {
                    let values = self.value(value, pointers);
                    self.store(place, pointers, &values);
                }
                Statement::If(bits, then, otherwise) => {
                    let chosen = if self.lane & bits == 0 { then } else { otherwise };
                    self.block(chosen, pointers, program);
                }
                Statement::Repeat(count, body) => (0..*count).for_each(|_| self.block(body, pointers, program)),
                Statement::Call(result, number, pointed) => {
                    let callee = &program.functions[*number];
                    let inner: Vec<usize> = pointed.iter().map(|place| self.first(place, pointers)).collect();
                    self.block(&callee.body, &inner, program);
                    let values = self.value(&callee.result, &inner);
                    self.store(result, pointers, &values);
                }
            }
        }
    }

    pub(super) fn value(&self, expression: &Expression, pointers: &[usize]) -> Vec<Interval> {
        let of = |expression: &Expression| self.value(expression, pointers);
        let width = expression.width();
        let sum = |terms: &mut dyn Iterator<Item = Interval>| {
            let first = terms.next().unwrap_or(Interval::exact(0.0));
            // In any order, so that each partial sum may be rounded at the size of the largest.
            let terms: Vec<Interval> = std::iter::once(first).chain(terms).collect();
            let most: f64 = terms.iter().map(|term| term.low.abs().max(term.high.abs())).sum();
            let exact = terms.iter().fold(Interval::exact(0.0), |sum, term| sum + *term);
            exact.widened(terms.len() as f64 * ulp32(most))
        };
        let dot = |a: &[Interval], b: &[Interval]| {
            sum(&mut a.iter().zip(b).map(|(a, b)| (*a * *b).rounded(Width::Single, 1.0)))
        };
        match expression {
            Expression::Input(by, from) => {
                let at = (self.lane * by + from) % INPUTS;
                vec![Interval::exact(self.input[at as usize].into())]
            }
            Expression::Literal(value, _) => vec![Interval::exact(*value)],
            Expression::Load(place) => {
                let first = self.first(place, pointers);
                self.memory[first..first + place.ty.slots()].to_vec()
            }
            Expression::Apply(function, arguments) => {
                let arguments: Vec<Vec<Interval>> = arguments.iter().map(of).collect();
                let component = |at: usize| {
                    let component: Vec<Interval> = arguments.iter().map(|argument| argument[at]).collect();
                    function.apply(width, &component)
                };
                (0..arguments[0].len()).map(component).collect()
            }
            Expression::Compose(ty, parts) if parts.is_empty() => vec![Interval::exact(0.0); ty.slots()],
            Expression::Compose(_, parts) => parts.iter().flat_map(of).collect(),
            Expression::Swizzle(base, order) => {
                let base = of(base);
                order.iter().map(|&at| base[at]).collect()
            }
            Expression::Column(matrix, column) => {
                let rows = expression.ty().slots();
                of(matrix)[column * rows..][..rows].to_vec()
            }
            Expression::Product(left, right) => match (left.ty(), right.ty()) {
                (Ty::Matrix(_, rows), _) => {
                    let (matrix, vector) = (of(left), of(right));
                    let row = |row: usize| matrix.iter().skip(row).step_by(rows).copied().collect::<Vec<_>>();
                    (0..rows).map(|at| dot(&row(at), &vector)).collect()
                }
                _ => {
                    let (vector, matrix) = (of(left), of(right));
                    matrix.chunks(vector.len()).map(|column| dot(&vector, column)).collect()
                }
            },
            Expression::Transpose(matrix) => {
                let (cells, rows) = (of(matrix), if let Ty::Matrix(_, rows) = matrix.ty() { rows } else { 1 });
                (0..rows).flat_map(|row| cells.iter().skip(row).step_by(rows).copied().collect::<Vec<_>>()).collect()
            }
            Expression::Dot(a, b) => vec![dot(&of(a), &of(b))],
            Expression::Length(a) => {
                let a = of(a);
                let squares = dot(&a, &a);
                let squares = Interval { low: squares.low.max(0.0), high: squares.high };
                vec![squares.map(f64::sqrt).rounded(Width::Single, 5.0)]
            }
            Expression::Cross(a, b) => {
                let (a, b) = (of(a), of(b));
                let minor = |i: usize, j: usize| dot(&[a[i], -a[j]], &[b[j], b[i]]);
                vec![minor(1, 2), minor(2, 0), minor(0, 1)]
            }
            Expression::Select(parts) => {
                let [a, b, c, d] = parts.each_ref().map(|part| of(part)[0]);
                let (never, always) = (c.low >= d.high, c.high < d.low);
                vec![match (never, always) {
                    (true, _) => a,
                    (_, true) => b,
                    _ => Interval::of([a.low, a.high, b.low, b.high]),
                }]
            }
            Expression::Convert(Width::Single, value) => of(value),
            Expression::Convert(Width::Half, value) => {
                of(value).into_iter().map(|value| value.rounded(Width::Half, 1.0)).collect()
            }
        }
    }
}
