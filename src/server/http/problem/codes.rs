//! All problem codes with their meanings and statuses.
//!
//! The `OpenAPI` document is generated from this table; a test compares it with the code and `docs/API.md`.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProblemCode {
    pub name: &'static str,
    /// The statuses it is returned with.
    pub statuses: &'static [u16],
    /// What has happened, in one sentence.
    pub meaning: &'static str,
}

impl ProblemCode {
    pub fn find(name: &str) -> Option<&'static Self> {
        CODES.iter().find(|code| code.name == name)
    }
}

const fn problem_code(name: &'static str, statuses: &'static [u16], meaning: &'static str) -> ProblemCode {
    ProblemCode { name, statuses, meaning }
}

/// All problem codes, by status.
pub const CODES: &[ProblemCode] = &[
    problem_code("incomplete_body", &[400], "The body did not arrive completely."),
    problem_code("invalid_json", &[400], "The body is not the JSON that the route expects."),
    problem_code("invalid_query", &[400], "The query string is not what the route expects."),
    problem_code("tls_required", &[400], "The server requires HTTPS, and the request was plain HTTP."),
    problem_code("multiple_hosts", &[400], "The request has more than one `Host` header."),
    problem_code(
        "upload_rejected",
        &[400, 413],
        "The file was not stored: it is incomplete, differs from its announcement, is too large, or is not wanted.",
    ),
    problem_code("not_authenticated", &[401], "Not authenticated."),
    problem_code(
        "worker_token_invalid",
        &[401],
        "Invalid worker or job token: rotated, deleted, expired, or misspelled.",
    ),
    problem_code("worker_token_missing", &[401], "The request has no `X-Worker-Token` header."),
    problem_code("worker_token_expired", &[401], "The worker's token has expired: rotate it."),
    problem_code("worker_retired", &[401], "The ephemeral worker of this token has run its job and is retired."),
    problem_code("wrong_password", &[401], "Wrong user name or password."),
    problem_code("wrong_token", &[401], "Invalid API token or code."),
    problem_code("config_not_yours", &[403], "The configuration belongs to another user; `owner` says to whom."),
    problem_code("cross_site_request", &[403], "The request comes from a page of another site."),
    problem_code("job_token_required", &[403], "The route requires the attempt's token, not the agent's session."),
    problem_code("network_not_allowed", &[403], "The worker's token may not be used from this network."),
    problem_code("older_agent_rejected", &[403], "The worker does not allow agents of the older protocol."),
    problem_code("other_attempt", &[403], "The job token belongs to another job or attempt."),
    problem_code("factor_needed", &[403], "The second factor is required in addition to the password."),
    problem_code("password_needed", &[403], "A browser session must confirm the password again."),
    problem_code("not_team_member", &[403], "The caller is not a member of the team."),
    problem_code("permission_denied", &[403], "The caller lacks the permission that `detail` names."),
    problem_code("artifact_not_found", &[404], "The job has no file with this path, or of this kind."),
    problem_code("attempt_not_found", &[404], "The job has no attempt with this number."),
    problem_code("config_not_found", &[404], "Configuration not found."),
    problem_code("job_not_found", &[404], "Job not found, or the caller may not see it."),
    problem_code("no_such_route", &[404], "There is no route with this path."),
    problem_code("not_found", &[404], "Invalid ID in the path."),
    problem_code("secret_not_found", &[404], "The caller's jobs have no secret with this name."),
    problem_code("view_not_found", &[404], "The caller sees no saved view with this name."),
    problem_code("session_not_found", &[404], "The caller has no session with this ID."),
    problem_code("token_not_found", &[404], "The caller has no API token with this ID."),
    problem_code("user_not_found", &[404], "User not found."),
    problem_code("factor_not_found", &[404], "The account has no second factor."),
    problem_code("passkey_not_found", &[404], "The account has no such passkey."),
    problem_code("enrollment_not_started", &[404], "No authenticator app is being set up."),
    problem_code("worker_not_found", &[404], "Worker not found."),
    problem_code("team_not_found", &[404], "Team not found."),
    problem_code("method_not_allowed", &[405], "The path does not support the method."),
    problem_code("concurrent_change", &[409], "Another change was faster. Load the current state, then try again."),
    problem_code(
        "config_changed",
        &[409],
        "Another user has changed the configuration since `reviewed_revision`; submit with `config_revision` to run it.",
    ),
    problem_code(
        "checkpoint_incomplete",
        &[409],
        "A file of the checkpoint did not arrive as described; `path` says which.",
    ),
    problem_code("factor_exists", &[409], "The account has an authenticator app already."),
    problem_code(
        "passkeys_unavailable",
        &[409],
        "Passkeys cannot be used at this address; `why` is `insecure` or `no_name`.",
    ),
    problem_code("passkey_exists", &[409], "The passkey is already registered."),
    problem_code("passkey_expired", &[409], "The passkey request has expired, or was already answered."),
    problem_code("no_password_session", &[409], "This requires a browser session that was opened with a password."),
    problem_code("job_ended", &[409], "The job has ended and cannot be changed."),
    problem_code("job_not_ended", &[409], "The job has not ended."),
    problem_code("job_not_queued", &[409], "The job is not queued."),
    problem_code("last_admin", &[409], "No other user would have the permissions of an admin."),
    problem_code(
        "log_gap",
        &[409],
        "Bytes of the log are missing before this chunk; `durable` says where to continue.",
    ),
    problem_code("default_team", &[409], "The team `default` cannot be deleted."),
    problem_code("name_taken", &[409], "The name is already in use."),
    problem_code("no_accounts", &[409], "The server runs without accounts."),
    problem_code("user_required", &[409], "The operator on the server's host has no account."),
    problem_code("not_registered", &[409], "The worker must register first."),
    problem_code("not_your_attempt", &[409], "This worker does not hold the attempt: stop it."),
    problem_code("stale_attempt", &[409], "The job has a newer attempt: stop this one."),
    problem_code("secret_deleted", &[409], "The job names a secret that was deleted."),
    problem_code("secret_unreadable", &[409], "A secret cannot be decrypted with the server's key."),
    problem_code("token_in_use", &[409], "Another running agent uses this token."),
    problem_code(
        "upload_gap",
        &[409],
        "Bytes of the file are missing before this chunk; `received` says where to continue.",
    ),
    problem_code(
        "worker_connected",
        &[409],
        "The worker is connected, or lost its connection while it ran a job; `detail` says until when it may reconnect.",
    ),
    problem_code(
        "precondition_failed",
        &[412],
        "The state does not match `If-Match` or `If-None-Match`: it was changed since.",
    ),
    problem_code("body_too_slow", &[408], "The body arrived too slowly."),
    problem_code("body_too_large", &[413], "The body is larger than the route allows."),
    problem_code("range_not_satisfiable", &[416], "The requested range starts after the end of the file."),
    problem_code("unknown_host", &[421], "A server in single-user mode responds to loopback names only."),
    problem_code("config_json_broken", &[422], "A file of the configuration is not valid JSON."),
    problem_code("config_json_missing", &[422], "The configuration has no file `config.json`."),
    problem_code("idempotency_key_reused", &[422], "The Idempotency-Key was used with a different request."),
    problem_code("invalid_labels", &[422], "The labels are too many, too long, or not printable."),
    problem_code("invalid_name", &[422], "The name is not valid."),
    problem_code("invalid_network", &[422], "The text is not a network."),
    problem_code("config_code", &[422], "The configuration contains a file that Python could run."),
    problem_code("invalid_path", &[422], "The path leaves its directory or is not printable."),
    problem_code("invalid_pattern", &[422], "The text is not a regular expression."),
    problem_code(
        "pattern_too_costly",
        &[422],
        "Searching this log with the pattern takes too much time: use a simpler one.",
    ),
    problem_code("invalid_search", &[422], "A word of the search is not understood; `word` is which, `why` says why."),
    problem_code("invalid_secret_name", &[422], "The name is not valid for a secret."),
    problem_code("invalid_status", &[422], "A worker cannot report this status."),
    problem_code(
        "limit_reached",
        &[422],
        "The user or the job has reached a limit; `detail` says which, and what to do.",
    ),
    problem_code("other_worker", &[422], "The worker ID in the body is not that of the token."),
    problem_code("out_of_range", &[422], "A value is out of range; `detail` names both."),
    problem_code("weak_password", &[422], "The password is too short, or easy to guess; `why` says which."),
    problem_code("passkey_copied", &[422], "The passkey's counter went backward: there may be a copy of it."),
    problem_code("wrong_passkey", &[422], "The passkey does not belong to the account, or signed something else."),
    problem_code("wrong_code", &[422], "The code of the second factor is wrong, or was used before."),
    problem_code("too_large", &[422], "Something is too long or too many; `detail` says what."),
    problem_code("too_many_event_streams", &[429], "The user has reached the limit of open event streams: close some."),
    problem_code(
        "too_many_requests",
        &[429],
        "The caller, or its network, sends too many requests; `Retry-After` says when to retry.",
    ),
    problem_code("inconsistent_row", &[500], "A row of the database is corrupt; the server's log names it."),
    problem_code("internal_error", &[500], "Unexpected error; the server's log has the details."),
    problem_code("database_unavailable", &[503], "The database does not respond; nothing was changed."),
    problem_code("files_unavailable", &[503], "The server's disk cannot read or write the file."),
    problem_code(
        "secret_key_unavailable",
        &[503],
        "The server's encryption key for secrets cannot be read or created.",
    ),
    problem_code(
        "too_many_registrations",
        &[503],
        "Many agents register at the same time; `Retry-After` is the time until this agent's turn.",
    ),
    problem_code("too_many_streams", &[503], "The server has reached its limit of connected workers."),
    problem_code(
        "disk_full",
        &[507],
        "The server's disk is almost full: new jobs are rejected until there is space; running jobs continue.",
    ),
];
