//! Which GPUs no job may have, and why: decided from what was seen, and from which GPUs jobs of ours hold.

use std::collections::{BTreeMap, BTreeSet};

use app::protocol::gpu::{GpuReading, Withheld, WithheldReason};

use super::provider::{Fault, Seen, User, in_words};
use super::xid::{Meaning, meaning};

/// One look at all GPUs, or why there was none.
pub type Look = Result<Vec<Seen>, String>;

/// What has shown itself so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gate {
    gpus: BTreeMap<String, Standing>,
    /// The driver as a whole does not answer.
    silent: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Standing {
    /// Processes that are not ours, in words.
    in_use: Option<String>,
    /// Errors of its memory at the last look.
    ecc: Option<u64>,
}

/// A GPU that is to be quarantined, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// Which.
    pub uuid: String,
    /// In words.
    pub detail: String,
}

impl Gate {
    /// Takes note of a look. `held` are the GPUs of our jobs: whoever computes there is never called foreign, as in a
    /// container the ids of processes are the host's and say nothing.
    pub fn take(&mut self, look: &Look, held: &BTreeSet<String>) -> Vec<Broken> {
        self.silent = look.as_ref().err().map(|why| format!("the driver does not answer: {why}"));
        let mut broken = Vec::new();
        for seen in look.iter().flatten() {
            let uuid = &seen.reading.uuid;
            let standing = self.gpus.entry(uuid.clone()).or_default();
            let users = seen.users.as_deref().unwrap_or_default();
            let is_foreign = !users.is_empty() && (!held.contains(uuid) || standing.in_use.is_some());
            standing.in_use = is_foreign.then(|| used_by(users));
            let before = standing.ecc;
            standing.ecc = seen.reading.ecc_errors.or(before);
            let risen = before.zip(standing.ecc).filter(|(before, now)| now > before);
            let risen = risen.map(|(before, now)| format!("uncorrected memory errors rose from {before} to {now}"));
            let faults = seen.faults.iter().filter_map(|fault| judged(uuid, fault));
            broken.extend(faults.chain(risen).map(|detail| Broken { uuid: uuid.clone(), detail }));
        }
        broken
    }

    /// Somebody else was found on it while a job of ours was about to begin.
    pub fn caught(&mut self, uuid: &str, users: &[User]) {
        self.gpus.entry(uuid.to_owned()).or_default().in_use = Some(used_by(users));
    }

    /// No look has ended for too long.
    pub fn hangs(&mut self, detail: &str) {
        self.silent = Some(detail.to_owned());
    }

    /// Why no job may have this GPU.
    pub fn withheld(&self, uuid: &str, quarantined: Option<&str>) -> Option<Withheld> {
        let in_use = self.gpus.get(uuid).and_then(|standing| standing.in_use.clone());
        // What only a person ends comes first.
        let broken = quarantined.map(str::to_owned).or_else(|| self.silent.clone());
        let quarantined = broken.map(|detail| Withheld { reason: WithheldReason::Quarantined, detail });
        quarantined.or_else(|| in_use.map(|detail| Withheld { reason: WithheldReason::InUse, detail }))
    }
}

/// Who is there, in words.
pub fn used_by(users: &[User]) -> String {
    format!("used by {}", in_words(users))
}

fn judged(uuid: &str, fault: &Fault) -> Option<String> {
    match fault {
        Fault::Lost(why) => Some(format!("it does not answer any more: {why}")),
        Fault::Xid(xid) => match meaning(*xid) {
            Meaning::Broken(what) => Some(format!("XID {xid}: {what}")),
            Meaning::Program => {
                tracing::warn!("{uuid}: XID {xid}, which is a program's own fault");
                None
            }
            Meaning::Note => {
                tracing::warn!("{uuid}: XID {xid}; the GPU goes on");
                None
            }
        },
    }
}

/// The look with every known GPU in it: one that is left out is lost.
pub fn whole(look: Look, known: &[String]) -> Look {
    let mut seen = look?;
    for uuid in known {
        if !seen.iter().any(|gpu| gpu.reading.uuid == *uuid) {
            let reading = GpuReading { uuid: uuid.clone(), ..GpuReading::default() };
            let faults = vec![Fault::Lost("it is not there any more".to_owned())];
            seen.push(Seen { reading, users: None, faults });
        }
    }
    // What nobody asked for was hidden from the agent, or came later.
    seen.retain(|gpu| known.contains(&gpu.reading.uuid));
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "a look may also bring nothing")]
    fn seen(users: &[u32], ecc: Option<u64>, faults: &[Fault]) -> Look {
        let reading = GpuReading { uuid: "GPU-1".to_owned(), ecc_errors: ecc, ..GpuReading::default() };
        let users = users.iter().map(|pid| User { pid: *pid, name: Some("x".to_owned()) }).collect();
        Ok(vec![Seen { reading, users: Some(users), faults: faults.to_vec() }])
    }

    fn reason(gate: &Gate) -> Option<(WithheldReason, String)> {
        gate.withheld("GPU-1", None).map(|withheld| (withheld.reason, withheld.detail))
    }

    #[test]
    fn others_withhold_it_until_they_are_gone_and_ours_never() {
        let (ours, nobody) = (BTreeSet::from(["GPU-1".to_owned()]), BTreeSet::new());
        let mut gate = Gate::default();
        gate.take(&seen(&[7], None, &[]), &ours);
        assert_eq!(reason(&gate), None);
        gate.take(&seen(&[7], None, &[]), &nobody);
        assert_eq!(reason(&gate), Some((WithheldReason::InUse, "used by process 7 (x)".to_owned())));
        // Granted although it was told: whoever is there was there before.
        gate.take(&seen(&[7], None, &[]), &ours);
        assert!(reason(&gate).is_some());
        gate.take(&seen(&[], None, &[]), &ours);
        assert_eq!(reason(&gate), None);
        gate.take(&seen(&[8], None, &[]), &ours);
        assert_eq!(reason(&gate), None);
    }

    #[test]
    fn grave_errors_and_rising_counts_break_it() {
        let (nobody, mut gate) = (BTreeSet::new(), Gate::default());
        let mut details =
            |look: &Look| gate.take(look, &nobody).into_iter().map(|broken| broken.detail).collect::<Vec<_>>();
        assert_eq!(details(&seen(&[], Some(4), &[Fault::Xid(31), Fault::Xid(63)])), [""; 0]);
        assert_eq!(details(&seen(&[], Some(4), &[Fault::Xid(79)])), ["XID 79: it has fallen off the bus"]);
        assert_eq!(details(&seen(&[], Some(5), &[])), ["uncorrected memory errors rose from 4 to 5"]);
        assert_eq!(details(&seen(&[], None, &[])), [""; 0]);
        assert_eq!(details(&seen(&[], Some(5), &[])), [""; 0]);
        assert_eq!(details(&seen(&[], Some(0), &[])), [""; 0]);
        let lost = whole(Ok(Vec::new()), &["GPU-1".to_owned()]);
        assert_eq!(details(&lost), ["it does not answer any more: it is not there any more"]);
    }

    #[test]
    fn a_driver_that_comes_back_is_forgiven() {
        let (nobody, mut gate) = (BTreeSet::new(), Gate::default());
        assert_eq!(gate.take(&Err("gone".to_owned()), &nobody), []);
        assert_eq!(reason(&gate), Some((WithheldReason::Quarantined, "the driver does not answer: gone".to_owned())));
        gate.take(&seen(&[], None, &[]), &nobody);
        assert_eq!(reason(&gate), None);
        gate.hangs("no answer for 15 s");
        assert!(reason(&gate).is_some_and(|(_, detail)| detail == "no answer for 15 s"));
        assert_eq!(gate.withheld("GPU-1", Some("XID 79")).map(|withheld| withheld.detail), Some("XID 79".to_owned()));
    }
}
