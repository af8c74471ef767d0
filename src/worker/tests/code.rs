//! A configuration with code: the trainer imports only the host's own modules.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::TestHost;

/// A trainer as it is installed on a host, run as the default command runs it.
fn host_with_trainer() -> io::Result<TestHost> {
    let mut host = TestHost::with_trainer("python3 -m simpletuner.train")?.flags(&["--persistent"]);
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

/// All file names by which a configuration's code was or could be executed.
fn hostile_bundles() -> Vec<(&'static str, Value)> {
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
async fn configuration_with_code_is_rejected() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = host_with_trainer()?;
    let agent = host.start(&fake)?;
    for (number, (name, files)) in hostile_bundles().into_iter().enumerate() {
        let job = format!("j_{number}");
        fake.offer(&job, 1, &files);
        let report = fake
            .wait_until("a rejection", |shared| {
                shared.statuses.iter().find(|report| report["job_id"] == job && report["status"] == "failed").cloned()
            })
            .await;
        let error = report["error"].as_str().unwrap_or_default();
        assert!(error.contains(name) && error.contains("--allow-code"), "{error}");
        assert!(!host.attempt(&job, 1).bundle_dir().join(name).exists(), "{name} was written");
    }
    assert!(fake.state().log.is_empty());
    agent.kill().await
}

#[tokio::test]
async fn allowed_code_does_not_replace_trainer_modules() -> io::Result<()> {
    for level in ["none", "full"] {
        for (name, files) in hostile_bundles() {
            let fake = FakeOrchestrator::start().await?;
            let mut host = host_with_trainer()?.flags(&["--allow-code"]);
            host.variables.push(("SIMPLETUNER_SANDBOX_MIN".to_owned(), level.to_owned()));
            let agent = host.start(&fake)?;
            fake.offer("j_1", 1, &files);
            let has_ended = |shared: &mut super::fake_orchestrator::FakeState| {
                shared
                    .statuses
                    .iter()
                    .any(|report| report["status"] == "completed" || report["status"] == "failed")
                    .then_some(())
            };
            fake.wait_until("the end", has_ended).await;
            let log = String::from_utf8_lossy(&fake.state().log).into_owned();
            assert_eq!(log, "the host its own []\n", "{name}");
            assert!(
                Path::new(&host.attempt("j_1", 1).bundle_dir().join(name)).exists(),
                "{name} is not available to the job"
            );
            agent.kill().await?;
        }
    }
    Ok(())
}

/// How `accelerate` starts a program: by a script on the path, or as a module.
#[tokio::test]
async fn only_the_hosts_accelerate_is_used() -> io::Result<()> {
    const LAUNCH: &str = "import os, subprocess, sys\ndef main():\n    print('HOST', os.listdir('.'), flush=True)\n    \
                          sys.exit(subprocess.call([sys.executable, *sys.argv[2 if sys.argv[1] == 'launch' else 1:]]))\n\
                          if __name__ == '__main__': main()\n";
    let hostile_files: Vec<(&str, Value)> =
        ["accelerate/__init__.py", "accelerate/commands/__init__.py", "accelerate/commands/launch.py"]
            .map(|name| (name, Value::from(INTRUDER)))
            .into();
    let mut files: serde_json::Map<String, Value> =
        hostile_files.into_iter().map(|(name, text)| (name.to_owned(), text)).collect();
    files.insert("config.json".to_owned(), "{}".into());
    files.insert("accelerate.py".to_owned(), INTRUDER.into());
    let files = Value::from(files);
    for level in ["none", "files", "full"] {
        for command in ["accelerate launch", "python3 -m accelerate.commands.launch"] {
            let fake = FakeOrchestrator::start().await?;
            let host = host_with_trainer()?;
            let site = host.path().join("site");
            std::fs::create_dir(site.join("accelerate/commands"))?;
            std::fs::write(site.join("accelerate/commands/__init__.py"), "")?;
            std::fs::write(site.join("accelerate/commands/launch.py"), LAUNCH)?;
            let bin = host.path().join("bin");
            std::fs::create_dir(&bin)?;
            let script = "#!/usr/bin/env python3\nfrom accelerate.commands.launch import main\nmain()\n";
            std::fs::write(bin.join("accelerate"), script)?;
            std::fs::set_permissions(bin.join("accelerate"), std::fs::Permissions::from_mode(0o755))?;
            let command = command.replace("accelerate launch", &format!("{} launch", bin.join("accelerate").display()));
            let trainer = format!("{command} {}", site.join("simpletuner/train.py").display());
            let mut host = host.with_trainer_command(&trainer).flags(&["--allow-code"]);
            host.variables.push(("SIMPLETUNER_SANDBOX_MIN".to_owned(), level.to_owned()));
            let agent = host.start(&fake)?;
            fake.offer("j_1", 1, &files);
            fake.wait_until("the end", |shared| {
                shared
                    .statuses
                    .iter()
                    .any(|report| report["status"] == "completed" || report["status"] == "failed")
                    .then_some(())
            })
            .await;
            let log = String::from_utf8_lossy(&fake.state().log).into_owned();
            assert_eq!(log, "HOST []\nthe host its own []\n", "{level}: {command}");
            assert!(host.attempt("j_1", 1).bundle_dir().join("accelerate/commands/launch.py").exists());
            agent.kill().await?;
        }
    }
    Ok(())
}
