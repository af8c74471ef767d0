//! Tests of missing signatures.

use super::super::trust::VerifiedSignatures;
use super::*;

/// The faults of a chain of eight entries, with these signatures.
fn chain_faults(audit_log: &AuditLog, trust: &VerifiedSignatures) -> Vec<ChainFault> {
    let mut verifier =
        Verifier::new(hash, audit_log.heads.clone(), audit_log.signed.clone()).with_signatures(trust.clone());
    for row in &audit_log.rows {
        verifier.verify_record(&row.record(), &row.hash);
    }
    verifier.into_report().faults.into_iter().map(|(_, fault)| fault).collect()
}

#[test]
fn chains_and_anchors_must_be_signed() {
    let (full, cut, emptied) = (AuditLog::new("c", 8, 0), AuditLog::new("c", 8, 3), AuditLog::new("c", 8, 8));
    let no_signatures = VerifiedSignatures::default();
    assert_eq!(chain_faults(&full, &no_signatures), [ChainFault::UnsignedChain]);
    assert_eq!(chain_faults(&cut, &no_signatures), [ChainFault::UnsignedAnchor(3)]);
    assert_eq!(chain_faults(&emptied, &no_signatures), [ChainFault::UnsignedAnchor(8)]);
    let foreign = VerifiedSignatures { foreign_chains: ["c".to_owned()].into(), ..VerifiedSignatures::default() };
    assert_eq!(chain_faults(&full, &foreign), [ChainFault::UnknownKey]);
    let mut signed = VerifiedSignatures::default();
    signed.mark_signed("c", 8);
    signed.mark_signed("c", 5);
    assert_eq!((signed.signed_up_to["c"], chain_faults(&full, &signed)), (8, vec![]));
    assert_eq!(chain_faults(&cut, &signed), [ChainFault::UnsignedAnchor(3)], "even in a signed chain");
    for audit_log in [&cut, &emptied] {
        let anchor = audit_log.heads["c"].removed.clone();
        let other = EntryRef { hash: "0".to_owned(), ..anchor.clone() };
        let anchored = |anchor| VerifiedSignatures {
            anchors: [("c".to_owned(), [anchor].into())].into(),
            ..VerifiedSignatures::default()
        };
        assert_eq!(chain_faults(audit_log, &anchored(anchor)), []);
        assert!(matches!(chain_faults(audit_log, &anchored(other))[..], [ChainFault::UnsignedAnchor(_)]));
    }
}

#[test]
fn old_entries_must_be_signed() {
    // Two entries share each timestamp.
    let audit_log = AuditLog::new("c", 8, 0);
    for (until, due, expected) in [
        (8, 100, vec![]),
        (5, 3, vec![]),
        (5, 4, vec![ChainFault::UnsignedEntries { from: 6, to: 8 }]),
        (0, 1, vec![ChainFault::UnsignedEntries { from: 1, to: 8 }]),
        (0, 0, vec![]),
    ] {
        let mut trust = VerifiedSignatures { must_be_signed_before: Timestamp(due), ..VerifiedSignatures::default() };
        trust.mark_signed("c", until);
        assert_eq!(chain_faults(&audit_log, &trust), expected, "{until} {due}");
    }
}

#[test]
fn entries_after_the_end_of_a_chain_are_faults() {
    let mut trust = VerifiedSignatures::default();
    trust.mark_signed("c", 8);
    trust.closed_seq.insert("c".to_owned(), 6);
    assert_eq!(chain_faults(&AuditLog::new("c", 6, 0), &trust), []);
    assert_eq!(chain_faults(&AuditLog::new("c", 8, 0), &trust), [ChainFault::UnsignedEntries { from: 7, to: 8 }]);
}

#[test]
fn missing_chain_is_found_by_its_signed_beginning() {
    let mut empty = AuditLog { rows: vec![], heads: BTreeMap::new(), signed: SignedHashes::new() };
    sign(&mut empty, 0, "");
    assert_eq!(empty.faults(), [ChainFault::SignedEntryMissing(0)]);
    let mut present = AuditLog::new("c", 2, 0);
    sign(&mut present, 0, "");
    assert_eq!(present.faults(), []);
}
