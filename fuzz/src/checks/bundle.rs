//! A configuration as an agent gets it: what is let through lies below its directory, byte by byte, and nothing is
//! anywhere else; what the trainer gets is the author's own, with this host's paths.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use app::domain::executable_files::is_executable;
use app::protocol::configs::ConfigBundle;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::bundle::{CONFIG_FILE, parse, unpack};
use crate::clock::encode_hex;
use crate::job_config::{HostContext, rewrite};

/// See the module.
pub fn check(data: &[u8]) {
    let sha256 = encode_hex(&Sha256::digest(data));
    let mut wrong_sha256 = sha256.clone().into_bytes();
    wrong_sha256[0] = if wrong_sha256[0] == b'0' { b'1' } else { b'0' };
    assert!(parse(data, &String::from_utf8_lossy(&wrong_sha256), true).is_err(), "it is not what was offered");
    if let Ok(bundle) = parse(data, &sha256, false) {
        let code = bundle.files.keys().find(|name| is_executable(name));
        assert!(code.is_none(), "code is let through: {code:?}");
    }
    let Ok(bundle) = parse(data, &sha256, true) else { return };
    assert_stays_in_directory(&bundle);
    assert_config_preserved(&bundle.files, true);
    assert_config_preserved(&bundle.files, false);
}

fn assert_stays_in_directory(bundle: &ConfigBundle) {
    let temp = super::directory();
    let inside = temp.path().join("jobs/j_1/1/bundle");
    fs::create_dir_all(&inside).expect("a directory");
    let written = unpack(bundle, &inside);
    for folder in ["", "jobs", "jobs/j_1", "jobs/j_1/1"] {
        let only = fs::read_dir(temp.path().join(folder)).expect("a directory").count();
        assert_eq!(only, 1, "something lies in {folder:?} that should not");
    }
    if written.is_ok() {
        let mut found = 0;
        files(&inside, &mut |path, bytes| {
            let name = path.strip_prefix(&inside).ok().and_then(Path::to_str).expect("a name of the bundle");
            assert_eq!(bundle.files.get(name).map(String::as_bytes), Some(bytes.as_slice()), "{name:?}");
            found += 1;
        });
        assert_eq!(found, bundle.files.len());
    }
}

fn files(dir: &Path, each: &mut impl FnMut(&Path, Vec<u8>)) {
    for entry in fs::read_dir(dir).expect("a directory").flatten() {
        let kind = entry.file_type().expect("a kind");
        assert!(!kind.is_symlink());
        if kind.is_dir() {
            files(&entry.path(), each);
        } else {
            each(&entry.path(), fs::read(entry.path()).expect("a file"));
        }
    }
}

fn assert_config_preserved(files: &BTreeMap<String, String>, resume: bool) {
    let (bundle, output) = (Path::new("/here/bundle"), Path::new("/here/output"));
    let host = HostContext { bundle, output, port: 4711, webhook_secret: "s", resume };
    let text = &files[CONFIG_FILE];
    let Ok(rewritten) = rewrite(text, &host, |name| files.get(name).cloned()) else { return };
    let before: Map<String, Value> = serde_json::from_str(text).expect("it was read");
    let after: Map<String, Value> = serde_json::from_str(&rewritten).expect("a configuration");
    let value = |key: &str| after.get(&format!("--{key}")).or_else(|| after.get(key));
    assert_eq!(value("output_dir").and_then(Value::as_str), output.to_str());
    assert!(!(after.contains_key("output_dir") && after.contains_key("--output_dir")), "one of them would win");
    let ours = value("webhook_config").and_then(Value::as_array).and_then(|hooks| hooks.last()).expect("our webhook");
    assert_eq!((&ours["callback_url"], &ours["auth_token"]), (&"http://127.0.0.1:4711/events".into(), &"s".into()));
    assert!(!resume || value("resume_from_checkpoint") == Some(&Value::from("latest")));
    let set = ["output_dir", "webhook_config", "resume_from_checkpoint"];
    for (key, value) in before.iter().filter(|(key, _)| !set.contains(&key.trim_start_matches("--"))) {
        let Some(now) = after.get(key) else {
            let twice = key == "data_backend_config" && before.contains_key("--data_backend_config");
            assert!(twice, "{key:?} is gone");
            continue;
        };
        let in_bundle = || now.as_str()?.strip_prefix("/here/bundle/").map(|name| files.contains_key(name));
        assert!(now == value || in_bundle() == Some(true), "{key:?}: {value} became {now}");
    }
}
