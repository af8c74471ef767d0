//! Which workers were there, with how many GPUs, and which could have taken a job: read from what is on record of them.

use std::collections::BTreeMap;

use super::Window;
use super::spans::Spans;
use crate::domain::ids::WorkerId;
use crate::domain::time::Timestamp;

/// What happened to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Its agent registered.
    Registered {
        /// With so many GPUs.
        gpus: u32,
        /// On a host that is fit for no new job.
        unfit: bool,
    },
    /// It listens.
    Online,
    /// Its stream ended; it is there still.
    Connecting,
    /// It went offline, or was removed.
    Gone,
    /// A person lets it drain.
    Drained,
    /// A person took that back.
    Resumed,
    /// It takes no other job.
    Spent,
    /// Its host is fit for no new job, or is again.
    Fitness {
        /// Whether it is not.
        unfit: bool,
    },
}

/// When a worker was there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attendance {
    /// With how many GPUs, span by span.
    pub there: Vec<((Timestamp, Timestamp), u32)>,
    /// When it could be offered jobs.
    pub open: Vec<(Timestamp, Timestamp)>,
}

#[derive(Default)]
struct Worker {
    since: Timestamp,
    there: bool,
    listens: bool,
    shut: [bool; 3],
    gpus: u32,
    attendance: Attendance,
}

impl Worker {
    /// Writes down how it was until this moment.
    fn until(&mut self, at: Timestamp, window: Window) {
        if let Some(span) = window.part(self.since, Some(at)).filter(|_| self.there) {
            self.attendance.there.push((span, self.gpus));
            if self.listens && self.shut == [false; 3] {
                self.attendance.open.push(span);
            }
        }
        self.since = at;
    }

    fn take(&mut self, change: Change) {
        let [drains, spent, is_unfit] = &mut self.shut;
        match change {
            Change::Registered { gpus, unfit } => {
                (self.there, self.listens, self.gpus, *is_unfit) = (true, false, gpus, unfit);
            }
            Change::Online => (self.there, self.listens) = (true, true),
            Change::Connecting => self.listens = false,
            Change::Gone => (self.there, self.listens) = (false, false),
            Change::Drained => *drains = true,
            Change::Resumed => *drains = false,
            Change::Spent => *spent = true,
            Change::Fitness { unfit } => *is_unfit = unfit,
        }
    }
}

/// When each worker was there within the window; changes come in the order of time.
pub fn attendance(
    changes: impl IntoIterator<Item = (Timestamp, WorkerId, Change)>,
    window: Window,
) -> BTreeMap<WorkerId, Attendance> {
    let mut workers = BTreeMap::<WorkerId, Worker>::new();
    for (at, id, change) in changes {
        let worker = workers.entry(id).or_default();
        worker.until(at, window);
        worker.take(change);
    }
    let closed = |(id, mut worker): (WorkerId, Worker)| {
        worker.until(window.until, window);
        (id, worker.attendance)
    };
    workers.into_iter().map(closed).collect()
}

/// When any worker could have taken a job and had none; `busy` are the spans in which workers had one.
pub fn idle(attendance: &BTreeMap<WorkerId, Attendance>, busy: &BTreeMap<WorkerId, Spans>) -> Spans {
    let none = Spans::default();
    let of = |(id, attendance): (&WorkerId, &Attendance)| {
        let open: Spans = attendance.open.iter().copied().collect();
        open.without(busy.get(id).unwrap_or(&none))
    };
    attendance.iter().flat_map(|worker| of(worker).iter().collect::<Vec<_>>()).collect()
}
