//! Verification of the whole audit log, in batches, in one database snapshot.

use app::domain::audit::AuditAction;
use app::domain::audit::verify::{ChainFault, Verifier, VerifyReport};
use app::domain::time::Timestamp;
use app::protocol::audit::{AuditFault, AuditVerification};
use sha2::{Digest, Sha256};

use super::signatures::{collect_signatures, is_signed};
use crate::files::audit_checkpoints::{AuditCheckpointFile, SignedLines};
use crate::service::audit::AuditService;
use crate::service::error::ServiceError;
use crate::store::{StoreError, Tx};
use crate::tokens::hex;

/// The maximum number of entries in memory.
const BATCH: u32 = 5_000;

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditLogVerification {
    /// The findings by the rules of the chains.
    pub report: VerifyReport,
    /// The number of checkpoints in the log that this key has signed.
    pub signed: u64,
    /// The number of checkpoints of other keys, which cannot be checked here.
    pub other_keys: u64,
    /// Whether each chain, and each removal by retention, had to be signed.
    pub is_complete: bool,
}

impl AuditService {
    /// Verifies the log with this server's key; one at a time, because it reads everything.
    pub async fn verify_audit(&self) -> Result<AuditVerification, ServiceError> {
        let _lock = self.signer.lock_verification().await;
        let lines = self.signer.files().read_signed()?;
        let verification = verify_audit_log(
            &mut *self.context.read().await?,
            Some(self.signer.files()),
            &lines,
            false,
            self.context.now(),
        )
        .await?;
        Ok(verification.to_view(true, lines.invalid_lines))
    }
}

impl AuditLogVerification {
    /// Converts to the API view; `invalid_lines` are those of the checkpoint file.
    pub fn to_view(&self, key_found: bool, invalid_lines: Vec<usize>) -> AuditVerification {
        let fault = |(chain, fault): &(String, ChainFault)| {
            let (from, to) = fault.entries().unzip();
            AuditFault { chain: chain.clone(), fault: fault.as_str().to_owned(), from, to, what: fault.to_string() }
        };
        AuditVerification {
            intact: self.report.is_clean() && invalid_lines.is_empty(),
            chains: self.report.chains,
            entries: self.report.entries,
            faults: self.report.faults.iter().map(fault).collect(),
            more_faults: self.report.more_faults,
            key_found,
            checkpoints_signed: self.signed,
            checkpoints_of_other_keys: self.other_keys,
            broken_checkpoint_lines: invalid_lines,
            chains_must_be_signed: self.is_complete,
        }
    }
}

/// Reads and verifies all chains. With a key, the checkpoints in them are checked; `lines` are those of the file beside
/// the database. If they were shipped elsewhere (`against`), only they are trusted, because access to the server's host
/// includes its key.
pub async fn verify_audit_log(
    tx: &mut dyn Tx,
    key: Option<&AuditCheckpointFile>,
    lines: &SignedLines,
    against: bool,
    now: Timestamp,
) -> Result<AuditLogVerification, StoreError> {
    let mut verification = AuditLogVerification::default();
    let signatures = collect_signatures(tx, key.filter(|_| !against), lines, now).await?;
    verification.is_complete = signatures.is_some();
    let hash = |bytes: &[u8]| hex(&Sha256::digest(bytes));
    let mut verifier = Verifier::new(hash, tx.audit_heads().await?, lines.signed.clone());
    if let Some(signatures) = signatures {
        verifier = verifier.with_signatures(signatures);
    }
    let (mut chain, mut seq) = (String::new(), i64::MIN);
    loop {
        let batch = tx.audit_after(&chain, seq, BATCH).await?;
        let Some(last) = batch.last() else { break };
        (chain, seq) = (last.chain.clone(), last.seq);
        for entry in &batch {
            verifier.verify_record(&entry.record(), &entry.hash);
            if entry.action == AuditAction::AuditCheckpoint.as_str() {
                match key.map(|key| is_signed(key, entry)) {
                    None | Some(None) => verification.other_keys += 1,
                    Some(Some(true)) => verification.signed += 1,
                    Some(Some(false)) => verifier.add_fault(&entry.chain, ChainFault::BadCheckpoint(entry.seq)),
                }
            }
        }
    }
    verification.report = verifier.into_report();
    Ok(verification)
}
