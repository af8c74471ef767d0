//! `simpletuner jobs open`

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::harness::CliHarness;
use crate::cli::browser::Browser;

const JOB: &str = "j_01hm5z4f40000000000000000a";

/// Returns a browser whose opener writes the address to a pipe beside it.
fn fake_browser(directory: &Path) -> Option<Browser> {
    let opener = directory.join("xdg-open");
    mkfifo(&directory.join("opened"), Mode::S_IRUSR | Mode::S_IWUSR).expect("a pipe");
    fs::write(&opener, "#!/bin/sh\necho noise\necho \"$# $1\" > \"${0%/*}/opened\"\n").expect("written");
    fs::set_permissions(&opener, fs::Permissions::from_mode(0o755)).expect("executable");
    let path = directory.to_str().expect("text").to_owned();
    Browser::find("linux", move |name| match name {
        "PATH" => Some(path.clone()),
        _ => (name == "DISPLAY").then(|| ":0".to_owned()),
    })
}

#[tokio::test]
async fn page_is_opened_and_its_address_printed() {
    let directory = tempfile::tempdir().expect("a directory");
    let opened = || fs::read_to_string(directory.path().join("opened")).expect("an address");
    let harness = CliHarness::start().await;
    let harness = CliHarness { browser: fake_browser(directory.path()), ..harness };
    let base = format!("http://{}", harness.address);
    for (args, path) in [
        (&[JOB][..], format!("/jobs/{JOB}")),
        (&[], "/jobs".to_owned()),
        (
            &["loss<0.3", "--ended", "--user", "ada", "--sort=-started"],
            "/jobs?phase=ended&user=ada&q=loss%3C0.3&sort=-started".to_owned(),
        ),
        (&["--compare", JOB, "j_2"], format!("/jobs/compare?ids={JOB}%2Cj_2")),
        (&["--status", "failed"], "/jobs?status=failed".to_owned()),
        (&["https://evil.example"], "/jobs?q=https%3A%2F%2Fevil.example".to_owned()),
    ] {
        let url = format!("{base}{path}");
        let printed = harness.run(&[&["jobs", "open", "--print"], args].concat()).await.single_line();
        assert_eq!(printed, url);
        assert_eq!(harness.run(&[&["jobs", "open"], args].concat()).await.single_line(), url);
        assert_eq!(opened(), format!("1 {url}\n"));
    }
}

#[tokio::test]
async fn without_a_browser_the_address_is_printed() {
    let harness = CliHarness::start().await;
    let url = format!("http://{}/jobs/{JOB}", harness.address);
    assert_eq!(harness.run(&["jobs", "open", JOB]).await.single_line(), url);
    assert_eq!(harness.run(&["jobs", "open", JOB, "-q"]).await.single_line(), url);
    assert_eq!(harness.run(&["jobs", "open", JOB, "--json"]).await.json()["url"], url);
    harness.run(&["jobs", "open", "--compare", JOB]).await.expect_failure(2, "values");
    harness.run(&["jobs", "open", "--compare", JOB, "j_2", "--ended"]).await.expect_failure(2, "cannot be used with");

    let directory = tempfile::tempdir().expect("a directory");
    let browser = fake_browser(directory.path());
    fs::write(directory.path().join("xdg-open"), "#!/nowhere/sh").expect("written");
    let harness = CliHarness { browser, ..harness };
    let output = harness.run(&["jobs", "open", JOB]).await;
    assert!(output.err.contains("Cannot open a browser ("), "{}", output.err);
    assert_eq!(output.single_line(), url);
}
