//! English: second factors and notices.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::account::{Factors, Notices};

pub(super) const FACTORS: Factors = Factors {
    title: "Second factor",
    none: "Not set up. With a second factor, a stolen password is not enough to sign in.",
    required: "This server requires one: you set it up when you next sign in.",
    set_up: "Set up authenticator app",
    since: Phrase("Authenticator app, set up {0}"),
    codes_left: count("{0} recovery code left", "{0} recovery codes left"),
    renew: "New recovery codes",
    renew_text: "The old codes stop working.",
    renew_confirm: "Create new codes",
    remove: "Remove",
    remove_text: "You then sign in with your password alone.",
    remove_confirm: "Remove second factor",
    enrol_title: "Set up authenticator app",
    enrol_intro: "Scan the QR code with an authenticator app, or type the key into it. Then enter the code that the app shows.",
    qr: "QR code for the authenticator app",
    key: "Key",
    code: "Code",
    code_hint: "Six digits from the app.",
    turn_on: "Turn on",
    codes_title: "Recovery codes",
    codes_text: "Each works once in place of the app. Store them somewhere safe: they are shown only this once.",
    login_title: "Enter code",
    login_intro: Phrase("Signing in as {0}."),
    login_hint: "Six digits from your authenticator app, or a recovery code.",
    start_over: "Start over",
    lost: "Lost the app and the codes?",
    lost_text: "An admin can remove your second factor.",
    person_none: "Not set up.",
    person_remove_text: "They then sign in with their password alone, or set up a new one if this server requires it.",
};

pub(super) const NOTICES: Notices = Notices {
    title: "Account activity",
    intro: "If this was not you, end the session and change your password.",
    new_browser: "Signed in with a new browser",
    new_network: "Signed in from a new network",
    wrong_code: "Your password was entered with a wrong code",
    password_changed: "Your password was changed",
    password_reset: "An admin set a new password",
    factor_added: "Second factor set up",
    factor_removed: "Second factor removed",
    recovery_codes_renewed: "New recovery codes created",
    recovery_code_used: "A recovery code was used",
    by: Phrase("by {0}"),
    end: "Not me: end session",
    end_text: "That browser is signed out at once. Then change your password.",
    end_confirm: "End this session",
    change: "Change password",
    read: "Mark as read",
};
