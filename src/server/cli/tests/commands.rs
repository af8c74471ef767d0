//! The commands that pages show, as a shell and then the command line parse them.

use std::collections::BTreeMap;
use std::process::Command as Process;

use app::domain::labels::Labels;
use app::protocol::jobs::SubmitJob;
use app::protocol::status::Target;
use clap::Parser;
use proptest::prelude::*;
use serde_json::Value;

use crate::cli::jobs::JobsCommand;
use crate::cli::{Cli, Command, ResourceCommand};
use crate::http::edge::server_address::ServerAddress;
use crate::http::ui::submit_commands::submit_commands;

/// Returns the arguments that a shell passes to a program of this name.
fn shell_arguments(command: &str, program: &str) -> Vec<String> {
    let script = format!("{program}() {{ printf '%s\\0' \"$@\"; }}\n{command}\n");
    let mut shell = Process::new("bash");
    shell.args(["--norc", "-c", &script]).env("LC_ALL", "C.UTF-8").env("SIMPLETUNER_API_TOKEN", "st_secret");
    let output = shell.output().expect("a bash");
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{command}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let output = String::from_utf8(output.stdout).expect("text");
    output.strip_suffix('\0').unwrap_or_default().split('\0').map(str::to_owned).collect()
}

fn server_address(fingerprint: bool) -> ServerAddress {
    let fingerprint = fingerprint.then(|| format!("sha256:{}", "ab".repeat(32)).parse().expect("a fingerprint"));
    ServerAddress { base_url: "https://gpu.example:8001".to_owned(), fingerprint }
}

/// Returns the job that the command line parses from the first command, and the one that the API parses from the
/// second.
fn parse_commands(job: &SubmitJob, address: &ServerAddress) -> [SubmitJob; 2] {
    let commands = submit_commands(job, address);
    let cli_arguments = shell_arguments(&commands.cli, "simpletuner");
    let cli =
        Cli::try_parse_from(std::iter::once("simpletuner".to_owned()).chain(cli_arguments)).expect("a valid command");
    let Command::Jobs(ResourceCommand { command: JobsCommand::Submit(submit), .. }) = cli.command else {
        panic!("{}", commands.cli)
    };
    let curl_arguments = shell_arguments(&commands.curl, "curl");
    let body = curl_arguments.iter().skip_while(|argument| *argument != "--data-raw").nth(1).expect("a body");
    assert!(
        !curl_arguments.iter().any(|argument| argument.contains("st_secret")),
        "no argument contains the token: {curl_arguments:?}"
    );
    assert!(!commands.curl.contains('\u{202e}') && !commands.cli.contains('\u{202e}'), "no character hides others");
    [submit.job.to_submit_job(), serde_json::from_str(body).expect("a submit")]
}

fn hostile_text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,8}", "\\PC{1,12}", "[-'\"$`\\\\!*?~#&;|<> \n\té\u{202e}]{1,8}"]
}

prop_compose! {
    /// All fields have a value, or only the listed ones.
    fn job()(
        base in prop_oneof![Just(SubmitJob::example()), Just(SubmitJob::new("digits"))],
        config_name in hostile_text(),
        target in prop_oneof![Just(Target::Auto), Just(Target::Worker), Just(Target::Local)],
        labels in proptest::collection::btree_map("[-a-z'$]{1,5}", hostile_text(), 0..3),
        min_vram_gb in proptest::option::of((2_u16..400).prop_map(|quarters| f64::from(quarters) / 4.0)),
        (retry_on_failure, exclusive, priority) in (any::<bool>(), any::<bool>(), 0_u8..=50),
        secrets in proptest::option::of(proptest::collection::vec("[A-Z]{2,5}_KEY", 1..3)),
        overrides in proptest::collection::btree_map("[a-z_]{1,8}", (0_u32..9).prop_map(Value::from), 0..3),
    ) -> SubmitJob {
        SubmitJob {
            config_name, target, min_vram_gb, retry_on_failure, exclusive, priority, secrets, overrides,
            worker_labels: Labels(labels), dry_run: false, ..base
        }
    }
}

#[test]
fn defaults_are_omitted() {
    let job = SubmitJob { target: Target::Worker, ..SubmitJob::new("digits") };
    let commands = submit_commands(&job, &server_address(false));
    assert_eq!(commands.cli, "simpletuner jobs submit --target worker --url https://gpu.example:8001 \\\n  digits");
    let curl = "printf 'Authorization: Bearer %s' \"$SIMPLETUNER_API_TOKEN\" | \\\n  curl -sS --fail-with-body -H @- https://gpu.example:8001/api/queue/submit \\\n  -H 'Content-Type: application/json' \\\n  --data-raw '{\"config_name\":\"digits\",\"target\":\"worker\"}'";
    assert_eq!(commands.curl, curl);
}

#[test]
fn self_signed_server_is_pinned_by_its_key() {
    let commands = submit_commands(&SubmitJob::new("digits"), &server_address(true));
    assert!(commands.curl.contains("-k --pinnedpubkey sha256//q6urq6"), "{}", commands.curl);
    assert!(commands.cli.contains("--orchestrator-fingerprint sha256:abab"), "{}", commands.cli);
}

#[test]
fn hostile_configuration_names_are_quoted() {
    for name in [
        "--url=http://evil.example",
        "$(touch /tmp/x)",
        "a'b\"c",
        "line\nbreak",
        "\u{202e}txt.exe",
        "`id`",
        "!!",
        "~",
        "=x",
    ] {
        let labels = BTreeMap::from([("team".to_owned(), name.to_owned())]);
        let job = SubmitJob { worker_labels: Labels(labels), ..SubmitJob::new(name) };
        assert_eq!(parse_commands(&job, &server_address(false)), [job.clone(), job.clone()], "{name:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn both_commands_submit_the_form_values(job in job(), fingerprint in any::<bool>()) {
        prop_assert_eq!(parse_commands(&job, &server_address(fingerprint)), [job.clone(), job.clone()]);
    }
}
