//! The words about second factors and notices, on the account page and at the login.

use crate::ui::locales::sentence::{Count, Phrase, Text, words};

words! {
    pub(crate) Factors {
        title: Text,
        none: Text,
        required: Text,
        set_up: Text,
        since: Phrase,
        codes_left: Count,
        renew: Text,
        renew_text: Text,
        renew_confirm: Text,
        remove: Text,
        remove_text: Text,
        remove_confirm: Text,
        enrol_title: Text,
        enrol_intro: Text,
        qr: Text,
        key: Text,
        code: Text,
        code_hint: Text,
        turn_on: Text,
        codes_title: Text,
        codes_text: Text,
        login_title: Text,
        login_intro: Phrase,
        login_hint: Text,
        start_over: Text,
        lost: Text,
        lost_text: Text,
        person_none: Text,
        person_remove_text: Text,
    }

    pub(crate) Notices {
        title: Text,
        intro: Text,
        new_browser: Text,
        new_network: Text,
        wrong_code: Text,
        password_changed: Text,
        password_reset: Text,
        factor_added: Text,
        factor_removed: Text,
        recovery_codes_renewed: Text,
        recovery_code_used: Text,
        by: Phrase,
        end: Text,
        end_text: Text,
        end_confirm: Text,
        change: Text,
        read: Text,
    }
}
