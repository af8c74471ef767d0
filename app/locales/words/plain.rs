//! The words of pages that only the server renders.

use super::account::{Factors, Notices, Passkeys};
use super::bulk::Bulk;
use super::configs::Configs;
use super::desk::{Audit, Refused, System, Usage};
use super::habits::Preferences;
use super::job_pages::JobPages;
use super::train::Train;
use super::worker_pages::WorkerPages;
use crate::ui::locales::sentence::{Count, Phrase, Text, words};

words! {
    pub(crate) Plain {
        preferences: Preferences,
        login: Login,
        account: Account,
        factors: Factors,
        passkeys: Passkeys,
        notices: Notices,
        people: People,
        secrets: Secrets,
        confirm: Confirm,
        train: Train,
        job: JobPages,
        worker: WorkerPages,
        configs: Configs,
        create: Create,
        delete: DeleteWorker,
        bulk: Bulk,
        usage: Usage,
        audit: Audit,
        system: System,
        refused: Refused,
    }

    pub(crate) Login {
        title: Text,
        intro: Text,
        name: Text,
        password: Text,
        submit: Text,
        with_token: Text,
        with_token_text: Text,
        lost: Text,
        lost_text: Text,
        setup_title: Text,
        setup_intro: Text,
        code: Text,
        code_hint: Text,
        name_hint: Text,
        password_hint: Text,
        setup_submit: Text,
    }

    pub(crate) Account {
        intro: Text,
        tokens: Text,
        api: Text,
        no_tokens: Text,
        everything: Text,
        used: Text,
        never_used: Text,
        ends: Text,
        never_ends: Text,
        revoke: Text,
        revoke_text: Text,
        revoke_confirm: Text,
        new_token: Text,
        token_name: Text,
        token_name_hint: Text,
        days: Text,
        days_hint: Text,
        never_expires: Text,
        scopes: Text,
        scopes_hint: Text,
        make: Text,
        made: Phrase,
        made_text: Text,
        secret: Text,
        password: Text,
        old_password: Text,
        new_password: Text,
        change: Text,
        sessions: Text,
        session_lengths: Phrase,
        this_browser: Text,
        end: Text,
        end_text: Text,
        end_confirm: Text,
    }

    pub(crate) People {
        intro: Text,
        roles_title: Text,
        viewer: Text,
        researcher: Text,
        lead: Text,
        admin: Text,
        none: Text,
        none_hint: Text,
        added: Text,
        shut_out: Text,
        add: Text,
        role: Text,
        password_optional: Text,
        add_submit: Text,
        person_intro: Text,
        access: Text,
        shut: Text,
        shut_text: Text,
        shut_confirm: Text,
        let_in: Text,
        save: Text,
        reset: Text,
        reset_text: Text,
        reset_confirm: Text,
        no_tokens: Text,
        no_sessions: Text,
    }

    pub(crate) Secrets {
        intro: Text,
        own: Text,
        none: Text,
        shared: Text,
        shared_text: Text,
        set: Text,
        last_given: Text,
        never_given: Text,
        remove: Text,
        remove_text: Text,
        remove_confirm: Text,
        keep_title: Text,
        name: Text,
        name_hint: Text,
        value: Text,
        value_hint: Text,
        share: Text,
        share_hint: Text,
        keep: Text,
    }

    pub(crate) Confirm {
        title: Text,
        intro: Text,
        hint: Text,
        submit: Text,
    }

    pub(crate) Create {
        title: Text,
        intro: Text,
        name: Text,
        name_hint: Text,
        kind: Text,
        kind_hint: Text,
        persistent: Text,
        ephemeral: Text,
        labels: Text,
        labels_hint: Text,
        advanced: Text,
        networks: Text,
        networks_hint: Text,
        submit: Text,
    }

    pub(crate) DeleteWorker {
        title: Phrase,
        text: Text,
        busy: Count,
        confirm: Text,
        keep: Text,
    }
}
