//! Verifying the whole trail, in portions, at one moment of the database.

use app::domain::audit::Action;
use app::domain::audit::verify::{Fault, Report, Signed, Verifier};
use app::protocol::audit::{AuditFault, AuditVerdict};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::files::checkpoints::Checkpoints;
use crate::service::Core;
use crate::service::refusal::Refusal;
use crate::store::audit::StoredEntry;
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
}

/// What a checkpoint's entry says.
#[derive(Deserialize)]
struct Detail {
    seq: i64,
    key: String,
    mac: String,
}

impl Core {
    /// Verifies the trail with this server's key; one at a time, because it reads all of it.
    pub async fn verify_audit(&self) -> Result<AuditVerdict, Refusal> {
        let _turn = self.signer.verifying().await;
        let (signed, broken_lines) = self.signer.files().signed()?;
        let verdict = verify(&mut *self.read().await?, Some(self.signer.files()), signed).await?;
        Ok(verdict.told(true, broken_lines))
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
        }
    }
}

/// Reads all chains. With a key, checkpoints in them are checked; `signed` is what the file beside it says.
pub async fn verify(tx: &mut dyn Tx, key: Option<&Checkpoints>, signed: Signed) -> Result<Verdict, StoreError> {
    let mut verdict = Verdict::default();
    let mut verifier = Verifier::new(|bytes: &[u8]| hex(&Sha256::digest(bytes)), tx.audit_heads().await?, signed);
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

/// Whether a checkpoint signs the entry before it; none if it was made with another key.
fn is_signed(key: &Checkpoints, entry: &StoredEntry) -> Option<bool> {
    let Ok(detail) = serde_json::from_str::<Detail>(&entry.detail) else { return Some(false) };
    if detail.key != key.key_id() {
        return None;
    }
    let expected = key.mac(&entry.chain, entry.seq - 1, &entry.previous);
    Some(detail.seq == entry.seq - 1 && detail.mac == expected)
}
