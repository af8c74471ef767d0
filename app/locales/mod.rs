//! Every sentence that the dashboard shows, by page. A language is one constant: a missing sentence does not compile.
//!
//! Words of pages that only the server renders (`ui/plain.rs`) are not in the browser's half.
//!
//! Machine words (status words of the API, ids, commands) are not translated; their display words are.

mod en;
mod en_gpus;
mod en_pages;
#[cfg(feature = "ssr")]
mod en_plain;
mod en_token;
mod gpus;
mod jobs;
#[cfg(feature = "ssr")]
mod plain;
mod token;

pub(crate) use en::EN;
pub(crate) use gpus::Gpus;
#[cfg(feature = "ssr")]
pub(crate) use jobs::Train;
pub(crate) use jobs::{Job, Jobs, Log};
#[cfg(feature = "ssr")]
pub(crate) use plain::Plain;
pub(crate) use token::WorkerToken;

/// A sentence.
pub(crate) type Text = &'static str;
/// A sentence about a number.
pub(crate) type Count = fn(u64) -> String;
/// A sentence about a name.
pub(crate) type Named = fn(&str) -> String;

/// A language.
pub(crate) struct Messages {
    pub common: Common,
    pub nav: Nav,
    pub time: TimeWords,
    pub status: StatusWords,
    pub overview: Overview,
    pub jobs: Jobs,
    pub job: Job,
    pub log: Log,
    pub workers: Workers,
    pub worker: Worker,
    pub token: WorkerToken,
    pub gpus: Gpus,
    pub flash: FlashWords,
    pub problem: ProblemWords,
    #[cfg(feature = "ssr")]
    pub plain: Plain,
}

pub(crate) struct Common {
    pub product: Text,
    pub skip_to_content: Text,
    pub copy: Text,
    pub copied: Text,
    pub cancel: Text,
    pub dismiss: Text,
    pub all: Text,
    pub newer: Text,
    pub older: Text,
    pub optional: Text,
    pub of: fn(&str, &str) -> String,
    pub title: Named,
    pub download: Named,
}

pub(crate) struct Nav {
    pub main: Text,
    pub overview: Text,
    pub jobs: Text,
    pub train: Text,
    pub train_short: Text,
    pub administration: Text,
    pub workers: Text,
    pub sign_out: Text,
    pub account: Text,
    pub people: Text,
    pub secrets: Text,
    pub menu: Text,
    pub theme: Text,
    pub theme_light: Text,
    pub theme_system: Text,
    pub theme_dark: Text,
    pub live: Text,
    pub live_hint: Text,
    pub connecting: Text,
    pub reconnecting: Text,
    pub offline_since: Named,
    pub offline_hint: Text,
    pub version: Named,
}

pub(crate) struct TimeWords {
    pub just_now: Text,
    pub seconds: Text,
    pub minutes: Text,
    pub hours: Text,
    pub days: Text,
    pub ago: Named,
    pub never: Text,
}

pub(crate) struct StatusWords {
    pub connecting: Text,
    pub idle: Text,
    pub busy: Text,
    pub draining: Text,
    pub offline: Text,
    pub never_connected: Text,
    pub queued: Text,
    pub offered: Text,
    pub starting: Text,
    pub running: Text,
    pub cancelling: Text,
    pub completed: Text,
    pub failed: Text,
    pub cancelled: Text,
    pub lost: Text,
    pub expired: Text,
    pub ephemeral: Text,
    pub persistent: Text,
    pub undecided_type: Text,
    pub target_auto: Text,
    pub target_worker: Text,
    pub target_local: Text,
    pub kind_final: Text,
    pub kind_checkpoint: Text,
    pub kind_sample: Text,
    pub kind_other: Text,
}

pub(crate) struct Overview {
    pub title: Text,
    pub disk_full: Text,
    pub workers_online: Text,
    pub workers_of: Count,
    pub gpus: Text,
    pub gpus_busy: Count,
    pub running: Text,
    pub waiting: Text,
    pub failed: Text,
    pub ended_well: Count,
    pub now_running: Text,
    pub nothing_running: Text,
    pub nothing_running_hint: Text,
    pub recent: Text,
    pub all_jobs: Text,
    pub fleet: Text,
    pub all_workers: Text,
    pub start_title: Text,
    pub start_intro: Text,
    pub step_worker: Text,
    pub step_worker_text: Text,
    pub step_connect: Text,
    pub step_connect_text: Text,
    pub step_job: Text,
    pub step_job_text: Text,
    pub done: Text,
}

pub(crate) struct Workers {
    pub title: Text,
    pub intro: Text,
    pub caption: Text,
    pub create: Text,
    pub search: Text,
    pub search_hint: Text,
    pub filter: Text,
    pub worker: Text,
    pub status: Text,
    pub gpu: Text,
    pub kind: Text,
    pub labels: Text,
    pub job: Text,
    pub seen: Text,
    pub no_gpu: Text,
    pub no_job: Text,
    pub more_jobs: Count,
    pub none_yet: Text,
    pub none_yet_hint: Text,
    pub none_match: Text,
    pub none_match_hint: Text,
    pub clear: Text,
    pub total: Count,
}

pub(crate) struct Worker {
    pub drain: Text,
    pub drain_confirm: Text,
    pub drain_text: Text,
    pub drain_ephemeral_text: Text,
    pub resume: Text,
    pub delete: Text,
    pub drain_wished: Text,
    pub unverified: Text,
    pub unverified_hint: Text,
    pub unfit: Text,
    pub unfit_because: Named,
    pub facts: Text,
    pub gpus: Text,
    pub accelerator: Text,
    pub memory_each: Text,
    pub driver: Text,
    pub runtime: Text,
    pub host: Text,
    pub agent: Text,
    pub kind: Text,
    pub created: Text,
    pub seen: Text,
    pub seen_from: Text,
    pub status_since: Text,
    pub labels: Text,
    pub no_labels: Text,
    pub jobs: Text,
    pub no_jobs: Text,
    pub no_jobs_hint: Text,
    pub token_title: Text,
    pub token_text: Text,
    pub token: Text,
    pub connect_title: Text,
    pub connect_text: Text,
    pub shell: Text,
    pub environment: Text,
    pub environment_hint: Text,
    pub fingerprint_hint: Text,
    pub waiting: Text,
    pub waiting_hint: Text,
    pub connected: Text,
    pub connected_hint: Text,
    pub first_job: Text,
    pub causes_title: Text,
    pub causes: &'static [Text],
    pub token_lost: Text,
}

pub(crate) struct FlashWords {
    pub signed_out: Text,
    pub worker_deleted: Text,
    pub worker_draining: Text,
    pub worker_resumed: Text,
    pub job_submitted: Text,
    pub job_cancelled: Text,
    pub token_revoked: Text,
    pub password_changed: Text,
    pub session_ended: Text,
    pub confirmed: Text,
    pub person_changed: Text,
    pub secret_kept: Text,
    pub secret_gone: Text,
}

pub(crate) struct ProblemWords {
    pub title: Text,
    pub signed_out: Text,
    pub signed_out_text: Text,
    pub forbidden: Text,
    pub not_found: Text,
    pub not_found_text: Text,
    pub not_found_page: Text,
    pub not_found_page_text: Text,
    pub no_answer: Text,
    pub no_answer_text: Text,
    pub retry: Text,
    pub sign_in: Text,
    pub home: Text,
    pub request_id: Named,
}
