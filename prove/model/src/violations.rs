//! What went wrong in a step, by the invariants of ARCHITECTURE.md.

/// A rule of the protocol that a step can break, with the name of its property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Violation {
    AttemptDecreased,
    OldAttemptHasLease,
    EndedJobChanged,
    SubmitLost,
    Unexplained,
    DrainEnded,
    RevokedAccepted,
    JudgedTooEarly,
    AliveAfterEnd,
    AttemptCost,
}

/// A set of violations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Violations(u16);

impl Violations {
    /// Adds one if a condition does not hold.
    pub fn require(&mut self, holds: bool, violation: Violation) {
        if !holds {
            self.0 |= 1 << violation as u8;
        }
    }

    /// Returns whether it contains this one.
    pub const fn has(self, violation: Violation) -> bool {
        self.0 >> violation as u8 & 1 == 1
    }

    /// Returns whether there is any.
    pub const fn any(self) -> bool {
        self.0 != 0
    }
}
