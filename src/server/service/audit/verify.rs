//! Verifying the whole trail, in portions, at one moment of the database.

use app::domain::audit::Action;
use app::domain::audit::verify::{Fault, Report, Verifier};
use app::domain::time::Timestamp;
use app::protocol::audit::{AuditFault, AuditVerdict};
use sha2::{Digest, Sha256};

use super::evidence::{is_signed, trust};
use crate::files::checkpoints::{Checkpoints, SignedLines};
use crate::service::Core;
use crate::service::refusal::Refusal;
use crate::store::{StoreError, Tx};
use crate::tokens::hex;

/// So many entries are in memory at once.
const PORTION: u32 = 5_000;

/// What was found, and how much of it was signed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// By the chains' own rules.
    pub report: Report,
    /// Checkpoints in the trail that this key has signed.
    pub signed: u64,
    /// Those of other keys, which nobody can check here.
    pub foreign: u64,
    /// Whether each chain, and what retention removed, had to be signed.
    pub is_complete: bool,
}

impl Core {
    /// Verifies the trail with this server's key; one at a time, because it reads all of it.
    pub async fn verify_audit(&self) -> Result<AuditVerdict, Refusal> {
        let _turn = self.signer.verifying().await;
        let lines = self.signer.files().signed()?;
        let verdict = verify(&mut *self.read().await?, Some(self.signer.files()), &lines, false, self.now()).await?;
        Ok(verdict.told(true, lines.broken))
    }
}

impl Verdict {
    /// As it is told to whoever asked; `broken_lines` are those of the file of checkpoints that are none.
    pub fn told(&self, key_found: bool, broken_lines: Vec<usize>) -> AuditVerdict {
        let fault = |(chain, fault): &(String, Fault)| {
            let (from, to) = fault.entries().unzip();
            AuditFault { chain: chain.clone(), fault: fault.as_str().to_owned(), from, to, what: fault.to_string() }
        };
        AuditVerdict {
            intact: self.report.is_clean() && broken_lines.is_empty(),
            chains: self.report.chains,
            entries: self.report.entries,
            faults: self.report.faults.iter().map(fault).collect(),
            more_faults: self.report.untold,
            key_found,
            checkpoints_signed: self.signed,
            checkpoints_of_other_keys: self.foreign,
            broken_checkpoint_lines: broken_lines,
            chains_must_be_signed: self.is_complete,
        }
    }
}

/// Reads all chains. With a key, checkpoints in them are checked; `lines` are those of the file beside it. If they are what was
/// shipped elsewhere (`against`), they alone are believed: who has the server's host has its key.
pub async fn verify(
    tx: &mut dyn Tx,
    key: Option<&Checkpoints>,
    lines: &SignedLines,
    against: bool,
    now: Timestamp,
) -> Result<Verdict, StoreError> {
    let mut verdict = Verdict::default();
    let trust = trust(tx, key.filter(|_| !against), lines, now).await?;
    verdict.is_complete = trust.is_some();
    let hash = |bytes: &[u8]| hex(&Sha256::digest(bytes));
    let mut verifier = Verifier::new(hash, tx.audit_heads().await?, lines.signed.clone());
    if let Some(trust) = trust {
        verifier = verifier.trusting(trust);
    }
    let (mut chain, mut seq) = (String::new(), i64::MIN);
    loop {
        let portion = tx.audit_after(&chain, seq, PORTION).await?;
        let Some(last) = portion.last() else { break };
        (chain, seq) = (last.chain.clone(), last.seq);
        for entry in &portion {
            verifier.read(&entry.record(), &entry.hash);
            if entry.action == Action::AuditCheckpoint.as_str() {
                match key.map(|key| is_signed(key, entry)) {
                    None | Some(None) => verdict.foreign += 1,
                    Some(Some(true)) => verdict.signed += 1,
                    Some(Some(false)) => verifier.note(&entry.chain, Fault::BadCheckpoint(entry.seq)),
                }
            }
        }
    }
    verdict.report = verifier.end();
    Ok(verdict)
}
