//! Flash messages: shown once, on the page after a form. The form's handler creates one, and the server stores it for
//! the next page. New tokens are passed this way, because URLs must not contain secrets.

use std::collections::BTreeMap;

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use crate::domain::ids::WorkerId;
use crate::protocol::access::CreatedToken;
use crate::protocol::access::factors::RecoveryCodes;
use crate::protocol::problem::Problem;
use crate::protocol::workers::CreatedWorker;
use crate::ui::locales::Language;
use crate::ui::locales::sentence::Text;

/// A message for the next page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flash {
    /// A worker was created; its page shows the token and the methods to start an agent with it.
    Created {
        /// The API's response.
        worker: CreatedWorker,
        /// Complete commands or files to copy.
        start_methods: Vec<StartMethod>,
    },
    /// An API token was created; the next page shows it.
    TokenMade(CreatedToken),
    /// New recovery codes were created; the next page shows them.
    RecoveryCodes(RecoveryCodes),
    /// A form was rejected.
    Problem {
        /// The form.
        form: FormName,
        /// The reason.
        #[serde(with = "problem_with_params")]
        problem: Problem,
        /// The submitted values without secrets, to fill the form again.
        fields: BTreeMap<String, String>,
    },
    /// A change was made.
    Notice {
        /// The change.
        code: FlashNotice,
    },
    /// A change was made that can be undone.
    Done {
        /// The change.
        code: FlashNotice,
        /// How to undo it.
        undo: Undo,
    },
    /// A bulk action was performed. The texts are already in the user's language.
    Several {
        /// How many items were changed.
        text: String,
        /// The rejected items: one line per reason.
        rejected: Vec<String>,
        /// How to undo it, if possible.
        undo: Option<Undo>,
    },
}

/// Serializes a problem together with its parameters, by which a page finds the invalid field;
/// its own format omits them.
mod problem_with_params {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::protocol::problem::Problem;

    pub(super) fn serialize<S: Serializer>(problem: &Problem, serializer: S) -> Result<S::Ok, S::Error> {
        (problem, &problem.params).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Problem, D::Error> {
        let (problem, params) = <(Problem, BTreeMap<String, String>)>::deserialize(deserializer)?;
        Ok(Problem { params, ..problem })
    }
}

/// A form that undoes a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undo {
    /// The URL to which the form posts.
    pub form: String,
    /// The fields of the form: the previous values, or the IDs of the items.
    pub fields: Vec<(String, String)>,
}

/// The response to a form that a script has posted: the message that the next page would show, in the user's language.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormResponse {
    /// The message.
    pub text: String,
    /// How to undo the change, if possible.
    pub undo: Option<Undo>,
}

impl Undo {
    /// Resumes a worker to undo a drain.
    pub fn drain(id: &WorkerId) -> Self {
        Self::for_worker(id, "resume")
    }

    /// Drains a worker to undo a resume.
    pub fn resume(id: &WorkerId) -> Self {
        Self::for_worker(id, "drain")
    }

    fn for_worker(id: &WorkerId, action: &str) -> Self {
        Self::from_form(format!("/ui/workers/{id}/{action}"), Vec::new())
    }

    /// Restores what a form has changed.
    pub fn from_form(form: String, fields: Vec<(String, String)>) -> Self {
        Self { form, fields }
    }
}

impl FlashNotice {
    /// The sentence of a successful form.
    pub(crate) fn text(self, language: &'static Language) -> Text {
        let words = &language.flash;
        match self {
            FlashNotice::SignedOut => words.signed_out,
            FlashNotice::WorkerDeleted => words.worker_deleted,
            FlashNotice::WorkerDraining => words.worker_draining,
            FlashNotice::WorkerResumed => words.worker_resumed,
            FlashNotice::JobSubmitted => words.job_submitted,
            FlashNotice::JobCancelled => words.job_cancelled,
            FlashNotice::JobDescribed => words.job_described,
            FlashNotice::JobStarred => words.job_starred,
            FlashNotice::JobUnstarred => words.job_unstarred,
            FlashNotice::ViewSaved => words.view_saved,
            FlashNotice::ViewDeleted => words.view_deleted,
            FlashNotice::PriorityChanged => words.priority_changed,
            FlashNotice::TokenRevoked => words.token_revoked,
            FlashNotice::PasswordChanged => words.password_changed,
            FlashNotice::PasswordReset => words.password_reset,
            FlashNotice::SessionEnded => words.session_ended,
            FlashNotice::Confirmed => words.confirmed,
            FlashNotice::UserChanged | FlashNotice::WorkerChanged | FlashNotice::ShareRulesSaved => words.changed,
            FlashNotice::FactorAdded => words.factor_added,
            FlashNotice::FactorRemoved => words.factor_removed,
            FlashNotice::SecretSaved => words.secret_saved,
            FlashNotice::SecretDeleted => words.secret_deleted,
            FlashNotice::TeamSaved => words.team_saved,
            FlashNotice::TeamDeleted => words.team_deleted,
            FlashNotice::ConfigStored => words.config_stored,
            FlashNotice::TokenConflictResolved => language.token.conflict_settled,
        }
    }
}

#[cfg(feature = "ssr")]
impl FormResponse {
    /// Returns a message in the user's language, or the problem that it reports. Messages with secrets, such as new tokens,
    /// are only for pages: `None`.
    pub fn from_flash(flash: Flash, locale: super::prefs::Locale) -> Option<Result<Self, Problem>> {
        let language = Language::of(locale);
        let (text, undo) = match flash.for_page(locale) {
            Flash::Notice { code } => (code.text(language).to_owned(), None),
            Flash::Done { code, undo } => (code.text(language).to_owned(), Some(undo)),
            Flash::Several { text, rejected, undo } => ([vec![text], rejected].concat().join(" "), undo),
            Flash::Problem { problem, .. } => return Some(Err(problem)),
            Flash::Created { .. } | Flash::TokenMade(_) | Flash::RecoveryCodes(_) => return None,
        };
        Some(Ok(Self { text, undo }))
    }
}

#[cfg(feature = "ssr")]
impl Flash {
    /// Rewrites a problem for users of pages.
    #[must_use]
    pub fn for_page(self, locale: super::prefs::Locale) -> Self {
        match self {
            Self::Problem { form, problem, fields } => {
                Self::Problem { form, problem: super::page_problem::word_for_page(problem, locale), fields }
            }
            other => other,
        }
    }
}

/// A method to start a worker's agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartMethod {
    /// The kind of host or shell.
    pub kind: StartMethodKind,
    /// The text to copy.
    pub text: String,
}

/// Where an agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartMethodKind {
    /// A shell, to try it.
    Shell,
    /// A systemd service.
    Systemd,
    /// A container.
    Docker,
    /// A pod of `RunPod`.
    Runpod,
    /// An instance of Vast.ai.
    Vast,
    /// A file of environment variables.
    Environment,
}

/// The forms that can be rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FormName {
    /// `POST /ui/login` and the routes below it.
    Login,
    /// `POST /ui/workers`, `POST /ui/workers/{id}/edit`.
    Worker,
    /// `POST /ui/jobs`, `POST /ui/jobs/{id}/describe`.
    Job,
    /// `POST /ui/account/tokens`.
    Token,
    /// `POST /ui/account/password`, `POST /ui/confirm`, `POST /ui/users/{id}/password`.
    Password,
    /// `POST /ui/account/totp`, `POST /ui/account/passkeys` and the routes below them,
    /// `POST /ui/account/recovery-codes`, `POST /ui/users/{id}/factors/remove`.
    Factor,
    /// `POST /ui/users`, `POST /ui/users/{id}`.
    User,
    /// `POST /ui/jobs/views`.
    View,
    /// `POST /ui/secrets`.
    Secret,
    /// `POST /ui/teams` and the routes below it.
    Team,
    /// `POST /ui/shares/rules`.
    ShareRules,
    /// `POST /ui/configs`, `POST /ui/configs/{name}`.
    Config,
    /// A button: drain, resume, delete or cancel.
    Action,
}

/// A change that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlashNotice {
    /// The user signed out.
    SignedOut,
    /// A worker was deleted.
    WorkerDeleted,
    /// The settings of a worker were changed.
    WorkerChanged,
    /// A worker is draining.
    WorkerDraining,
    /// A worker was resumed.
    WorkerResumed,
    /// A job was submitted.
    JobSubmitted,
    /// A job is being cancelled.
    JobCancelled,
    /// The name, the tags or the notes of a job were changed.
    JobDescribed,
    /// The user has starred a job.
    JobStarred,
    /// The user has removed their star of a job.
    JobUnstarred,
    /// A view of the list of jobs was saved.
    ViewSaved,
    /// A saved view of the list of jobs was deleted.
    ViewDeleted,
    /// The priority of a job was changed.
    PriorityChanged,
    /// An API token was revoked.
    TokenRevoked,
    /// The alert about two agents with one token was resolved.
    TokenConflictResolved,
    /// The user's password was changed.
    PasswordChanged,
    /// An admin set the password of a user.
    PasswordReset,
    /// A browser session was ended.
    SessionEnded,
    /// The user confirmed their password.
    Confirmed,
    /// A team or a member of it was created or changed.
    TeamSaved,
    /// A team was deleted.
    TeamDeleted,
    /// The rules of shares were changed.
    ShareRulesSaved,
    /// A user was created or changed.
    UserChanged,
    /// A second factor was added.
    FactorAdded,
    /// A second factor was removed.
    FactorRemoved,
    /// A secret was stored.
    SecretSaved,
    /// A secret was deleted.
    SecretDeleted,
    /// A revision of a configuration was stored.
    ConfigStored,
}

/// The message of this page, until it is dismissed or another page is opened.
#[derive(Clone, Copy)]
pub(crate) struct CurrentFlash(pub RwSignal<Option<Flash>>);

/// Returns why a form was rejected and its submitted values, if it was.
#[cfg(feature = "ssr")]
pub(crate) fn form_problem(form: FormName) -> (Option<Problem>, BTreeMap<String, String>) {
    let current = use_context::<CurrentFlash>().and_then(|flash| flash.0.get_untracked());
    match current {
        Some(Flash::Problem { form: rejected_form, problem, fields }) if rejected_form == form => {
            (Some(problem), fields)
        }
        _ => (None, BTreeMap::new()),
    }
}
