//! Checkpoints: an attempt sends them, and a later one that runs elsewhere goes on from the newest.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use app::domain::ids::{Attempt, JobId};
use app::domain::job::{Job, Report, Start};
use app::protocol::artifacts::ResumePoint;
use app::protocol::checkpoints::WholeCheckpoint;
use app::protocol::topic::Topic;
use app::protocol::worker::{CheckpointFile, EarlierCheckpoint};
use bytes::Bytes;
use futures_util::stream::BoxStream;

use super::Core;
use super::refusal::{Invalid, Refusal};
use super::reports::Subject;
use super::superseded::{self, make_way};
use super::unit::Caller;
use crate::files::artifacts::Artifacts;
use crate::store::Tx;
use crate::store::checkpoints::StoredCheckpoint;
use crate::text::is_plain_path;

/// The most files of one checkpoint.
pub const MAX_FILES: usize = 4_096;
/// So many jobs at most are gone back to, of those that each tried the one before again.
const FURTHEST: usize = 100;

/// A file of an earlier checkpoint.
pub struct EarlierFile {
    /// What is known of it.
    pub file: CheckpointFile,
    place: (JobId, Attempt),
    artifacts: Artifacts,
}

/// A checkpoint and whose it is.
struct Found {
    job: JobId,
    attempt: Attempt,
    name: String,
    files: Vec<CheckpointFile>,
}

impl Core {
    /// Every file of a checkpoint was sent: an attempt that follows may go on from it.
    pub async fn note_checkpoint(
        self: &Arc<Self>,
        caller: Caller,
        subject: Subject,
        whole: WholeCheckpoint,
    ) -> Result<(), Refusal> {
        let step = checked(&whole)?;
        let input = Arc::new((subject, whole, step));
        let gives_up = self.change(caller, move |unit| {
            let input = Arc::clone(&input);
            Box::pin(async move {
                let (subject, whole, step) = &*input;
                let job = unit.job(&subject.job).await?;
                let attempt = subject.attempt.unwrap_or(job.attempt);
                job.clone().reported(unit.now, &subject.worker, attempt, Report::Running)?;
                unit.answers(&job).await?;
                if let Some(missing) = missing(unit.tx, &job.id, attempt, &whole.files).await? {
                    return Err(Refusal::CheckpointIncomplete { path: missing });
                }
                let checkpoint = StoredCheckpoint {
                    attempt,
                    name: whole.name.clone(),
                    step: *step,
                    files: serde_json::to_string(&whole.files).expect("plain fields"),
                    created_at: unit.now,
                };
                unit.tx.put_checkpoint(&job.id, &checkpoint).await?;
                let gives_up = make_way(unit, &job, (*step, attempt)).await?;
                unit.touch(Topic::Job(job.id));
                Ok(gives_up)
            })
        });
        if gives_up.await? {
            self.remove_soon();
        }
        Ok(())
    }

    /// The checkpoint that an attempt may go on from.
    pub async fn earlier_checkpoint(self: &Arc<Self>, subject: &Subject) -> Result<EarlierCheckpoint, Refusal> {
        let found = self.earlier(subject).await?;
        Ok(found.map_or_else(EarlierCheckpoint::default, |Found { attempt, name, files, .. }| EarlierCheckpoint {
            attempt: Some(attempt),
            name,
            files,
        }))
    }

    /// A file of it.
    pub async fn earlier_file(self: &Arc<Self>, subject: &Subject, path: &str) -> Result<EarlierFile, Refusal> {
        let none = || Refusal::NoArtifact(path.chars().take(80).collect());
        let Found { job, attempt, files, .. } = self.earlier(subject).await?.ok_or_else(none)?;
        let file = files.into_iter().find(|file| file.path == path).ok_or_else(none)?;
        Ok(EarlierFile { file, place: (job, attempt), artifacts: self.artifacts.clone() })
    }

    async fn earlier(self: &Arc<Self>, subject: &Subject) -> Result<Option<Found>, Refusal> {
        let attempt = self.check_attempt(subject).await?;
        let mut tx = self.read().await?;
        let job = tx.job(&subject.job).await?.ok_or_else(|| Refusal::NoJob(subject.job.clone()))?;
        newest(&mut *tx, &job, attempt).await
    }
}

impl EarlierFile {
    /// These bytes of it.
    pub async fn bytes(&self, range: Range<u64>) -> Result<BoxStream<'static, object_store::Result<Bytes>>, Refusal> {
        let (job, attempt) = &self.place;
        let bytes = self.artifacts.get_range((job, *attempt, &self.file.path), range).await;
        bytes.map_err(|error| match error {
            // A backup may have left it out. Asking again does not help.
            object_store::Error::NotFound { .. } => Refusal::NoArtifact(self.file.path.clone()),
            error => Refusal::Files(error.to_string()),
        })
    }
}

/// From where an attempt that follows on all there were would go on.
pub async fn resume_point(tx: &mut dyn Tx, job: &Job) -> Result<Option<ResumePoint>, Refusal> {
    let found = newest(tx, job, Attempt(job.attempt.0 + 1)).await?;
    Ok(found.map(|Found { job, attempt, name, .. }| ResumePoint { job_id: job, attempt, name }))
}

/// The checkpoints that the owner of a job that has ended can resume from, newest first, at most `most`. Each name is
/// listed once.
pub async fn resumable(tx: &mut dyn Tx, ended: &Job, most: usize) -> Result<Vec<ResumePoint>, Refusal> {
    let mut points = Vec::new();
    for (job, checkpoint) in known(tx, ended, ended.attempt.next()).await? {
        if points.len() == most {
            break;
        }
        if points.iter().any(|point: &ResumePoint| point.name == checkpoint.name) {
            continue;
        }
        let found = whole(tx, job, checkpoint).await?;
        points.extend(found.map(|Found { job, attempt, name, .. }| ResumePoint { job_id: job, attempt, name }));
    }
    Ok(points)
}

/// The checkpoint of the highest step that an attempt of this job may go on from.
async fn newest(tx: &mut dyn Tx, job: &Job, before: Attempt) -> Result<Option<Found>, Refusal> {
    for (job, checkpoint) in known(tx, job, before).await? {
        if let Some(found) = whole(tx, job, checkpoint).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The checkpoints of this job's earlier attempts and of the jobs that it retries, highest step first. The chain ends at a
/// job that started from scratch or from a named checkpoint, and at another person's.
async fn known(tx: &mut dyn Tx, job: &Job, before: Attempt) -> Result<Vec<(JobId, StoredCheckpoint)>, Refusal> {
    let own = tx.checkpoints(&job.id).await?.into_iter().filter(|checkpoint| checkpoint.attempt < before);
    let mut found: Vec<(JobId, StoredCheckpoint)> = own.map(|checkpoint| (job.id.clone(), checkpoint)).collect();
    let (mut start, mut next) = (job.spec.start.clone(), job.retry_of.clone());
    for _ in 0..FURTHEST {
        match &start {
            Start::Newest => {}
            Start::Scratch => break,
            Start::Checkpoint(saved) => {
                let is_it = |checkpoint: &StoredCheckpoint| {
                    checkpoint.attempt == saved.attempt && checkpoint.name == saved.name
                };
                let made = tx.checkpoints(&saved.job).await?.into_iter().filter(is_it);
                found.extend(made.map(|checkpoint| (saved.job.clone(), checkpoint)));
                break;
            }
        }
        let Some(id) = next else { break };
        let Some(tried) = tx.job(&id).await?.filter(|tried| tried.submitted_by == job.submitted_by) else { break };
        found.extend(tx.checkpoints(&id).await?.into_iter().map(|checkpoint| (id.clone(), checkpoint)));
        (start, next) = (tried.spec.start, tried.retry_of);
    }
    // Of one step the job's own comes first, then those of the jobs that it was tried after; the sort keeps that.
    found.sort_by_key(|(_, checkpoint)| Reverse(checkpoint.step));
    Ok(found)
}

/// A checkpoint, if all its files are here.
async fn whole(tx: &mut dyn Tx, job: JobId, checkpoint: StoredCheckpoint) -> Result<Option<Found>, Refusal> {
    let files: Vec<CheckpointFile> = serde_json::from_str(&checkpoint.files).unwrap_or_default();
    let is_whole = !files.is_empty() && missing(tx, &job, checkpoint.attempt, &files).await?.is_none();
    Ok(is_whole.then_some(Found { job, attempt: checkpoint.attempt, name: checkpoint.name, files }))
}

/// The first of these files that an attempt has not sent as it is described.
async fn missing(
    tx: &mut dyn Tx,
    job: &JobId,
    attempt: Attempt,
    files: &[CheckpointFile],
) -> Result<Option<String>, Refusal> {
    let sent = tx.artifacts_of(job, attempt).await?;
    let sent: BTreeMap<_, _> = sent.iter().map(|sent| (&sent.path, (sent.size, sent.sha256.as_str()))).collect();
    let is_there = |file: &&CheckpointFile| {
        let digest = file.sha256.to_ascii_lowercase();
        sent.get(&file.path) == Some(&(file.size_bytes, digest.as_str()))
    };
    Ok(files.iter().find(|file| !is_there(file)).map(|file| file.path.clone()))
}

/// The step of a checkpoint, if what is said of it makes sense.
fn checked(whole: &WholeCheckpoint) -> Result<i64, Invalid> {
    let allowed = "`checkpoint-` and a step, such as checkpoint-500";
    let step = superseded::step(&whole.name).ok_or(Invalid::Range { field: "name", allowed })?;
    if whole.files.len() > MAX_FILES {
        return Err(Invalid::TooMuch { what: "files of a checkpoint", limit: MAX_FILES as u64 });
    }
    let mut seen = HashSet::new();
    let is_below = |path: &str| path.strip_prefix(&whole.name).is_some_and(|rest| rest.starts_with('/'));
    let mut is_odd = |path: &'_ str| !is_plain_path(path) || !is_below(path) || !seen.insert(path.to_owned());
    if let Some(odd) = whole.files.iter().find(|file| is_odd(&file.path)) {
        return Err(Invalid::Path(odd.path.chars().take(80).collect()));
    }
    if whole.files.is_empty() {
        return Err(Invalid::Range { field: "files", allowed: "every file of the checkpoint: at least one" });
    }
    Ok(step)
}
