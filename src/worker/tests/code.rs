//! A configuration that brings code: what the host's own trainer imports is the host's own.

use std::io;
use std::os::unix::fs::PermissionsExt;
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

/// How `accelerate` starts a program: by a script on the path, or as a module.
#[tokio::test]
async fn the_hosts_accelerate_launches_and_never_a_configurations_own() -> io::Result<()> {
    const LAUNCH: &str = "import os, subprocess, sys\ndef main():\n    print('HOST', os.listdir('.'), flush=True)\n    \
                          sys.exit(subprocess.call([sys.executable, *sys.argv[2 if sys.argv[1] == 'launch' else 1:]]))\n\
                          if __name__ == '__main__': main()\n";
    let brings: Vec<(&str, Value)> =
        ["accelerate/__init__.py", "accelerate/commands/__init__.py", "accelerate/commands/launch.py"]
            .map(|name| (name, Value::from(INTRUDER)))
            .into();
    let mut files: serde_json::Map<String, Value> =
        brings.into_iter().map(|(name, text)| (name.to_owned(), text)).collect();
    files.insert("config.json".to_owned(), "{}".into());
    files.insert("accelerate.py".to_owned(), INTRUDER.into());
    let files = Value::from(files);
    for level in ["none", "files", "full"] {
        for command in ["accelerate launch", "python3 -m accelerate.commands.launch"] {
            let fake = Fake::start().await?;
            let host = installed()?;
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
            let mut host = host.trained_by(&trainer).flags(&["--allow-code"]);
            host.variables.push(("SIMPLETUNER_SANDBOX_MIN".to_owned(), level.to_owned()));
            let agent = host.start(&fake)?;
            fake.offer("j_1", 1, &files);
            fake.until("the end", |shared| {
                shared
                    .statuses
                    .iter()
                    .any(|one| one["status"] == "completed" || one["status"] == "failed")
                    .then_some(())
            })
            .await;
            let log = String::from_utf8_lossy(&fake.shared().log).into_owned();
            assert_eq!(log, "HOST []\nthe host its own []\n", "{level}: {command}");
            assert!(host.attempt("j_1", 1).bundle().join("accelerate/commands/launch.py").exists());
            agent.kill().await?;
        }
    }
    Ok(())
}
