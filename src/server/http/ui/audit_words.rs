//! Compile-time check: each action and fault of the audit log has a sentence, and there are no others.

use app::domain::audit::AuditAction;
use app::domain::audit::verify::FaultKind;
use app::ui::audit_actions::{ACTIONS, FAULTS};

const _: () = {
    let mut place = 0;
    while place < AuditAction::ALL.len() {
        assert!(
            has(ACTIONS, AuditAction::ALL[place].as_str()),
            "app/locales/en.json: overview.actions lacks an action"
        );
        place += 1;
    }
    assert!(ACTIONS.len() == AuditAction::ALL.len(), "app/locales/en.json: overview.actions has an unknown action");
    place = 0;
    while place < FaultKind::ALL.len() {
        assert!(
            has(FAULTS, FaultKind::ALL[place].as_str()),
            "app/locales/en.json: server_pages.audit.faults lacks a fault"
        );
        place += 1;
    }
    assert!(
        FAULTS.len() == FaultKind::ALL.len(),
        "app/locales/en.json: server_pages.audit.faults has an unknown fault"
    );
};

const fn has(words: &[&str], word: &str) -> bool {
    let mut place = 0;
    while place < words.len() {
        if is_same(words[place].as_bytes(), word.as_bytes()) {
            return true;
        }
        place += 1;
    }
    false
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut place = 0;
    while place < one.len() {
        if one[place] != other[place] {
            return false;
        }
        place += 1;
    }
    true
}
