//! Every stable name of a problem: what it means, and the statuses it comes with.
//!
//! The description of the API is made from this table, and so are the answers that it allows each route; a test holds
//! it against the code and `docs/API.md`.

/// A stable name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// The name.
    pub name: &'static str,
    /// The statuses it comes with.
    pub statuses: &'static [u16],
    /// What happened, in one sentence.
    pub meaning: &'static str,
}

impl Code {
    /// The row of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        CODES.iter().find(|code| code.name == name)
    }
}

const fn code(name: &'static str, statuses: &'static [u16], meaning: &'static str) -> Code {
    Code { name, statuses, meaning }
}

/// All of them, by status.
pub const CODES: &[Code] = &[
    code("broken_body", &[400], "The body did not arrive whole."),
    code("invalid_json", &[400], "The body is not the JSON that the route takes."),
    code("invalid_query", &[400], "The query string is not what the route takes."),
    code("speak_tls", &[400], "The server speaks HTTPS, and the request came without."),
    code("several_hosts", &[400], "The request has more than one `Host` header."),
    code(
        "upload_refused",
        &[400, 413],
        "The file was not stored: it broke off, differs from what was announced, or is too large.",
    ),
    code("not_authenticated", &[401], "Nobody is known to be asking."),
    code(
        "worker_token_refused",
        &[401],
        "The worker's or job's token opens nothing: rotated, deleted, over, or misspelled.",
    ),
    code("worker_token_missing", &[401], "The request has no `X-Worker-Token` header."),
    code("worker_token_expired", &[401], "The worker's token has ended: rotate it."),
    code("worker_token_spent", &[401], "The ephemeral worker of this token has run its job."),
    code("wrong_password", &[401], "The name and password do not belong together."),
    code("wrong_token", &[401], "The API token or code opens nothing."),
    code("config_not_yours", &[403], "The configuration is somebody else's; `owner` says whose."),
    code("cross_site_request", &[403], "The request comes from another site's page."),
    code("job_token_required", &[403], "The route takes the attempt's token, not the agent's session."),
    code("network_not_allowed", &[403], "The worker's token may not be used from this network."),
    code("older_agent_refused", &[403], "The worker does not allow agents of the older protocol."),
    code("other_attempt", &[403], "The job token belongs to another job or attempt."),
    code("factor_needed", &[403], "It takes the second factor besides the password."),
    code("password_needed", &[403], "A browser's session must give its password once more."),
    code("permission_denied", &[403], "The caller lacks the permission that `detail` names."),
    code("artifact_not_found", &[404], "The job has no file of this path."),
    code("attempt_not_found", &[404], "The job has no attempt of this number."),
    code("config_not_found", &[404], "There is no configuration of this name."),
    code("job_not_found", &[404], "There is no such job, or the caller may not see it."),
    code("no_such_route", &[404], "There is nothing at this path."),
    code("not_found", &[404], "What stands in the path is no id of anything."),
    code("secret_not_found", &[404], "There is no such secret for the caller's jobs."),
    code("session_not_found", &[404], "The caller has no session of this id."),
    code("token_not_found", &[404], "The caller has no API token of this id."),
    code("user_not_found", &[404], "There is nobody of this id."),
    code("factor_not_found", &[404], "The account has no second factor."),
    code("passkey_not_found", &[404], "The account has no such passkey."),
    code("no_enrolment", &[404], "No authenticator app is being set up."),
    code("worker_not_found", &[404], "There is no worker of this id."),
    code("method_not_allowed", &[405], "The path does not know the method."),
    code("changed_meanwhile", &[409], "Another change came first. Load the current state, then try again."),
    code(
        "config_changed",
        &[409],
        "Somebody else has changed the configuration since `reviewed_revision`; submit with `config_revision` to run it.",
    ),
    code("checkpoint_incomplete", &[409], "A file of the checkpoint did not arrive as described; `path` says which."),
    code("factor_exists", &[409], "The account has an authenticator app already."),
    code("no_passkeys_here", &[409], "Passkeys cannot be used at this address; `why` is `insecure` or `no_name`."),
    code("passkey_exists", &[409], "Somebody has this passkey already."),
    code("passkey_expired", &[409], "The passkey request has expired, or was answered before."),
    code("no_password_session", &[409], "It takes a browser that was logged in with a password."),
    code("job_ended", &[409], "The job has ended; nothing changes it any more."),
    code("job_not_ended", &[409], "The job has not ended."),
    code("job_not_queued", &[409], "The job does not wait."),
    code("last_admin", &[409], "Nobody else could do what an admin does."),
    code("log_gap", &[409], "Bytes of the log are missing before this piece; `durable` says where to go on."),
    code("name_taken", &[409], "Something of this name exists."),
    code("no_accounts", &[409], "The server runs without accounts."),
    code("no_person", &[409], "The operator on the server's host has no account, and so none of what belongs to one."),
    code("not_registered", &[409], "The worker has to register first."),
    code("not_your_attempt", &[409], "This worker does not hold the attempt: stop it."),
    code("old_attempt", &[409], "The job was given to somebody else: stop this attempt."),
    code("secret_gone", &[409], "The job names a secret that was removed."),
    code("secret_unreadable", &[409], "A secret cannot be opened with the server's key."),
    code("token_in_use", &[409], "Another agent that is alive uses this token."),
    code("upload_gap", &[409], "Bytes of the file are missing before this piece; `received` says where to go on."),
    code("worker_connected", &[409], "The worker is connected; only those that are offline can be deleted."),
    code(
        "precondition_failed",
        &[412],
        "It is not as `If-Match` or `If-None-Match` says: somebody has changed it since.",
    ),
    code("body_too_slow", &[408], "The body stood still, or took too long in all."),
    code("body_too_large", &[413], "The body is larger than the route takes."),
    code("range_not_satisfiable", &[416], "What was asked for begins behind the file's end."),
    code("unknown_host", &[421], "A server in single-user mode answers to loopback names only."),
    code("config_json_broken", &[422], "A file of the configuration is no usable JSON."),
    code("config_json_missing", &[422], "A configuration needs a file `config.json`."),
    code("idempotency_key_reused", &[422], "The Idempotency-Key came with another request before."),
    code("invalid_labels", &[422], "The labels are too many, too long, or not printable."),
    code("invalid_name", &[422], "The name is not usable."),
    code("invalid_network", &[422], "The text is no network."),
    code("config_code", &[422], "A configuration has a file that Python could run."),
    code("invalid_path", &[422], "The path leads elsewhere or is not printable."),
    code("invalid_pattern", &[422], "The text is no regular expression."),
    code("pattern_too_costly", &[422], "Searching this log with the pattern takes too much time: use a simpler one."),
    code("invalid_search", &[422], "A word of the question is not understood; `word` is which, `why` says why."),
    code("invalid_secret_name", &[422], "The name is none of a secret's."),
    code("invalid_status", &[422], "The word is no status that a worker can report."),
    code(
        "limit_reached",
        &[422],
        "The person or the job has as much of something as it may; `detail` says what, and what to do.",
    ),
    code("other_worker", &[422], "The worker's id in the body is not the token's."),
    code("out_of_range", &[422], "A value is not in its range; `detail` names both."),
    code("weak_password", &[422], "The password is too short, or easy to guess; `why` says which."),
    code("passkey_copied", &[422], "The passkey's counter went back: there may be a copy of it."),
    code("wrong_passkey", &[422], "The passkey is not one of the account's, or signed something else."),
    code("wrong_code", &[422], "The code of the second factor is not right, or was used before."),
    code("too_much", &[422], "Something is too long or too many; `detail` says what."),
    code("too_many_event_streams", &[429], "The person has as many event streams open as one may: close some."),
    code(
        "too_many_requests",
        &[429],
        "The caller, or its network, asks too often; `Retry-After` says when to come again.",
    ),
    code("inconsistent_row", &[500], "A row of the database makes no sense; the server's log names it."),
    code("internal_error", &[500], "The server failed; its log says where."),
    code("database_unavailable", &[503], "The database does not answer; nothing was changed."),
    code("files_unavailable", &[503], "The server's disk did not take or give the file."),
    code("secret_key_unavailable", &[503], "The server's key for secrets cannot be read or made."),
    code("too_many_streams", &[503], "As many workers listen here as the server holds."),
    code(
        "disk_full",
        &[507],
        "The server's disk is almost full: nothing new is begun until there is room; what runs goes on.",
    ),
];
