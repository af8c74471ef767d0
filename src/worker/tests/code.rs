//! A configuration that brings code: what the host's own trainer imports is the host's own.

use std::io;
use std::path::Path;

use serde_json::{Value, json};

use super::fake::Fake;
use super::host::Host;

/// A trainer as it is installed on a host, run as the default command runs it.
fn installed() -> io::Result<Host> {
    let mut host = Host::with_trainer("python3 -m simpletuner.train")?.flags(&["--persistent"]);
    let site = host.path().join("site");
    let write = |name: &str, text: &str| {
        let path = site.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(&site))?;
        std::fs::write(path, text)
    };
    write("simpletuner/__init__.py", "")?;
    write("simpletuner/train.py", "import json, os, accelerate\nprint('the host', accelerate.OWN, os.listdir('.'))")?;
    write("accelerate/__init__.py", "OWN = 'its own'")?;
    host.variables.push(("PYTHONPATH".to_owned(), site.display().to_string()));
    Ok(host)
}

const INTRUDER: &str = "print('INTRUDER')";

/// Every name by which a configuration's file has come to run, or could.
fn intruders() -> Vec<(&'static str, Value)> {
    [
        "simpletuner/train.py",
        "simpletuner/__init__.py",
        "json.py",
        "sitecustomize.py",
        "usercustomize.py",
        "accelerate/__init__.py",
        "x.pth",
        "json/__init__.py",
        "__main__.py",
    ]
    .map(|name| {
        let text = if name == "x.pth" { "import os; print('INTRUDER')" } else { INTRUDER };
        (name, json!({"config.json": "{}", name: text}))
    })
    .to_vec()
}

#[tokio::test]
async fn code_in_a_configuration_is_refused() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = installed()?;
    let agent = host.start(&fake)?;
    for (number, (name, files)) in intruders().into_iter().enumerate() {
        let job = format!("j_{number}");
        fake.offer(&job, 1, &files);
        let report = fake
            .until("a refusal", |shared| {
                shared.statuses.iter().find(|one| one["job_id"] == job && one["status"] == "failed").cloned()
            })
            .await;
        let error = report["error"].as_str().unwrap_or_default();
        assert!(error.contains(name) && error.contains("--allow-code"), "{error}");
        assert!(!host.attempt(&job, 1).bundle().join(name).exists(), "{name} was written");
    }
    assert!(fake.shared().log.is_empty());
    agent.kill().await
}

#[tokio::test]
async fn code_that_is_allowed_does_not_replace_the_trainers_own() -> io::Result<()> {
    for level in ["none", "full"] {
        for (name, files) in intruders() {
            let fake = Fake::start().await?;
            let mut host = installed()?.flags(&["--allow-code"]);
            host.variables.push(("SIMPLETUNER_SANDBOX_MIN".to_owned(), level.to_owned()));
            let agent = host.start(&fake)?;
            fake.offer("j_1", 1, &files);
            let ended = |shared: &mut super::fake::Shared| {
                shared
                    .statuses
                    .iter()
                    .any(|one| one["status"] == "completed" || one["status"] == "failed")
                    .then_some(())
            };
            fake.until("the end", ended).await;
            let log = String::from_utf8_lossy(&fake.shared().log).into_owned();
            assert_eq!(log, "the host its own []\n", "{name}");
            assert!(Path::new(&host.attempt("j_1", 1).bundle().join(name)).exists(), "{name} is the job's to use");
            agent.kill().await?;
        }
    }
    Ok(())
}
