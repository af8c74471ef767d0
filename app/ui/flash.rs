//! What the server says once, on the page after a form: made by the form's handler, kept with the session
//! for the next page, and gone after it. A new token travels this way because an address is no place for a secret.

use std::collections::BTreeMap;

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use crate::domain::ids::WorkerId;
use crate::protocol::access::CreatedToken;
use crate::protocol::access::factors::RecoveryCodes;
use crate::protocol::problem::Problem;
use crate::protocol::workers::CreatedWorker;

/// The one thing to say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flash {
    /// A worker was made: its page shows the token, and the ways to start an agent with it.
    Created {
        /// As the API tells it.
        worker: CreatedWorker,
        /// Each whole, to be copied.
        ways: Vec<StartMethod>,
    },
    /// An API token was made: the next page shows it.
    TokenMade(CreatedToken),
    /// New recovery codes: the next page shows them.
    RecoveryCodes(RecoveryCodes),
    /// A form was refused.
    Problem {
        /// Which form.
        form: FormName,
        /// Why.
        #[serde(with = "whole")]
        problem: Problem,
        /// What was typed, to fill the form again; never a secret.
        fields: BTreeMap<String, String>,
    },
    /// Something was done.
    Notice {
        /// What.
        code: FlashNotice,
    },
    /// Something was done that can be taken back.
    Done {
        /// What.
        code: FlashNotice,
        /// How to take it back.
        undo: Undo,
    },
    /// The same was done to several, in the reader's words already.
    Several {
        /// How many it was done to.
        text: String,
        /// Which it was not done to, and why: a line for each reason.
        refused: Vec<String>,
        /// How to take it back, if that can be.
        undo: Option<Undo>,
    },
}

/// A problem with what it carries for the page's own sentences, which its document has as fields of their own.
mod whole {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::protocol::problem::Problem;

    pub(super) fn serialize<S: Serializer>(problem: &Problem, serializer: S) -> Result<S::Ok, S::Error> {
        (problem, &problem.params).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Problem, D::Error> {
        let (problem, with) = <(Problem, BTreeMap<String, String>)>::deserialize(deserializer)?;
        Ok(Problem { params: with, ..problem })
    }
}

/// How to take something back: a form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undo {
    /// Its address.
    pub form: String,
    /// What it sends: what was before, or to which of them.
    pub fields: Vec<(String, String)>,
    /// The address of the API that does the same when something without a body is posted there, and what is said then.
    /// Without one the browser sends the form too, and the next page says what came of it.
    pub rest: Option<(String, FlashNotice)>,
}

impl Undo {
    /// Takes a drain back.
    pub fn drain(id: &WorkerId) -> Self {
        Self::of_worker(id, "resume", FlashNotice::WorkerResumed)
    }

    /// Takes the end of a drain back.
    pub fn resume(id: &WorkerId) -> Self {
        Self::of_worker(id, "drain", FlashNotice::WorkerDraining)
    }

    fn of_worker(id: &WorkerId, verb: &str, code: FlashNotice) -> Self {
        let rest = format!("/api/admin/workers/{id}/{verb}");
        Self { form: format!("/ui/workers/{id}/{verb}"), fields: Vec::new(), rest: Some((rest, code)) }
    }

    /// Sets what a form had changed as it was.
    pub fn from_form(form: String, fields: Vec<(String, String)>) -> Self {
        Self { form, fields, rest: None }
    }
}

#[cfg(feature = "ssr")]
impl Flash {
    /// As the reader is told it.
    #[must_use]
    pub fn localized(self, locale: super::prefs::Locale) -> Self {
        match self {
            Self::Problem { form, problem, fields } => {
                Self::Problem { form, problem: super::localized_problem::localize(problem, locale), fields }
            }
            other => other,
        }
    }
}

/// A way to start a worker's agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartMethod {
    /// Which.
    pub kind: StartMethodKind,
    /// What to paste there.
    pub text: String,
}

/// Where an agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartMethodKind {
    /// In a shell, to try it.
    Shell,
    /// As a service of systemd.
    Systemd,
    /// In a container.
    Docker,
    /// On a pod of `RunPod`.
    Runpod,
    /// On an instance of Vast.ai.
    Vast,
    /// Wherever an environment is read from a file.
    Environment,
}

/// The forms that can be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FormName {
    /// `POST /ui/login` and those below it.
    Login,
    /// `POST /ui/workers`, `POST /ui/workers/{id}/edit`.
    Worker,
    /// `POST /ui/jobs`.
    Job,
    /// `POST /ui/account/tokens`.
    Token,
    /// `POST /ui/account/password`, `POST /ui/confirm`, `POST /ui/users/{id}/password`.
    Password,
    /// `POST /ui/account/totp`, `POST /ui/account/passkeys` and those below them, `POST /ui/account/recovery-codes`,
    /// `POST /ui/users/{id}/factors/remove`.
    Factor,
    /// `POST /ui/users`, `POST /ui/users/{id}`.
    Person,
    /// `POST /ui/secrets`.
    Secret,
    /// `POST /ui/configs`, `POST /ui/configs/{name}`.
    Config,
    /// A button: drain, resume, delete, cancel.
    Action,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlashNotice {
    /// The reader signed out.
    SignedOut,
    /// A worker was deleted.
    WorkerDeleted,
    /// What was set of a worker was changed.
    WorkerChanged,
    /// A worker takes nothing new.
    WorkerDraining,
    /// A drain was undone.
    WorkerResumed,
    /// A job was submitted.
    JobSubmitted,
    /// A job is being cancelled.
    JobCancelled,
    /// A job is more or less urgent.
    PriorityChanged,
    /// An API token was revoked.
    TokenRevoked,
    /// The alarm about two agents with one token was seen to.
    AlarmSettled,
    /// The reader's password was changed.
    PasswordChanged,
    /// An admin set somebody's password.
    PasswordReset,
    /// A browser was signed out.
    SessionEnded,
    /// The reader gave their password once more.
    Confirmed,
    /// Somebody was added, or what they may do was changed.
    PersonChanged,
    /// The reader has one second factor more.
    FactorAdded,
    /// A second factor was removed.
    FactorRemoved,
    /// A secret is kept.
    SecretKept,
    /// A secret is gone.
    SecretGone,
    /// A configuration has a new revision.
    ConfigStored,
}

/// The flash of this page, until it is dismissed or another page is opened.
#[derive(Clone, Copy)]
pub(crate) struct CurrentFlash(pub RwSignal<Option<Flash>>);

/// What the server refused of one form, if it did.
#[cfg(feature = "ssr")]
pub(crate) fn form_problem(form: FormName) -> (Option<Problem>, BTreeMap<String, String>) {
    let current = use_context::<CurrentFlash>().and_then(|flash| flash.0.get_untracked());
    match current {
        Some(Flash::Problem { form: of, problem, fields }) if of == form => (Some(problem), fields),
        _ => (None, BTreeMap::new()),
    }
}
