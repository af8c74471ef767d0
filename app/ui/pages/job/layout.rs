//! What the overview of a job shows: what its state has, and nothing else.

use crate::protocol::status::JobStatus;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum OverviewPanel {
    /// Why the job is pending.
    Explanation,
    /// Progress, and the newest values of the main metrics.
    Progress,
    Error,
    Weights,
    /// The last values of the main metrics.
    Readings,
    Charts,
    /// The end of the log, which grows.
    LogTail,
    /// The lines of the log around the error.
    LogExcerpt,
    Samples,
    /// The checkpoints from which a retry can resume.
    Checkpoints,
    Attempts,
    Facts,
    /// The jobs that it comes from, and those that come from it.
    Family,
}

/// The panels above, beside, and at the side of each other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct OverviewLayout {
    pub top: Vec<OverviewPanel>,
    pub main: Vec<OverviewPanel>,
    pub side: Vec<OverviewPanel>,
}

/// What a job has that its overview may show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent fact")]
pub(super) struct JobContents {
    pub status: JobStatus,
    pub attempts: usize,
    pub has_progress: bool,
    /// Whether the worker's agent sends metrics, samples and the log.
    pub sends_output: bool,
    pub has_samples: bool,
    pub has_weights: bool,
    pub has_checkpoints: bool,
    pub has_family: bool,
}

/// Returns the panels of a job.
pub(super) fn overview_layout(job: JobContents) -> OverviewLayout {
    use OverviewPanel::{
        Attempts, Charts, Checkpoints, Error, Explanation, Facts, Family, LogExcerpt, LogTail, Progress, Readings,
        Samples, Weights,
    };

    let choose = |panels: &[(OverviewPanel, bool)]| -> Vec<OverviewPanel> {
        panels.iter().filter(|(_, is_shown)| *is_shown).map(|(panel, _)| *panel).collect()
    };
    let metrics = job.has_progress;
    let has_log = job.attempts > 0 && job.sends_output;
    let several_attempts = (Attempts, job.attempts > 1);
    let (weights, samples) = ((Weights, job.has_weights), (Samples, job.has_samples));
    let checkpoints = (Checkpoints, job.has_checkpoints);
    let mut layout = match job.status {
        JobStatus::Queued => OverviewLayout {
            main: choose(&[(Explanation, true), (Attempts, job.attempts > 0)]),
            side: vec![Facts],
            ..OverviewLayout::default()
        },
        JobStatus::Offered => {
            OverviewLayout { main: choose(&[several_attempts]), side: vec![Facts], ..OverviewLayout::default() }
        }
        JobStatus::Starting | JobStatus::Running | JobStatus::Cancelling => OverviewLayout {
            top: choose(&[(Progress, metrics || job.sends_output)]),
            main: choose(&[(Charts, metrics), (LogTail, has_log), several_attempts]),
            side: choose(&[(Facts, true), samples]),
        },
        JobStatus::Failed => OverviewLayout {
            top: choose(&[weights]),
            main: choose(&[(Error, true), (LogExcerpt, has_log), several_attempts]),
            side: choose(&[(Readings, metrics), checkpoints, (Facts, true)]),
        },
        JobStatus::Completed => OverviewLayout {
            top: choose(&[weights]),
            main: choose(&[(Charts, metrics), samples, several_attempts]),
            side: choose(&[(Readings, metrics), (Facts, true)]),
        },
        JobStatus::Cancelled => OverviewLayout {
            top: choose(&[weights]),
            main: choose(&[(Charts, metrics), samples, several_attempts]),
            side: choose(&[(Readings, metrics), checkpoints, (Facts, true)]),
        },
    };
    layout.side.extend(job.has_family.then_some(Family));
    // Without a neighbor, the panels at the side have the width of the page.
    if layout.main.is_empty() {
        return OverviewLayout { main: layout.side, side: Vec::new(), ..layout };
    }
    layout
}

#[cfg(test)]
mod tests {
    use super::OverviewPanel::*;
    use super::*;

    const NOTHING: JobContents = JobContents {
        status: JobStatus::Queued,
        attempts: 0,
        has_progress: false,
        sends_output: true,
        has_samples: false,
        has_weights: false,
        has_checkpoints: false,
        has_family: false,
    };
    const ALL: JobContents = JobContents {
        attempts: 2,
        has_progress: true,
        has_samples: true,
        has_weights: true,
        has_checkpoints: true,
        has_family: true,
        ..NOTHING
    };

    fn panels(status: JobStatus, job: JobContents) -> [Vec<OverviewPanel>; 3] {
        let OverviewLayout { top, main, side } = overview_layout(JobContents { status, ..job });
        [top, main, side]
    }

    #[test]
    fn each_state_shows_what_it_has() {
        let expected: [(JobStatus, [&[OverviewPanel]; 3]); 8] = [
            (JobStatus::Queued, [&[], &[Explanation, Attempts], &[Facts, Family]]),
            (JobStatus::Offered, [&[], &[Attempts], &[Facts, Family]]),
            (JobStatus::Starting, [&[Progress], &[Charts, LogTail, Attempts], &[Facts, Samples, Family]]),
            (JobStatus::Running, [&[Progress], &[Charts, LogTail, Attempts], &[Facts, Samples, Family]]),
            (JobStatus::Cancelling, [&[Progress], &[Charts, LogTail, Attempts], &[Facts, Samples, Family]]),
            (JobStatus::Completed, [&[Weights], &[Charts, Samples, Attempts], &[Readings, Facts, Family]]),
            (JobStatus::Failed, [&[Weights], &[Error, LogExcerpt, Attempts], &[Readings, Checkpoints, Facts, Family]]),
            (JobStatus::Cancelled, [&[Weights], &[Charts, Samples, Attempts], &[Readings, Checkpoints, Facts, Family]]),
        ];
        assert_eq!(expected.len(), JobStatus::ALL.len());
        for (status, areas) in expected {
            assert_eq!(panels(status, ALL), areas.map(<[OverviewPanel]>::to_vec), "{status:?}");
        }
    }

    #[test]
    fn no_panel_is_empty() {
        let alone = [vec![], vec![Facts], vec![]];
        for status in [JobStatus::Offered, JobStatus::Completed, JobStatus::Cancelled] {
            assert_eq!(panels(status, NOTHING), alone, "{status:?}");
        }
        assert_eq!(panels(JobStatus::Queued, NOTHING), [vec![], vec![Explanation], vec![Facts]]);
        assert_eq!(panels(JobStatus::Starting, NOTHING), [vec![Progress], vec![Facts], vec![]]);
        assert_eq!(panels(JobStatus::Failed, NOTHING), [vec![], vec![Error], vec![Facts]]);
    }

    #[test]
    fn one_attempt_is_listed_only_while_the_job_waits_for_the_next() {
        for status in JobStatus::ALL.iter().copied() {
            let is_listed = panels(status, JobContents { attempts: 1, ..ALL }).concat().contains(&Attempts);
            assert_eq!(is_listed, status == JobStatus::Queued, "{status:?}");
        }
    }

    #[test]
    fn older_agents_send_no_log() {
        for status in JobStatus::ALL.iter().copied() {
            let older = JobContents { sends_output: false, has_progress: false, ..ALL };
            let shown = panels(status, older).concat();
            let needs_output = [Progress, Readings, Charts, LogTail, LogExcerpt];
            assert!(!shown.iter().any(|panel| needs_output.contains(panel)), "{status:?}: {shown:?}");
        }
    }
}
