//! A configuration that was written on another machine.

use std::io;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::TestHost;

fn config() -> serde_json::Value {
    json!({
        "config.json": r#"{"--data_backend_config": "config/here/multidatabackend.json", "--caption": "{subject}"}"#,
        "multidatabackend.json": r#"[{"instance_data_dir": "{data_root}/cats", "cache_dir_vae": "{output_dir}/{job_id}", "weights": "{w}/a"}]"#,
        "prompts.txt": "{data_root}",
    })
}

#[tokio::test]
async fn placeholders_become_this_hosts_directories() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let mut host =
        TestHost::with_script("cd \"${CONFIG_PATH%/*}\"; cat config.json multidatabackend.json prompts.txt")?.flags(&[
            "--data-root",
            "/mnt/data",
            "--path",
            "w=/flag",
        ]);
    host.variables.push(("SIMPLETUNER_PATHS".to_owned(), "data_root=/other:w=/variable".to_owned()));
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    agent.wait_for_exit().await?;
    assert_eq!(fake.reported_statuses(), ["starting", "running", "completed"]);
    assert_eq!(
        fake.state().registrations[0]["paths"],
        json!(["data_root", "w"]),
        "it reports the names of its directories"
    );
    let log = String::from_utf8_lossy(&fake.state().log).into_owned();
    let cache = format!("{}/j_1", host.attempt("j_1", 1).output_dir().display());
    for part in ["\"/mnt/data/cats\"", "\"/flag/a\"", &cache, "\"{subject}\"", "{data_root}"] {
        assert!(log.contains(part), "{part} is not in {log}");
    }
    assert!(log.ends_with("{data_root}"), "other files are unchanged: {log}");
    Ok(())
}

#[tokio::test]
async fn trainer_starts_in_the_configured_directory() -> io::Result<()> {
    // With and without a sandbox, as far as this machine supports it.
    for (level, access) in [("none", ""), ("auto", ""), ("auto", ":rw")] {
        let fake = FakeOrchestrator::start().await?;
        let host = TestHost::with_script("pwd; cat datasets/list; echo x > cache || echo read-only")?;
        let dir = host.path().canonicalize()?.join("checkout");
        std::fs::create_dir_all(dir.join("datasets"))?;
        std::fs::write(dir.join("datasets/list"), "one\n")?;
        // The trainer may run as a separate user.
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o777))?;
        let mut host = host.flags(&["--trainer-cwd", &format!("{}{access}", dir.display())]);
        host.variables.push(("SIMPLETUNER_SANDBOX_MIN".to_owned(), level.to_owned()));
        let agent = host.start(&fake)?;
        let register = fake.wait_until("a registration", |shared| shared.registrations.first().cloned()).await;
        fake.offer("j_1", 1, &json!({"config.json": "{}"}));
        agent.wait_for_exit().await?;
        let log = String::from_utf8_lossy(&fake.state().log).into_owned();
        assert!(log.starts_with(&format!("{}\none\n", dir.display())), "{level}{access}: {log}");
        let is_confined = level == "auto" && register["sandbox"]["most"] != "none";
        assert_eq!(log.contains("read-only"), is_confined && access.is_empty(), "{level}{access}: {log}");
    }
    Ok(())
}

#[tokio::test]
async fn missing_trainer_directory_prevents_the_start() -> io::Result<()> {
    let host = TestHost::with_script("")?.flags(&["--trainer-cwd", "/no/such/place"]);
    let (code, output) = host.start_at("http://127.0.0.1:1")?.wait_for_exit().await?;
    assert!(code == Some(78) && output.contains("--trainer-cwd: /no/such/place is not a directory"), "{output}");
    Ok(())
}

#[tokio::test]
async fn unknown_placeholder_is_reported_with_its_flag() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("echo ran")?.flags(&["--path", "w=/w"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    agent.wait_for_exit().await?;
    let report = fake.wait_for_status("failed").await;
    let error = report["error"].as_str().unwrap_or_default();
    for part in ["multidatabackend.json", "{data_root}/cats", "--data-root", "SIMPLETUNER_DATA_ROOT"] {
        assert!(error.contains(part), "{part} is not in {error}");
    }
    assert!(fake.state().log.is_empty(), "the trainer must not start");
    Ok(())
}
