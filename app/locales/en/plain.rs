//! English: pages that only the server renders.

use super::account::{FACTORS, NOTICES, PASSKEYS};
use super::bulk::BULK;
use super::configs::CONFIGS;
use super::count;
use super::desk::{AUDIT, REFUSED, SYSTEM, USAGE};
use super::job_pages::JOB_PAGES;
use super::train::TRAIN;
use super::worker_pages::WORKER_PAGES;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::plain::{Account, Confirm, Create, DeleteWorker, Login, People, Plain, Secrets};

pub(in crate::ui::locales) const PLAIN: Plain = Plain {
    preferences: super::habits::PREFERENCES,
    login: LOGIN,
    account: ACCOUNT,
    factors: FACTORS,
    passkeys: PASSKEYS,
    notices: NOTICES,
    people: PEOPLE,
    secrets: SECRETS,
    confirm: CONFIRM,
    train: TRAIN,
    job: JOB_PAGES,
    worker: WORKER_PAGES,
    configs: CONFIGS,
    create: CREATE,
    delete: DELETE,
    bulk: BULK,
    usage: USAGE,
    audit: AUDIT,
    system: SYSTEM,
    refused: REFUSED,
};

pub(super) const LOGIN: Login = Login {
    title: "Sign in",
    intro: "To the orchestrator of your training fleet.",
    name: "Name",
    password: "Password",
    submit: "Sign in",
    with_token: "With an API token",
    with_token_text: "Leave the name empty and paste the token as the password.",
    lost: "Password lost?",
    lost_text: "An admin can give you a new one.",
    setup_title: "Set up",
    setup_intro: "Nobody can sign in yet. Make yourself the first admin.",
    code: "Setup code",
    code_hint: "The server printed it to its log when it started. It works once.",
    name_hint: "Lower-case letters, digits, “.”, “_” and “-”.",
    password_hint: "At least 12 characters.",
    setup_submit: "Set up and sign in",
};

pub(super) const ACCOUNT: Account = Account {
    intro: "Your API tokens, your password, and the browsers in which you are signed in.",
    tokens: "API tokens",
    api: "What the API can do",
    no_tokens: "None yet. Scripts send one in the header “Authorization: Bearer …”.",
    everything: "Everything that you may do",
    used: "Last used",
    never_used: "Never used",
    ends: "ends",
    never_ends: "never expires",
    revoke: "Revoke",
    revoke_text: "Whoever sends it is refused from then on. It cannot be brought back.",
    revoke_confirm: "Revoke this token",
    new_token: "New API token",
    token_name: "What it is for",
    token_name_hint: "A name such as “ci”: lower-case letters, digits, “.”, “_” and “-”.",
    days: "Days until it ends",
    days_hint: "Empty for the server’s default, 90 days unless it is set otherwise.",
    never_expires: "No expiry",
    scopes: "What it may do",
    scopes_hint: "Nothing chosen is everything that you may do.",
    make: "Make token",
    made: Phrase("Your token “{0}”"),
    made_text: "Keep it now: it is shown only this once.",
    secret: "API token",
    password: "Password",
    old_password: "Password until now",
    new_password: "New password",
    change: "Change password",
    sessions: "Signed in",
    session_lengths: Phrase("A session ends after {0} without use, and {1} after you sign in."),
    this_browser: "This browser",
    end: "Sign out",
    end_text: "Whoever uses that browser has to sign in again.",
    end_confirm: "Sign this browser out",
};

pub(super) const PEOPLE: People = People {
    intro: "Who may use this server, and for what.",
    roles_title: "What the roles are",
    viewer: "sees every job and configuration, and changes nothing",
    researcher: "submits jobs, sees and cancels their own, and edits configurations",
    lead: "sees and cancels everybody's jobs too, and says what is urgent",
    admin: "does everything: workers, people, secrets for all, the audit trail",
    none: "Nobody matches",
    none_hint: "Other people are hidden by the filter.",
    added: "Added",
    shut_out: "not let in",
    add: "Add somebody",
    role: "Role",
    password_optional: "At least 12 characters. Without one they cannot sign in until you give them one.",
    add_submit: "Add",
    person_intro: "What they may do, and what is signed in as them.",
    access: "Access",
    shut: "Shut out",
    shut_text: "They are signed out everywhere at once, and their API tokens are refused. Their jobs go on.",
    shut_confirm: "Shut this person out",
    let_in: "Let in again",
    save: "Save",
    reset: "Set password",
    reset_text: "They are signed out everywhere, their API tokens are revoked, and the old password stops working.",
    reset_confirm: "Set this password",
    no_tokens: "No API tokens.",
    no_sessions: "Not signed in anywhere.",
};

pub(super) const SECRETS: Secrets = Secrets {
    intro: "Values that your jobs find in their environment, such as the token of a model hub. They are kept encrypted, and never shown again.",
    own: "Yours",
    none: "None yet.",
    shared: "For everybody's jobs",
    shared_text: "One of your own with the same name goes before it.",
    set: "Set",
    last_given: "last given to a job",
    never_given: "never given to a job",
    remove: "Remove",
    remove_text: "Its value is gone for good. No attempt that starts from then on is given it.",
    remove_confirm: "Remove this secret",
    keep_title: "Keep a secret",
    name: "Name",
    name_hint: "The name of the variable, such as HF_TOKEN or WANDB_API_KEY. One that is there already is replaced.",
    value: "Value",
    value_hint: "8 characters or more. Logs show stars in its place.",
    share: "For everybody's jobs",
    share_hint: "Every job is given it, whoever submits it.",
    keep: "Keep",
};

pub(super) const CONFIRM: Confirm = Confirm {
    title: "Is it you?",
    intro: "What you want to do takes your password once more. Nothing was done yet; do it again afterwards.",
    hint: "Or the API token, if you signed in with one. It counts for 15 minutes.",
    submit: "Confirm",
};

pub(super) const CREATE: Create = Create {
    title: "Create worker",
    intro: "Gives the machine a name and a token of its own. The next page shows the token once, with the command to run there.",
    name: "Name",
    name_hint: "Unique in the fleet, as you call the machine: gpu-worker-1.",
    kind: "Type",
    kind_hint: "What happens when a job ends.",
    persistent: "Stays and takes the next job. For machines of your own.",
    ephemeral: "Ends after one job. For rented machines.",
    labels: "Labels",
    labels_hint: "One “key=value” a field. Jobs choose workers by them.",
    advanced: "Limits of its token",
    networks: "Allowed networks",
    networks_hint: "Networks or addresses from which the agent may come, like 10.0.0.0/8. Empty for any.",
    submit: "Create worker",
};

pub(super) const DELETE: DeleteWorker = DeleteWorker {
    title: Phrase("Delete {0}?"),
    text: "Its token stops working at once and the worker disappears from the fleet. Its past jobs, their logs and files stay.",
    busy: count(
        "It holds a job now. That job goes back to the queue.",
        "It holds {0} jobs now. They go back to the queue.",
    ),
    confirm: "Delete this worker",
    keep: "Keep it",
};
