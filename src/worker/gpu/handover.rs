//! Before a job begins and after it has ended: whether the GPUs that it was granted are fit, and free.

use std::time::Duration;

use app::protocol::gpu::{Withheld, WithheldReason};
use tokio::time::Instant;

use super::Gpus;
use super::gate::{Broken, Look, used_by};
use super::provider::{Fault, Seen, User, in_words};

/// How long the test before a job may take.
const TEST: Duration = Duration::from_secs(5);
/// How long the processes of an ended job may still be on its GPUs.
const FREEING: Duration = Duration::from_secs(30);
/// Between two looks at whether they are gone.
const AGAIN: Duration = Duration::from_millis(250);

/// What the test found wrong with a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Finding {
    /// It is withheld from now on.
    Broken(Broken),
    /// It was withheld before, and the offer had not heard of it.
    Known(String, Withheld),
    /// Somebody else is on it.
    InUse(String, Vec<User>),
    /// The driver as a whole is in trouble, and may come out of it.
    Silent(String, String),
}

impl Gpus {
    /// Whether a job may begin on these: the driver answers for each, none is in quarantine, and nobody else is there. What
    /// is not fit is withheld, so that it does not get the next job either.
    ///
    /// # Errors
    /// With a sentence for the job's page.
    pub async fn preflight(&self, granted: &[String]) -> Result<(), String> {
        let ours = self.known(granted);
        if ours.is_empty() {
            return Ok(());
        }
        let look = match tokio::time::timeout(TEST, self.look()).await {
            Ok(look) => Some(look.unwrap_or_else(|| Err("nobody looks at the GPUs any more".to_owned()))),
            Err(_) => None,
        };
        let findings = judge(&ours, look.as_ref(), |uuid| self.quarantined(uuid));
        if findings.is_empty() {
            return Ok(());
        }
        let sentence = sentence(&findings);
        let mut broken = Vec::new();
        for finding in findings {
            match finding {
                Finding::Broken(found) => broken.push(found),
                Finding::InUse(uuid, users) => self.caught(&uuid, &users),
                Finding::Known(..) | Finding::Silent(..) => {}
            }
        }
        self.quarantine(broken).await;
        Err(sentence)
    }

    /// Waits until nobody of a job that has ended computes on these any more. Strangers may have come meanwhile, and are not
    /// waited for. What is not free in time is withheld.
    pub async fn freed(&self, granted: &[String], is_stranger: impl Fn(u32) -> bool) {
        let ours = self.known(granted);
        let deadline = Instant::now() + FREEING;
        let mut left = Left::Unknown;
        while !ours.is_empty() && Instant::now() < deadline {
            match tokio::time::timeout_at(deadline, self.look()).await {
                // Nobody looks here, so there is nobody to ask.
                Ok(None) => return,
                Ok(Some(look)) => left = Left::of(&ours, &look, &is_stranger),
                Err(_) => left = Left::Unknown,
            }
            if left == Left::Nobody {
                return;
            }
            tokio::time::sleep(AGAIN).await;
        }
        self.quarantine(left.broken(&ours)).await;
    }
}

/// Who is still on the GPUs of a job that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Left {
    /// The driver does not say.
    Unknown,
    /// They are free.
    Nobody,
    /// These, by GPU.
    Some(Vec<(String, Vec<User>)>),
}

impl Left {
    fn of(ours: &[String], look: &Look, is_stranger: impl Fn(u32) -> bool) -> Self {
        let Ok(seen) = look else { return Self::Unknown };
        let mine = seen.iter().filter(|gpu| ours.contains(&gpu.reading.uuid));
        let on = |gpu: &Seen| {
            let mut users = gpu.users.clone().unwrap_or_default();
            users.retain(|user| !is_stranger(user.pid));
            (!users.is_empty()).then(|| (gpu.reading.uuid.clone(), users))
        };
        let left: Vec<_> = mine.filter_map(on).collect();
        if left.is_empty() { Self::Nobody } else { Self::Some(left) }
    }

    fn broken(self, ours: &[String]) -> Vec<Broken> {
        let after = format!("{} s after its job ended", FREEING.as_secs());
        match self {
            Self::Nobody => Vec::new(),
            Self::Unknown => {
                let detail = format!("the driver does not say whether it is free, {after}");
                ours.iter().map(|uuid| Broken { uuid: uuid.clone(), detail: detail.clone() }).collect()
            }
            Self::Some(left) => {
                let detail = |users: &[User]| format!("its memory is still held by {}, {after}", in_words(users));
                left.into_iter().map(|(uuid, users)| Broken { detail: detail(&users), uuid }).collect()
            }
        }
    }
}

/// What is wrong with these GPUs; no look means that there was no answer in time.
fn judge(ours: &[String], look: Option<&Look>, quarantined: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let of = |uuid: &String| -> Option<Finding> {
        if let Some(detail) = quarantined(uuid) {
            let withheld = Withheld { reason: WithheldReason::Quarantined, detail };
            return Some(Finding::Known(uuid.clone(), withheld));
        }
        let broken = |detail: String| Some(Finding::Broken(Broken { uuid: uuid.clone(), detail }));
        let seen = match look {
            None => return broken(format!("it did not answer within {} s before a job", TEST.as_secs())),
            Some(Err(why)) => return Some(Finding::Silent(uuid.clone(), why.clone())),
            Some(Ok(seen)) => seen.iter().find(|gpu| gpu.reading.uuid == *uuid),
        };
        let Some(seen) = seen else { return broken("it was not there before a job".to_owned()) };
        if let Some(Fault::Lost(why)) = seen.faults.iter().find(|fault| matches!(fault, Fault::Lost(_))) {
            return broken(format!("it did not answer before a job: {why}"));
        }
        let users = seen.users.clone().filter(|users| !users.is_empty())?;
        Some(Finding::InUse(uuid.clone(), users))
    };
    ours.iter().filter_map(of).collect()
}

fn sentence(findings: &[Finding]) -> String {
    let words = |finding: &Finding| match finding {
        Finding::Broken(Broken { uuid, detail }) => format!("{uuid}: {detail}"),
        Finding::Known(uuid, withheld) => format!("{uuid} is in quarantine: {}", withheld.detail),
        Finding::InUse(uuid, users) => format!("{uuid} is {}", used_by(users)),
        Finding::Silent(uuid, why) => format!("{uuid}: the driver does not answer: {why}"),
    };
    let all: Vec<String> = findings.iter().map(words).collect();
    format!("the worker's GPUs are not fit for a job: {}", all.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use app::protocol::gpu::GpuReading;

    #[expect(clippy::unnecessary_wraps, reason = "a look may also bring nothing")]
    fn seen(users: Option<&[u32]>, faults: &[Fault]) -> Look {
        let reading = GpuReading { uuid: "GPU-1".to_owned(), ..GpuReading::default() };
        let users = users.map(|pids| pids.iter().map(|pid| User { pid: *pid, name: None }).collect());
        Ok(vec![Seen { reading, users, faults: faults.to_vec() }])
    }

    #[test]
    fn the_test_before_a_job_is_a_table() {
        let ours = ["GPU-1".to_owned()];
        let said = |look: Option<Look>| sentence(&judge(&ours, look.as_ref(), |_| None));
        let passes = |look: Look| judge(&ours, Some(&look), |_| None).is_empty();
        assert!(passes(seen(Some(&[]), &[])) && passes(seen(None, &[Fault::Xid(31)])));
        assert!(said(None).ends_with("GPU-1: it did not answer within 5 s before a job"));
        assert!(said(Some(Err("mismatch".to_owned()))).ends_with("the driver does not answer: mismatch"));
        assert!(said(Some(seen(Some(&[7]), &[]))).ends_with("GPU-1 is used by process 7"));
        assert!(said(Some(seen(None, &[Fault::Lost("gone".to_owned())]))).ends_with("before a job: gone"));
        assert!(said(Some(Ok(Vec::new()))).ends_with("it was not there before a job"));
        let known = judge(&ours, Some(&seen(Some(&[]), &[])), |_| Some("XID 79".to_owned()));
        assert!(sentence(&known).ends_with("GPU-1 is in quarantine: XID 79"));
    }

    #[test]
    fn who_is_left_after_a_job() {
        let ours = ["GPU-1".to_owned()];
        let left = |look: Look| Left::of(&ours, &look, |pid| pid == 9);
        assert_eq!(left(seen(Some(&[]), &[])), Left::Nobody);
        assert_eq!(left(seen(None, &[])), Left::Nobody);
        assert_eq!(left(seen(Some(&[9]), &[])), Left::Nobody);
        assert_eq!(Left::of(&["GPU-2".to_owned()], &seen(Some(&[7]), &[]), |_| false), Left::Nobody);
        let details = |left: Left| left.broken(&ours).into_iter().map(|broken| broken.detail).collect::<Vec<_>>();
        let held = left(seen(Some(&[7, 9]), &[]));
        assert_eq!(details(held), ["its memory is still held by process 7, 30 s after its job ended"]);
        assert_eq!(details(left(Err(String::new()))).len(), 1);
    }
}
