//! GPUs, and why jobs cannot use one: its agent has quarantined it after an error, or another process uses it.

/// A GPU, or a partition of one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Gpu {
    /// Its index on the host, which users know.
    pub index: u32,
    /// Its stable ID, by which GPUs are allocated.
    pub uuid: String,
    /// The model.
    pub name: String,
    /// Memory in GB; none if the device does not report it.
    pub vram_gb: Option<f64>,
    /// The kind of memory; none if unknown.
    pub memory: Option<MemoryKind>,
    /// For a partition, the ID of the GPU that it belongs to.
    pub part_of: Option<String>,
    /// Why no new job can use it. A job that already uses it keeps it.
    pub unavailable: Option<Unavailable>,
}

/// The kind of memory that a GPU uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryKind {
    /// Its own memory.
    Dedicated,
    /// The host's memory.
    Unified,
}

impl MemoryKind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Dedicated, Self::Unified];

    /// Returns its name in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dedicated => "dedicated",
            Self::Unified => "unified",
        }
    }
}

/// Why a GPU is unavailable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    /// The kind of reason.
    pub reason: UnavailableReason,
    /// Details, as reported by the agent: which error, or which process. May be empty.
    pub detail: String,
}

/// Why jobs cannot use a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnavailableReason {
    /// It had an error, or failed the test before a job.
    Quarantined,
    /// A process outside of jobs uses it.
    InUse,
}

impl UnavailableReason {
    /// All reasons.
    pub const ALL: [Self; 2] = [Self::Quarantined, Self::InUse];

    /// Returns its name in the database, the audit log and the metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Quarantined => "quarantined",
            Self::InUse => "in_use",
        }
    }
}

/// The state of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GpuAvailability {
    /// Allocated to a job.
    Busy,
    /// Available for jobs.
    Free,
    /// Quarantined or in use.
    Unavailable(UnavailableReason),
    /// Its worker is not connected.
    NotConnected,
}

impl GpuAvailability {
    /// All states.
    pub const ALL: [Self; 5] = [
        Self::Busy,
        Self::Free,
        Self::Unavailable(UnavailableReason::Quarantined),
        Self::Unavailable(UnavailableReason::InUse),
        Self::NotConnected,
    ];
}

/// The number of GPUs in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GpuTally([u32; GpuAvailability::ALL.len()]);

impl GpuTally {
    /// Iterates over the states with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (GpuAvailability, u32)> {
        GpuAvailability::ALL.into_iter().zip(self.0)
    }
}

impl FromIterator<GpuAvailability> for GpuTally {
    fn from_iter<T: IntoIterator<Item = GpuAvailability>>(states: T) -> Self {
        let mut tally = Self::default();
        for state in states {
            let counts = tally.0.iter_mut().zip(GpuAvailability::ALL);
            counts.filter(|(_, counted)| *counted == state).for_each(|(count, _)| *count += 1);
        }
        tally
    }
}

impl Gpu {
    /// Returns the state. Quarantined and in use take precedence over busy, because a running job keeps its GPUs.
    pub fn availability(&self, is_connected: bool, is_leased: bool) -> GpuAvailability {
        match (is_connected, &self.unavailable) {
            (false, _) => GpuAvailability::NotConnected,
            (true, Some(unavailable)) => GpuAvailability::Unavailable(unavailable.reason),
            (true, None) if is_leased => GpuAvailability::Busy,
            (true, None) => GpuAvailability::Free,
        }
    }
}

/// An agent's report on a GPU: why jobs cannot use it, or that they can.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuReport {
    /// The GPU's ID.
    pub uuid: String,
    /// The reason; none if jobs can use it.
    pub unavailable: Option<Unavailable>,
}

/// Returns the GPUs that the reports change, each with its report. Unknown IDs are ignored, GPUs without a report stay
/// unchanged, and of two reports on one GPU the first counts.
pub fn changed_gpus<'g>(
    gpus: &'g [Gpu],
    reports: &'g [GpuReport],
) -> impl Iterator<Item = (&'g Gpu, &'g Option<Unavailable>)> {
    let with_report =
        |gpu: &'g Gpu| reports.iter().find(|report| report.uuid == gpu.uuid).map(|report| (gpu, &report.unavailable));
    gpus.iter().filter_map(with_report).filter(|(gpu, unavailable)| gpu.unavailable != **unavailable)
}

/// How much a report changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GpuReportChange {
    /// Nothing.
    Unchanged,
    /// Only the details of an unavailable GPU, such as another process.
    DetailOnly,
    /// A GPU became unavailable, available, or unavailable for another kind of reason.
    State,
}

/// Returns how much the reports change.
pub fn report_change(gpus: &[Gpu], reports: &[GpuReport]) -> GpuReportChange {
    let reason = |unavailable: &Option<Unavailable>| unavailable.as_ref().map(|unavailable| unavailable.reason);
    let change = |(gpu, unavailable): (&Gpu, &Option<Unavailable>)| {
        if reason(&gpu.unavailable) == reason(unavailable) {
            GpuReportChange::DetailOnly
        } else {
            GpuReportChange::State
        }
    };
    changed_gpus(gpus, reports).map(change).max().unwrap_or(GpuReportChange::Unchanged)
}

/// Returns the GPUs after the reports.
pub fn apply_reports(gpus: &[Gpu], reports: &[GpuReport]) -> Vec<Gpu> {
    let with_report = |gpu: &Gpu| match changed_gpus(std::slice::from_ref(gpu), reports).next() {
        Some((_, unavailable)) => Gpu { unavailable: unavailable.clone(), ..gpu.clone() },
        None => gpu.clone(),
    };
    gpus.iter().map(with_report).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fixtures::{gpus, unavailable};

    fn report(uuid: &str, unavailable: Option<Unavailable>) -> GpuReport {
        GpuReport { uuid: uuid.to_owned(), unavailable }
    }

    #[test]
    fn gpu_reports_are_compared_with_known_state() {
        let mut known = gpus(1, &[80, 80]);
        known[1].unavailable = Some(unavailable("XID 79"));
        let (first, other) =
            (|unavailable| report("GPU-1-0", unavailable), |unavailable| report("GPU-1-1", unavailable));
        let (old, new) = (|| Some(unavailable("XID 79")), || Some(unavailable("XID 48")));
        let rows: [(&[GpuReport], &[&str], GpuReportChange); 9] = [
            (&[], &[], GpuReportChange::Unchanged),
            (&[first(None), other(old())], &[], GpuReportChange::Unchanged),
            (&[first(new())], &["GPU-1-0"], GpuReportChange::State),
            (&[other(None)], &["GPU-1-1"], GpuReportChange::State),
            (&[other(new())], &["GPU-1-1"], GpuReportChange::DetailOnly),
            (&[report("GPU-9-9", new())], &[], GpuReportChange::Unchanged),
            (&[first(None), first(new())], &[], GpuReportChange::Unchanged),
            (&[other(None), first(new())], &["GPU-1-0", "GPU-1-1"], GpuReportChange::State),
            (&[other(new()), first(new())], &["GPU-1-0", "GPU-1-1"], GpuReportChange::State),
        ];
        for (n, (reports, expected, change)) in rows.into_iter().enumerate() {
            let found: Vec<&str> = changed_gpus(&known, reports).map(|(gpu, _)| gpu.uuid.as_str()).collect();
            assert_eq!((found.as_slice(), report_change(&known, reports)), (expected, change), "row {n}");
        }
        let in_use = Unavailable { reason: UnavailableReason::InUse, ..unavailable("XID 79") };
        assert_eq!(
            report_change(&known, &[other(Some(in_use))]),
            GpuReportChange::State,
            "another reason with the same details"
        );
    }

    #[test]
    fn gpu_availability_table() {
        let free = gpus(1, &[80]).remove(0);
        let quarantined = Gpu { unavailable: Some(unavailable("XID 79")), ..free.clone() };
        let reason = quarantined.unavailable.as_ref().map(|unavailable| unavailable.reason).expect("it is unavailable");
        for is_leased in [false, true] {
            assert_eq!(
                quarantined.availability(true, is_leased),
                GpuAvailability::Unavailable(reason),
                "also while a job has it"
            );
            assert_eq!(
                [&free, &quarantined].map(|gpu| gpu.availability(false, is_leased)),
                [GpuAvailability::NotConnected; 2]
            );
        }
        assert_eq!(
            [true, false].map(|is_leased| free.availability(true, is_leased)),
            [GpuAvailability::Busy, GpuAvailability::Free]
        );
    }
}
