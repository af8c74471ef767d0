//! A configuration that was written on another machine.

use std::io;

use serde_json::json;

use super::fake::Fake;
use super::host::Host;

fn config() -> serde_json::Value {
    json!({
        "config.json": r#"{"--data_backend_config": "config/here/multidatabackend.json", "--caption": "{subject}"}"#,
        "multidatabackend.json": r#"[{"instance_data_dir": "{data_root}/cats", "cache_dir_vae": "{output_dir}/{job_id}", "weights": "{w}/a"}]"#,
        "prompts.txt": "{data_root}",
    })
}

#[tokio::test]
async fn names_of_places_become_this_hosts_directories() -> io::Result<()> {
    let fake = Fake::start().await?;
    let mut host = Host::with_script("cd \"${CONFIG_PATH%/*}\"; cat config.json multidatabackend.json prompts.txt")?
        .flags(&["--data-root", "/mnt/data", "--path", "w=/flag"]);
    host.variables.push(("SIMPLETUNER_PATHS".to_owned(), "data_root=/other:w=/variable".to_owned()));
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    agent.end().await?;
    assert_eq!(fake.words(), ["starting", "running", "completed"]);
    assert_eq!(fake.shared().registers[0]["paths"], json!(["data_root", "w"]), "which it has, it says");
    let log = String::from_utf8_lossy(&fake.shared().log).into_owned();
    let cache = format!("{}/j_1", host.attempt("j_1", 1).output().display());
    for part in ["\"/mnt/data/cats\"", "\"/flag/a\"", &cache, "\"{subject}\"", "{data_root}"] {
        assert!(log.contains(part), "{part} is not in {log}");
    }
    assert!(log.ends_with("{data_root}"), "what is no JSON is as it was: {log}");
    Ok(())
}

#[tokio::test]
async fn a_place_that_this_host_does_not_have_is_named_with_its_flag() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = Host::with_script("echo ran")?.flags(&["--path", "w=/w"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    agent.end().await?;
    let report = fake.status("failed").await;
    let error = report["error"].as_str().unwrap_or_default();
    for part in ["multidatabackend.json", "{data_root}/cats", "--data-root", "SIMPLETUNER_DATA_ROOT"] {
        assert!(error.contains(part), "{part} is not in {error}");
    }
    assert!(fake.shared().log.is_empty(), "the trainer was not begun");
    Ok(())
}
