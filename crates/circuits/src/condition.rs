//! Conditions on classical bits, which decide at run time whether an instruction runs: what `if` of OpenQASM and `Circuit::only_if` give. They
//! are lists of tests in postfix order, without pointers.

/// A part of a condition, in postfix order, on a stack of 64-bit numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Test {
    Value(u64),
    /// The number that bits make, the first one lowest: at most 64.
    Bits {
        start: u32,
        len: u32,
    },
    Not,
    And,
    Or,
    Xor,
    Equal,
    Less,
}

/// A condition on classical bits, as [`Circuit::only_if`](crate::Circuit::only_if) takes it.
///
/// ```
/// use cantus_circuits::Condition;
/// let either = Condition::bit(0).or(Condition::equals(1..4, 5));
/// assert!(either.holds(&[false, true, false, true]));
/// assert!(!(!either).holds(&[false, true, false, true]));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition(pub(crate) Vec<Test>);

impl Condition {
    /// Holds if the bit is 1.
    #[must_use]
    pub fn bit(bit: usize) -> Self {
        Self(vec![bits(bit..bit + 1)])
    }

    /// Holds if bits, the first one lowest, make this number. Of more than 64 bits the first 64 count.
    #[must_use]
    pub fn equals(range: std::ops::Range<usize>, value: u64) -> Self {
        Self(vec![bits(range), Test::Value(value), Test::Equal])
    }

    /// Holds if both do.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        // Numbers count as what is not 0.
        self.truth().joined(other.truth(), Test::And)
    }

    /// Holds if one of both does.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        self.joined(other, Test::Or)
    }

    pub(crate) fn joined(mut self, other: Self, test: Test) -> Self {
        self.0.extend(other.0);
        self.0.push(test);
        self
    }

    /// 1 for every number but 0.
    pub(crate) fn truth(mut self) -> Self {
        self.0.extend([Test::Not, Test::Not]);
        self
    }

    /// Returns whether it holds for classical bits; those that are missing are 0.
    #[must_use]
    pub fn holds(&self, bits: &[bool]) -> bool {
        holds(&self.0, bits)
    }

    /// The greatest bit that it names.
    pub(crate) fn most(&self) -> Option<usize> {
        let last = |test: &Test| match test {
            Test::Bits { start, len } => Some((*start + (*len).max(1) - 1) as usize),
            _ => None,
        };
        self.0.iter().filter_map(last).max()
    }
}

/// Holds if the condition does not.
impl std::ops::Not for Condition {
    type Output = Self;

    fn not(mut self) -> Self {
        self.0.push(Test::Not);
        self
    }
}

pub(crate) fn bits(range: std::ops::Range<usize>) -> Test {
    let short = |number: usize| u32::try_from(number).unwrap_or(u32::MAX / 2);
    Test::Bits { start: short(range.start), len: short(range.len()).min(64) }
}

/// Returns whether tests hold.
pub(crate) fn holds(tests: &[Test], bits: &[bool]) -> bool {
    let mut stack: Vec<u64> = Vec::with_capacity(4);
    for test in tests {
        let next = match *test {
            Test::Value(value) => value,
            Test::Bits { start, len } => {
                let at = |place: u32| bits.get((start + place) as usize).copied().unwrap_or(false);
                (0..len).map(|place| u64::from(at(place)) << place).sum()
            }
            Test::Not => u64::from(stack.pop() == Some(0)),
            Test::And | Test::Or | Test::Xor | Test::Equal | Test::Less => {
                let (b, a) = (stack.pop().unwrap_or(0), stack.pop().unwrap_or(0));
                match test {
                    Test::And => a & b,
                    Test::Or => a | b,
                    Test::Xor => a ^ b,
                    Test::Equal => u64::from(a == b),
                    _ => u64::from(a < b),
                }
            }
        };
        stack.push(next);
    }
    stack.pop().unwrap_or(0) != 0
}
