//! The doctor as a process, on hosts each of which has one thing wrong.

use std::io;
use std::process::Output;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::process::Command;

use super::fake::Fake;
use super::host::{Host, PATIENCE, binary};
use super::tls::{orchestrator, orchestrator_until};

/// A host on which nothing is wrong.
fn well() -> io::Result<Host> {
    Host::with_script("")
}

/// Runs it by another program, whose arguments end with the doctor's.
async fn examined_by(host: &Host, mut command: Command, url: &str) -> io::Result<Output> {
    command.args(&host.flags).kill_on_drop(true);
    let mut command = host.given(command, url);
    tokio::time::timeout(PATIENCE, command.output()).await.unwrap_or_else(|_| panic!("the doctor does not end"))
}

/// Exit code and lines.
pub async fn examined(host: &Host, url: &str) -> io::Result<(Option<i32>, String)> {
    let mut doctor = Command::new(binary());
    doctor.arg("doctor");
    let output = examined_by(host, doctor, url).await?;
    Ok((output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// That the report has one line of this kind that says all this; if one fails, it is the only one that does.
pub fn assert_line((code, report): &(Option<i32>, String), start: &str, words: &[&str]) {
    let lines: Vec<&str> = report.lines().filter(|line| line.starts_with(start)).collect();
    assert!(lines.len() == 1 && words.iter().all(|word| lines[0].contains(word)), "{start} {words:?}:\n{report}");
    let failed = report.lines().filter(|line| line.starts_with("fail")).count();
    assert!(failed <= 1 && *code == Some(i32::from(failed == 1)), "{code:?}\n{report}");
}

#[tokio::test]
async fn where_all_is_well_it_says_so_and_takes_nothing() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = well()?.flags(&["--gpu-count", "1"]);
    let report = examined(&host, &fake.url).await?;
    for what in ["url", "dns", "tcp", "tls", "orchestrator", "clock", "token", "work directory", "gpu", "trainer"] {
        assert_line(&report, &format!("ok    {what}: "), &[]);
    }
    assert_eq!(report.0, Some(0), "{}", report.1);
    assert!(report.1.contains("  disk: ") && report.1.contains("  cgroup: "), "{}", report.1);
    assert!(!report.1.contains('\u{1b}'), "colours are for terminals: {}", report.1);
    assert!(!host.path().join("state").exists(), "nothing was made");
    let shared = fake.shared();
    assert_eq!(
        (shared.registers.len(), shared.heartbeats.len(), shared.streams, shared.disconnects.len()),
        (0, 0, 0, 0)
    );
    Ok(())
}

#[tokio::test]
async fn programs_get_an_array() -> io::Result<()> {
    let fake = Fake::start().await?;
    fake.shared().refuse_token = true;
    let (code, report) = examined(&well()?.flags(&["--json"]), &fake.url).await?;
    let lines: Vec<Value> = serde_json::from_str(&report)?;
    let token = lines.iter().find(|line| line["what"] == "token").cloned().unwrap_or_default();
    assert_eq!((code, &token["verdict"]), (Some(1), &json!("fail")), "{report}");
    assert!(token["advice"].is_string() && lines.iter().any(|line| line["verdict"] == "ok"), "{report}");
    Ok(())
}

#[tokio::test]
async fn a_closed_port() -> io::Result<()> {
    let report = examined(&well()?, "http://127.0.0.1:1").await?;
    assert_line(&report, "fail  tcp: ", &["Connection refused", "--host 0.0.0.0"]);
    assert_line(&report, "ok    work directory: ", &[]);
    Ok(())
}

#[tokio::test]
async fn a_name_that_nobody_has() -> io::Result<()> {
    // Too long for any name server to be asked.
    let name = "x".repeat(64);
    assert_line(
        &examined(&well()?, &format!("http://{name}/")).await?,
        "fail  dns: ",
        &["is not known", "--orchestrator-url"],
    );
    Ok(())
}

#[tokio::test]
async fn an_address_that_is_none_hides_nothing_else() -> io::Result<()> {
    let report = examined(&well()?, "orchestrator:8001").await?;
    assert_line(&report, "fail  url: ", &["must start with http"]);
    assert_line(&report, "ok    trainer: ", &[]);
    Ok(())
}

#[tokio::test]
async fn no_token_and_a_wrong_one() -> io::Result<()> {
    let fake = Fake::start().await?;
    let mut host = well()?;
    host.variables.push(("SIMPLETUNER_WORKER_TOKEN".to_owned(), String::new()));
    assert_line(&examined(&host, &fake.url).await?, "fail  token: ", &["no worker token"]);
    fake.shared().refuse_token = true;
    let report = examined(&well()?, &fake.url).await?;
    assert_line(&report, "fail  token: ", &["Invalid token", "get a new token"]);
    assert_line(&report, "ok    orchestrator: ", &[]);
    Ok(())
}

#[tokio::test]
async fn a_token_on_the_command_line_leaves_it() -> io::Result<()> {
    let fake = Fake::start().await?;
    let mut host = well()?.flags(&["--worker-token", "wt_test_token"]);
    host.variables.push(("SIMPLETUNER_WORKER_TOKEN".to_owned(), "wt_wrong".to_owned()));
    let mut doctor = Command::new(binary());
    doctor.arg("doctor");
    let output = examined_by(&host, doctor, &fake.url).await?;
    let report = (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned());
    assert_line(&report, "ok    token: ", &["accepts"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("visible to other users"), "{said}");
    Ok(())
}

#[tokio::test]
async fn certificates() -> io::Result<()> {
    let (known, other) = (orchestrator("localhost").await?, orchestrator("localhost").await?);
    let shown = "it shows a certificate for localhost, signed by authority of the tests, until 2100-01-01";
    let refused = "SSL certificate verify failed";
    let examined_with = async |flags: &[&str], url: &str| examined(&well()?.flags(flags), url).await;

    let report = examined_with(&[], &known.fake.url).await?;
    assert_line(&report, "fail  tls: ", &[refused, "nobody here vouches for", shown]);
    let files = tempfile::tempdir()?;
    let (own, wrong) = (files.path().join("own.pem"), files.path().join("wrong.pem"));
    std::fs::write(&own, &known.authority)?;
    std::fs::write(&wrong, &other.authority)?;
    let ca = |file: &std::path::Path| ["--ca-file".to_owned(), file.display().to_string()];
    let examined_ca = async |file: &std::path::Path, url: &str| {
        let flags = ca(file);
        examined(&well()?.flags(&[&flags[0], &flags[1]]), url).await
    };
    assert_line(&examined_ca(&wrong, &known.fake.url).await?, "fail  tls: ", &[refused, "vouches"]);
    assert_line(&examined_ca(&own, &known.fake.url).await?, "ok    tls: ", &["for localhost", "until 2100-01-01"]);
    assert_line(&examined_ca(&files.path().join("none"), &known.fake.url).await?, "fail  tls: ", &["--ca-file"]);

    let (pin, another) = (known.fingerprint.to_string(), other.fingerprint.to_string());
    let report = examined_with(&["--orchestrator-fingerprint", &pin], &known.fake.url).await?;
    assert_line(&report, "ok    tls: ", &["it has the key of the fingerprint"]);
    let report = examined_with(&["--orchestrator-fingerprint", &another], &known.fake.url).await?;
    assert_line(&report, "fail  tls: ", &[refused, "has another key", &pin]);
    assert_line(&examined_with(&["--ssl-no-verify"], &known.fake.url).await?, "warn  tls: ", &["not verified"]);
    assert!(known.fake.shared().registers.is_empty());
    Ok(())
}

#[tokio::test]
async fn certificates_for_others_and_old_ones() -> io::Result<()> {
    for (known, words) in [
        (orchestrator("elsewhere.example").await?, ["for other names", "it shows a certificate for elsewhere.example"]),
        (orchestrator_until("localhost", 2001).await?, ["has expired", "until 2001-01-01"]),
    ] {
        let host = well()?;
        let file = host.path().join("ca.pem");
        std::fs::write(&file, &known.authority)?;
        let host = host.flags(&["--ca-file", &file.to_string_lossy()]);
        let report = examined(&host, &known.fake.url).await?;
        assert_line(&report, "fail  tls: ", &[&["SSL certificate verify failed"], &words[..]].concat());
    }
    Ok(())
}

#[tokio::test]
async fn something_else_answers() -> io::Result<()> {
    let socket = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", socket.local_addr()?);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = socket.accept().await {
            let mut request = [0; 4096];
            if stream.read(&mut request).await.is_ok_and(|length| length > 0) {
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
                let _ = stream.write_all(answer).await;
            }
        }
    });
    let (code, report) = examined(&well()?, &url).await?;
    assert_eq!(code, Some(1));
    let line = report.lines().find(|line| line.starts_with("fail  orchestrator: ")).unwrap_or_default();
    assert!(line.contains("is none") && line.contains("--orchestrator-url"), "{report}");
    Ok(())
}

#[tokio::test]
async fn clocks_that_differ() -> io::Result<()> {
    let fake = Fake::start().await?;
    fake.shared().date = Some("Mon, 15 Jan 2024 10:30:00 GMT");
    assert_line(&examined(&well()?, &fake.url).await?, "warn  clock: ", &["ahead of the orchestrator", "set-ntp"]);
    Ok(())
}

#[tokio::test]
async fn a_work_directory_that_cannot_be_made() -> io::Result<()> {
    let fake = Fake::start().await?;
    let mut host = well()?;
    host.variables.push(("SIMPLETUNER_WORK_DIR".to_owned(), "/proc/none".to_owned()));
    let (code, report) = examined(&host, &fake.url).await?;
    assert_eq!(code, Some(1), "{report}");
    assert!(report.contains("fail  work directory: nothing can be written to /proc"), "{report}");
    Ok(())
}

#[tokio::test]
async fn a_full_disk() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = well()?;
    let state = host.path().join("state");
    std::fs::create_dir(&state)?;
    // A disk of its own that only this process sees, with nothing left on it.
    let script =
        "mount -t tmpfs -o size=64k tmpfs \"$1\" && { cat /dev/zero >\"$1/fill\" 2>/dev/null; exec \"$2\" doctor; }";
    let mut full = Command::new("unshare");
    full.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]).arg(&state).arg(binary());
    let output = examined_by(&host, full, &fake.url).await?;
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{report}{}", String::from_utf8_lossy(&output.stderr));
    assert!(report.contains("fail  work directory: ") && report.contains("No space left on device"), "{report}");
    assert!(report.contains("fail  disk: 0 MiB free"), "{report}");
    Ok(())
}

#[tokio::test]
async fn an_agent_is_there_already() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = well()?.flags(&["--persistent"]);
    let _agent = host.start(&fake)?;
    fake.until("a registration", |shared| (!shared.registers.is_empty()).then_some(())).await;
    assert_line(&examined(&host, &fake.url).await?, "warn  lock: ", &["an agent uses this work directory"]);
    let left: Vec<_> = std::fs::read_dir(host.path().join("state"))?.flatten().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with(".doctor")), "{left:?}");
    let beats = fake.shared().heartbeats.len();
    fake.until("heartbeats go on", |shared| (shared.heartbeats.len() > beats).then_some(())).await;
    assert_eq!(fake.shared().registers.len(), 1);
    Ok(())
}

#[tokio::test]
async fn trainers_that_are_not_there() -> io::Result<()> {
    let fake = Fake::start().await?;
    let report = examined(&Host::with_trainer("/does/not/exist --flag")?, &fake.url).await?;
    assert_line(&report, "fail  trainer: ", &["no program \"/does/not/exist\"", "--trainer"]);
    let report = examined(&Host::with_trainer("python3 -m no_such_module.train")?, &fake.url).await?;
    assert_line(&report, "fail  trainer: ", &["no module \"no_such_module.train\"", "install SimpleTuner"]);
    let host = Host::with_trainer("python3 -m json.tool")?.flags(&["--gpu-count", "2"]);
    let (_, report) = examined(&host, &fake.url).await?;
    assert!(report.contains("  accelerate: "), "{report}");
    Ok(())
}

#[tokio::test]
async fn few_open_files() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = well()?;
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 256; exec \"$1\" doctor", "sh"]).arg(binary());
    let output = examined_by(&host, limited, &fake.url).await?;
    let report = (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned());
    assert_line(&report, "warn  open files: ", &["256", "LimitNOFILE"]);
    Ok(())
}

#[tokio::test]
async fn a_setting_that_is_wrong() -> io::Result<()> {
    let fake = Fake::start().await?;
    let report = examined(&well()?.flags(&["--label", "nonsense"]), &fake.url).await?;
    assert_line(&report, "fail  settings: ", &["key=value"]);
    Ok(())
}
