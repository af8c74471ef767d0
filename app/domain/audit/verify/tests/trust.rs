//! What has to be vouched for, and is not.

use super::super::trust::Trust;
use super::*;

/// What is wrong with a chain of eight entries for who has this much to go by.
fn judged(trail: &Trail, trust: &Trust) -> Vec<Fault> {
    let mut verifier = Verifier::new(hash, trail.heads.clone(), trail.signed.clone()).trusting(trust.clone());
    for row in &trail.rows {
        verifier.read(&row.record(), &row.hash);
    }
    verifier.end().faults.into_iter().map(|(_, fault)| fault).collect()
}

#[test]
fn chains_and_anchors_have_to_be_signed() {
    let (whole, cut, gone) = (Trail::of("c", 8, 0), Trail::of("c", 8, 3), Trail::of("c", 8, 8));
    let nothing = Trust::default();
    assert_eq!(judged(&whole, &nothing), [Fault::UnsignedChain]);
    assert_eq!(judged(&cut, &nothing), [Fault::AnchorUnsigned(3)]);
    assert_eq!(judged(&gone, &nothing), [Fault::AnchorUnsigned(8)]);
    let foreign = Trust { foreign: ["c".to_owned()].into(), ..Trust::default() };
    assert_eq!(judged(&whole, &foreign), [Fault::UnknownKey]);
    let mut signed = Trust::default();
    signed.sign("c", 8);
    signed.sign("c", 5);
    assert_eq!((signed.signed["c"], judged(&whole, &signed)), (8, vec![]));
    assert_eq!(judged(&cut, &signed), [Fault::AnchorUnsigned(3)], "also in a chain that is signed");
    for trail in [&cut, &gone] {
        let mark = trail.heads["c"].removed.clone();
        let other = Mark { hash: "0".to_owned(), ..mark.clone() };
        let anchored = |mark| Trust { anchors: [("c".to_owned(), [mark].into())].into(), ..Trust::default() };
        assert_eq!(judged(trail, &anchored(mark)), []);
        assert!(matches!(judged(trail, &anchored(other))[..], [Fault::AnchorUnsigned(_)]));
    }
}

#[test]
fn what_is_old_has_to_be_signed() {
    // Entries are two to a moment.
    let trail = Trail::of("c", 8, 0);
    for (until, due, expected) in [
        (8, 100, vec![]),
        (5, 3, vec![]),
        (5, 4, vec![Fault::UnsignedEntries { from: 6, to: 8 }]),
        (0, 1, vec![Fault::UnsignedEntries { from: 1, to: 8 }]),
        (0, 0, vec![]),
    ] {
        let mut trust = Trust { due: Timestamp(due), ..Trust::default() };
        trust.sign("c", until);
        assert_eq!(judged(&trail, &trust), expected, "{until} {due}");
    }
}

#[test]
fn nothing_comes_after_a_chain_has_ended() {
    let mut trust = Trust::default();
    trust.sign("c", 8);
    trust.closed.insert("c".to_owned(), 6);
    assert_eq!(judged(&Trail::of("c", 6, 0), &trust), []);
    assert_eq!(judged(&Trail::of("c", 8, 0), &trust), [Fault::UnsignedEntries { from: 7, to: 8 }]);
}

#[test]
fn a_chain_of_which_only_the_beginning_was_signed_is_missed_when_it_is_gone() {
    let mut none = Trail { rows: vec![], heads: BTreeMap::new(), signed: Signed::new() };
    sign(&mut none, 0, "");
    assert_eq!(none.faults(), [Fault::SignedGone(0)]);
    let mut there = Trail::of("c", 2, 0);
    sign(&mut there, 0, "");
    assert_eq!(there.faults(), []);
}
