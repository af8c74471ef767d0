//! The family of a job: the jobs that it comes from, and those that come from it.

use std::collections::BTreeSet;

use app::domain::ids::JobId;
use app::domain::job::Job;
use app::domain::job::family::depth_first;
use app::protocol::jobs::family::{FamilyMember, JobFamily};

use crate::service::access::Principal;
use crate::service::error::ServiceError;
use crate::service::jobs::fields::submitted_view;
use crate::store::Tx;

/// The maximum number of jobs in a family.
const MAX_FAMILY: usize = 200;

/// Returns the jobs of a family that the user may see; `None` if the job comes from no other and none comes from it.
pub async fn family_of(tx: &mut dyn Tx, principal: &Principal, job: &Job) -> Result<Option<JobFamily>, ServiceError> {
    let owner = principal.visible_owner();
    let is_visible = |job: &Job| owner.as_ref().is_none_or(|owner| *owner == job.submitted_by);
    let mut found = vec![job.clone()];
    while let Some(origin) = found.last().and_then(|job| job.retry_of.clone()).filter(|_| found.len() < MAX_FAMILY) {
        let Some(origin) = tx.job(&origin).await?.filter(is_visible) else { break };
        found.push(origin);
    }
    let mut seen: BTreeSet<JobId> = found.iter().map(|job| job.id.clone()).collect();
    let mut newest: Vec<JobId> = seen.iter().cloned().collect();
    let mut is_truncated = false;
    while !newest.is_empty() && !is_truncated {
        let mut next = tx.jobs_that_retry(&newest, MAX_FAMILY).await?;
        is_truncated = next.len() >= MAX_FAMILY;
        next.retain(|job| is_visible(job) && seen.insert(job.id.clone()));
        is_truncated |= found.len() + next.len() > MAX_FAMILY;
        next.truncate(MAX_FAMILY - found.len());
        newest = next.iter().map(|job| job.id.clone()).collect();
        found.extend(next);
    }
    if found.len() == 1 {
        return Ok(None);
    }
    let jobs = depth_first(found).iter().map(|(depth, job)| member(*depth, job)).collect();
    Ok(Some(JobFamily { jobs, is_truncated }))
}

fn member(depth: u32, job: &Job) -> FamilyMember {
    let view = submitted_view(job);
    FamilyMember {
        title: view.title(),
        config: view.numbered_config(),
        job_id: view.job_id,
        depth,
        status: view.status,
        resume_from: view.resume_from,
        submitted_by: view.submitted_by,
        submitted_at: view.submitted_at,
    }
}
