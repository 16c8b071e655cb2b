//! The ways in which control may leave a statement (WGSL, "Statements Behavior Analysis").

/// A set of ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Behavior(u8);

impl Behavior {
    pub(super) const NONE: Self = Self(0);
    pub(super) const NEXT: Self = Self(1);
    pub(super) const BREAK: Self = Self(2);
    pub(super) const CONTINUE: Self = Self(4);
    pub(super) const RETURN: Self = Self(8);

    pub(super) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// They have something in common.
    pub(super) const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// One statement after the other.
    pub(super) const fn then(self, next: Self) -> Self {
        if self.meets(Self::NEXT) { self.without(Self::NEXT).union(next) } else { self }
    }

    /// A loop with such a body and continuing block.
    pub(super) fn looped(self, continuing: Self) -> Self {
        if self == Self::RETURN {
            return self;
        }
        let all = self.union(continuing);
        let leaves = if all.meets(Self::BREAK) { Self::NEXT } else { Self::NONE };
        all.without(Self::NEXT.union(Self::BREAK).union(Self::CONTINUE)).union(leaves)
    }

    /// A switch whose cases together have such.
    pub(super) const fn switched(self) -> Self {
        if self.meets(Self::BREAK) { self.without(Self::BREAK).union(Self::NEXT) } else { self }
    }
}
