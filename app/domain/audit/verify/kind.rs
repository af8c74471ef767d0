//! Kinds of faults in an audit log, each with its code.

use crate::words::words;

words! {
    /// The kind of a [`ChainFault`](super::ChainFault), without the affected entries.
    #[expect(missing_docs, reason = "`ChainFault` documents the same variants")]
    FaultKind {
        Edited = "edited",
        Replaced = "replaced",
        Removed = "removed",
        Inserted = "inserted",
        Truncated = "truncated",
        Added = "added",
        HeadMismatch = "head_differs",
        MissingHead = "no_head",
        AllEntriesMissing = "all_missing",
        SignedHashMismatch = "not_as_signed",
        SignedEntryMissing = "signed_missing",
        BadCheckpoint = "bad_checkpoint",
        UnsignedAnchor = "anchor_unsigned",
        UnsignedChain = "unsigned_chain",
        UnknownKey = "unknown_key",
        UnsignedEntries = "unsigned_entries",
    }
}
