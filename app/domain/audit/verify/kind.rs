//! Kinds of faults in an audit log, each with its code.

/// Declares the kinds with their codes.
macro_rules! kinds {
    ($($name:ident => $word:literal,)+) => {
        /// The kind of a [`ChainFault`](super::ChainFault), without the affected entries.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[expect(missing_docs, reason = "`ChainFault` documents the same variants")]
        pub enum FaultKind {
            $($name,)+
        }

        impl FaultKind {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// Returns the code.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }
        }
    };
}

kinds! {
    Edited => "edited",
    Replaced => "replaced",
    Removed => "removed",
    Inserted => "inserted",
    Truncated => "truncated",
    Added => "added",
    HeadMismatch => "head_differs",
    MissingHead => "no_head",
    AllEntriesMissing => "gone",
    SignedHashMismatch => "not_as_signed",
    SignedEntryMissing => "signed_gone",
    BadCheckpoint => "bad_checkpoint",
    UnsignedAnchor => "anchor_unsigned",
    UnsignedChain => "unsigned_chain",
    UnknownKey => "unknown_key",
    UnsignedEntries => "unsigned_entries",
}
