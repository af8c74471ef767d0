//! A configuration as an agent receives it: accepted files are written unchanged below its directory, and nothing is
//! written elsewhere; the trainer's configuration is the author's, with the paths of this host.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use app::domain::executable_files::is_executable;
use app::protocol::configs::ConfigBundle;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::worker::bundle::{CONFIG_FILE, parse, unpack};
use crate::worker::clock::encode_hex;
use crate::worker::job_config::{HostContext, rewrite};

/// See the module.
pub fn check(data: &[u8]) {
    let sha256 = encode_hex(&Sha256::digest(data));
    let mut wrong_sha256 = sha256.clone().into_bytes();
    wrong_sha256[0] = if wrong_sha256[0] == b'0' { b'1' } else { b'0' };
    assert!(parse(data, &String::from_utf8_lossy(&wrong_sha256), true).is_err(), "it does not have the offered digest");
    if let Ok(bundle) = parse(data, &sha256, false) {
        let code = bundle.files.keys().find(|name| is_executable(name));
        assert!(code.is_none(), "code is accepted: {code:?}");
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
        let count = fs::read_dir(temp.path().join(folder)).expect("a directory").count();
        assert_eq!(count, 1, "unexpected entries in {folder:?}");
    }
    if written.is_ok() {
        let mut file_count = 0;
        for_each_file(&inside, &mut |path, bytes| {
            let name = path.strip_prefix(&inside).ok().and_then(Path::to_str).expect("a name of the bundle");
            assert_eq!(bundle.files.get(name).map(String::as_bytes), Some(bytes.as_slice()), "{name:?}");
            file_count += 1;
        });
        assert_eq!(file_count, bundle.files.len());
    }
}

fn for_each_file(dir: &Path, visit: &mut impl FnMut(&Path, Vec<u8>)) {
    for entry in fs::read_dir(dir).expect("a directory").flatten() {
        let kind = entry.file_type().expect("a kind");
        assert!(!kind.is_symlink());
        if kind.is_dir() {
            for_each_file(&entry.path(), visit);
        } else {
            visit(&entry.path(), fs::read(entry.path()).expect("a file"));
        }
    }
}

fn assert_config_preserved(files: &BTreeMap<String, String>, resume: bool) {
    let (bundle, output) = (Path::new("/here/bundle"), Path::new("/here/output"));
    let host = HostContext { bundle, output, port: 4711, webhook_secret: "s", resume };
    let text = &files[CONFIG_FILE];
    let Ok(rewritten) = rewrite(text, &host, |name| files.get(name).cloned()) else { return };
    let before: Map<String, Value> = serde_json::from_str(text).expect("parsed JSON");
    let after: Map<String, Value> = serde_json::from_str(&rewritten).expect("a configuration");
    let value = |key: &str| after.get(&format!("--{key}")).or_else(|| after.get(key));
    assert_eq!(value("output_dir").and_then(Value::as_str), output.to_str());
    assert!(!(after.contains_key("output_dir") && after.contains_key("--output_dir")), "it is set twice");
    let webhook = value("webhook_config")
        .and_then(Value::as_array)
        .and_then(|hooks| hooks.last())
        .expect("the webhook of the agent");
    assert_eq!(
        (&webhook["callback_url"], &webhook["auth_token"]),
        (&"http://127.0.0.1:4711/events".into(), &"s".into())
    );
    assert!(!resume || value("resume_from_checkpoint") == Some(&Value::from("latest")));
    let replaced_keys = ["output_dir", "webhook_config", "resume_from_checkpoint"];
    for (key, value) in before.iter().filter(|(key, _)| !replaced_keys.contains(&key.trim_start_matches("--"))) {
        let Some(new_value) = after.get(key) else {
            let is_duplicate = key == "data_backend_config" && before.contains_key("--data_backend_config");
            assert!(is_duplicate, "{key:?} is missing");
            continue;
        };
        let in_bundle = || new_value.as_str()?.strip_prefix("/here/bundle/").map(|name| files.contains_key(name));
        assert!(new_value == value || in_bundle() == Some(true), "{key:?}: {value} became {new_value}");
    }
}
