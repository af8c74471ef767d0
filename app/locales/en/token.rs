//! English: workers’ tokens.

use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::token::WorkerToken;

pub(super) const TOKEN: WorkerToken = WorkerToken {
    conflict: "Two agents, one token",
    conflict_hint: "A second agent came with this worker’s token and was refused. If you did not start it, the token is stolen: rotate it. If you did, give each machine a worker of its own.",
    conflict_hint_on: Phrase(
        "A second agent on {0} came with this worker’s token and was refused. If you did not start it, the token is stolen: rotate it. If you did, give each machine a worker of its own.",
    ),
    conflict_settle: "This was me",
    conflict_settled: "The alarm is settled.",
    access: "Token",
    token_made: "Made",
    token_used: "Last used",
    token_ends: "Ends",
    token_never_ends: "never",
    token_ends_unused: Phrase("{0}, unless an agent registers with it before"),
    token_ends_at: "Token ends",
    token_has_ended: "Token has ended",
    old_token_ends: "The one before ends",
    networks: "Allowed networks",
    any_network: "any",
    days: "Days until it ends",
    days_hint: "Empty for never. The agent is refused from then on, until the token is rotated.",
    rotate: "Rotate token",
    rotate_hint: "Makes a new token and shows it once. An agent that uses the old one is refused as soon as that ends.",
    overlap: "The old token ends",
    overlap_hint: "At the latest; it ends earlier when the agent comes with the new one.",
    overlap_none: "at once",
    overlap_hour: "in an hour",
    overlap_day: "in a day",
    overlap_week: "in a week",
};
