//! English: what every page shares.

use super::en_gpus::GPUS;
use super::en_pages::{JOB, JOBS, LOG, OVERVIEW, WORKER, WORKERS};
use super::en_token::TOKEN;
use super::{Common, FlashWords, Messages, Nav, ProblemWords, StatusWords, TimeWords};

/// English.
pub(crate) const EN: Messages = Messages {
    common: COMMON,
    nav: NAV,
    time: TIME,
    status: STATUS,
    overview: OVERVIEW,
    jobs: JOBS,
    job: JOB,
    log: LOG,
    workers: WORKERS,
    worker: WORKER,
    token: TOKEN,
    gpus: GPUS,
    flash: FLASH,
    problem: PROBLEM,
    #[cfg(feature = "ssr")]
    plain: super::en_plain::PLAIN,
};

const COMMON: Common = Common {
    product: "SimpleTuner",
    skip_to_content: "Skip to content",
    copy: "Copy",
    copied: "Copied",
    cancel: "Cancel",
    dismiss: "Dismiss",
    all: "All",
    newer: "Newest",
    older: "Older",
    optional: "optional",
    of: |part, whole| format!("{part} of {whole}"),
    title: |page| format!("{page} · SimpleTuner"),
    download: |file| format!("Download {file}"),
};

const NAV: Nav = Nav {
    main: "Main",
    overview: "Overview",
    jobs: "Jobs",
    train: "Train in Cloud",
    train_short: "Train",
    administration: "Administration",
    workers: "Workers",
    sign_out: "Sign out",
    account: "Account",
    people: "People",
    secrets: "Secrets",
    menu: "Menu",
    theme: "Theme",
    theme_light: "Light",
    theme_system: "As the system",
    theme_dark: "Dark",
    live: "Live",
    live_hint: "This page updates by itself.",
    connecting: "Connecting",
    reconnecting: "Reconnecting",
    offline_since: |time| format!("Offline since {time}"),
    offline_hint: "What you see may be old. The page keeps trying to reconnect.",
    version: |version| format!("Version {version}"),
};

const TIME: TimeWords = TimeWords {
    just_now: "just now",
    seconds: "s",
    minutes: "min",
    hours: "h",
    days: "d",
    ago: |span| format!("{span} ago"),
    never: "never",
};

const STATUS: StatusWords = StatusWords {
    connecting: "Connecting",
    idle: "Idle",
    busy: "Busy",
    draining: "Draining",
    offline: "Offline",
    never_connected: "Never connected",
    queued: "Queued",
    offered: "Offered",
    starting: "Starting",
    running: "Running",
    cancelling: "Cancelling",
    completed: "Completed",
    failed: "Failed",
    cancelled: "Cancelled",
    lost: "Lost",
    expired: "Not taken",
    ephemeral: "Ephemeral",
    persistent: "Persistent",
    undecided_type: "Decided by the agent",
    target_auto: "Auto",
    target_worker: "Worker",
    target_local: "Local",
    kind_final: "Final",
    kind_checkpoint: "Checkpoint",
    kind_sample: "Sample",
    kind_other: "Other",
};

const FLASH: FlashWords = FlashWords {
    signed_out: "You are signed out.",
    worker_deleted: "The worker was deleted and its token no longer works.",
    worker_draining: "The worker takes no new jobs.",
    worker_resumed: "The worker takes jobs again.",
    job_submitted: "The job was submitted.",
    job_cancelled: "The job is being cancelled.",
    token_revoked: "The token opens nothing any more.",
    password_changed: "Your password is changed. Other browsers are signed out.",
    session_ended: "That browser is signed out.",
    confirmed: "Thank you. Now do it once more.",
    person_changed: "It is changed.",
    secret_kept: "The secret is kept. Nobody can read it any more; jobs are given it.",
    secret_gone: "The secret is gone. Jobs that start from now on do not have it.",
};

const PROBLEM: ProblemWords = ProblemWords {
    title: "This could not be shown",
    signed_out: "Your session has ended",
    signed_out_text: "Sign in again to go on where you were.",
    forbidden: "This needs more rights",
    not_found: "There is no such thing here",
    not_found_text: "It may have been deleted, or the address is not quite right.",
    not_found_page: "There is no such page",
    not_found_page_text: "The address leads nowhere. Perhaps it was typed by hand, or the page has moved.",
    no_answer: "The server does not answer",
    no_answer_text: "It may be restarting, or the network is down. Nothing is lost: jobs go on without this page.",
    retry: "Try again",
    sign_in: "Sign in",
    home: "Go to the overview",
    request_id: |id| format!("Request {id}"),
};
