//! Compile-time check: each action and fault of the audit log has a sentence, and there are no others.

use app::domain::audit::AuditAction;
use app::domain::audit::verify::FaultKind;
use app::ui::audit_actions::{ACTIONS, FAULTS};

const _: () = {
    let mut index = 0;
    while index < AuditAction::ALL.len() {
        assert!(
            has(ACTIONS, AuditAction::ALL[index].as_str()),
            "app/locales/en.json: overview.actions lacks an action"
        );
        index += 1;
    }
    assert!(ACTIONS.len() == AuditAction::ALL.len(), "app/locales/en.json: overview.actions has an unknown action");
    index = 0;
    while index < FaultKind::ALL.len() {
        assert!(
            has(FAULTS, FaultKind::ALL[index].as_str()),
            "app/locales/en.json: server_pages.audit.faults lacks a fault"
        );
        index += 1;
    }
    assert!(
        FAULTS.len() == FaultKind::ALL.len(),
        "app/locales/en.json: server_pages.audit.faults has an unknown fault"
    );
};

const fn has(names: &[&str], name: &str) -> bool {
    let mut index = 0;
    while index < names.len() {
        if is_same(names[index].as_bytes(), name.as_bytes()) {
            return true;
        }
        index += 1;
    }
    false
}

const fn is_same(first: &[u8], second: &[u8]) -> bool {
    if first.len() != second.len() {
        return false;
    }
    let mut index = 0;
    while index < first.len() {
        if first[index] != second[index] {
            return false;
        }
        index += 1;
    }
    true
}
