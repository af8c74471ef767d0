//! The audit log: one entry for each change, in hash chains that reveal edited, inserted and removed entries.

pub mod rate_limit;
pub mod verify;

pub use super::audit_action::AuditAction;
use super::time::Timestamp;

/// An audit entry before it is added to a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEvent {
    /// When it happened.
    pub at: Timestamp,
    /// The actor: `admin`, `worker:w_…`, `system`, `unknown`.
    pub actor: String,
    /// The action.
    pub action: AuditAction,
    /// The target: an ID or a name.
    pub target: String,
    /// Details, as JSON text.
    pub detail: String,
    /// The ID of the request that caused it, if any.
    pub request_id: Option<String>,
}

impl AuditEvent {
    /// Removes what a database cannot store: PostgreSQL allows no NUL characters in text, and the hash must match the
    /// stored text.
    #[must_use]
    pub fn sanitized(self) -> Self {
        let replace_nul = |text: String| if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text };
        Self {
            actor: replace_nul(self.actor),
            target: replace_nul(self.target),
            detail: replace_nul(self.detail),
            request_id: self.request_id.map(replace_nul),
            ..self
        }
    }

    /// Returns the entry at its place: its chain, its sequence number from 1, and the hash of the previous entry, in
    /// hex (empty for the first).
    pub fn to_record<'a>(&'a self, chain: &'a str, seq: i64, previous: &'a str) -> AuditRecord<'a> {
        AuditRecord {
            chain,
            seq,
            previous,
            at: self.at,
            actor: &self.actor,
            action: self.action.as_str(),
            target: &self.target,
            detail: &self.detail,
            request_id: self.request_id.as_deref(),
        }
    }
}

/// A stored audit entry. It may have been tampered with, so `action` can be any text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRecord<'a> {
    /// The chain: one for each server process.
    pub chain: &'a str,
    /// The sequence number in the chain, from 1.
    pub seq: i64,
    /// Hash of the previous entry, in hex; empty for the first.
    pub previous: &'a str,
    /// When it happened.
    pub at: Timestamp,
    /// The actor.
    pub actor: &'a str,
    /// The action's name.
    pub action: &'a str,
    /// The target.
    pub target: &'a str,
    /// Details, as JSON text.
    pub detail: &'a str,
    /// The ID of the request that caused it, if any.
    pub request_id: Option<&'a str>,
}

impl AuditRecord<'_> {
    /// Returns the bytes that are hashed: all fields, each prefixed by its length, so that different entries never have
    /// the same bytes. A missing field has a length that no text can have.
    pub fn canonical_bytes(&self) -> Vec<u8> {
        let fields = [
            Some(self.chain),
            Some(&self.seq.to_string()),
            Some(self.previous),
            Some(&self.at.0.to_string()),
            Some(self.actor),
            Some(self.action),
            Some(self.target),
            Some(self.detail),
            self.request_id,
        ];
        let mut bytes = Vec::with_capacity(512);
        for field in fields {
            bytes.extend(field.map_or(u64::MAX, |text| text.len() as u64).to_be_bytes());
            bytes.extend(field.unwrap_or_default().as_bytes());
        }
        bytes
    }
}

/// Returns how many of a chain's oldest entries have expired: those before a time, up to the first entry that has not.
pub fn count_expired(oldest: impl IntoIterator<Item = Timestamp>, before: Timestamp) -> usize {
    oldest.into_iter().take_while(|at| *at < before).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> AuditEvent {
        AuditEvent {
            at: Timestamp(1),
            actor: "admin".to_owned(),
            action: AuditAction::WorkerCreated,
            target: "w_1".to_owned(),
            detail: "{}".to_owned(),
            request_id: Some("r".to_owned()),
        }
    }

    #[test]
    fn every_field_is_hashed_unambiguously() {
        let (entry, other) = (entry(), |change: fn(&mut AuditEvent)| {
            let mut entry = entry();
            change(&mut entry);
            entry.to_record("c", 1, "p").canonical_bytes()
        });
        let changed = [
            entry.to_record("d", 1, "p").canonical_bytes(),
            entry.to_record("c", 2, "p").canonical_bytes(),
            entry.to_record("c", 1, "q").canonical_bytes(),
            other(|entry| entry.at = Timestamp(2)),
            other(|entry| entry.actor = "adminw".to_owned()),
            other(|entry| entry.action = AuditAction::WorkerDeleted),
            other(|entry| entry.target = "w_2".to_owned()),
            other(|entry| entry.detail = "[]".to_owned()),
            other(|entry| entry.request_id = None),
            other(|entry| entry.request_id = Some(String::new())),
            other(|entry| (entry.target, entry.detail) = ("w_1{".to_owned(), "}".to_owned())),
        ];
        let original = entry.to_record("c", 1, "p").canonical_bytes();
        assert!(changed.iter().all(|bytes| *bytes != original));
        assert_ne!(changed[8], changed[9], "a missing request ID differs from an empty one");
    }

    #[test]
    fn hashed_text_can_be_stored_in_every_database() {
        let with_nul = AuditEvent {
            actor: "a\0".to_owned(),
            target: "t\0".to_owned(),
            detail: "d\0".to_owned(),
            request_id: Some("r\0".to_owned()),
            ..entry()
        };
        let sanitized = with_nul.sanitized();
        let texts = [
            &sanitized.actor,
            &sanitized.target,
            &sanitized.detail,
            sanitized.request_id.as_ref().expect("a request ID"),
        ];
        assert!(texts.iter().all(|text| text.ends_with('\u{fffd}') && !text.contains('\0')));
        assert_eq!(entry().sanitized(), entry());
    }

    #[test]
    fn only_the_start_of_a_chain_expires() {
        let expired = |times: &[i64]| count_expired(times.iter().map(|at| Timestamp(*at)), Timestamp(10));
        assert_eq!((expired(&[]), expired(&[1, 9, 10, 3]), expired(&[11, 2]), expired(&[1, 2])), (0, 2, 0, 2));
    }
}
