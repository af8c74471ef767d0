//! The trainer's environment: an allow-list, and what the job needs. Never the worker's credentials.

use std::collections::BTreeMap;
use std::path::Path;

use app::domain::trace_context::TraceContext;

use crate::worker::secret::Secret;

const ALLOWED_NAMES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "TERM",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LIBRARY_PATH",
    "VIRTUAL_ENV",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
];

const ALLOWED_PREFIXES: &[&str] = &[
    "LC_",
    "PYTHON",
    "PYENV_",
    "CONDA_",
    "UV_",
    "HF_",
    "HUGGINGFACE_",
    "TRANSFORMERS_",
    "DIFFUSERS_",
    "WANDB_",
    "CUDA_",
    "NVIDIA_",
    "NCCL_",
    "CUDNN_",
    "CUBLAS_",
    "ROCM_",
    "HIP_",
    "HSA_",
    "ROCR_",
    "RCCL_",
    "MIOPEN_",
    "GPU_",
    "AMD_",
    "ZE_",
    "ONEAPI_",
    "SYCL_",
    "TORCH",
    "PYTORCH_",
    "TRITON_",
    "ACCELERATE_",
    "DEEPSPEED_",
    "OMP_",
    "MKL_",
    "OPENBLAS_",
];

/// The worker's own variables, which `--pass-env` never passes on.
const DENIED_NAMES: &[&str] = &["SIMPLETUNER_WORKER_TOKEN", "SIMPLETUNER_WORKER_TOKEN_FILE"];

/// What the job adds.
#[derive(Debug, Clone)]
pub struct JobEnvironment<'a> {
    /// The job's ID, for the trainer's own records.
    pub job_id: &'a str,
    pub attempt: u32,
    pub config_path: &'a Path,
    /// This file appears when the trainer should stop.
    pub stop_file: &'a Path,
    /// Full URL to which the trainer can upload files itself.
    pub upload_endpoint: &'a str,
    pub upload_token: &'a str,
    /// The job's secrets from the orchestrator.
    pub secrets: &'a BTreeMap<String, Secret>,
    /// Restricts the trainer to the granted GPUs; empty leaves the agent's setting.
    pub visible_devices: &'a [(&'static str, String)],
    /// How many processes to start.
    pub num_processes: Option<u32>,
    /// Whether the command runs a Python module by name.
    pub is_module: bool,
    /// The job's trace context.
    pub trace: Option<&'a TraceContext>,
}

/// The webhook listener is on this host, where no proxy can reach it.
fn exempt_loopback_from_proxy(environment: &mut BTreeMap<String, String>) {
    let is_proxy = |name: &str| name.to_ascii_lowercase().ends_with("_proxy") && !name.eq_ignore_ascii_case("no_proxy");
    if !environment.iter().any(|(name, value)| is_proxy(name) && !value.is_empty()) {
        return;
    }
    let fallback = ["no_proxy", "NO_PROXY"].iter().find_map(|name| environment.get(*name).cloned()).unwrap_or_default();
    for name in ["no_proxy", "NO_PROXY"] {
        let current = environment.get(name).filter(|value| !value.is_empty()).unwrap_or(&fallback);
        let hosts = current.split(',').map(str::trim).filter(|host| !host.is_empty()).chain(["127.0.0.1", "localhost"]);
        let hosts = hosts.collect::<Vec<_>>().join(",");
        environment.insert(name.to_owned(), hosts);
    }
}

/// This process's variables.
pub fn own_variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// The agent's variables that trainers get.
pub fn passed_variables(agent: impl Iterator<Item = (String, String)>, pass: &[String]) -> BTreeMap<String, String> {
    agent.filter(|(name, _)| is_passed(name, pass)).collect()
}

/// The trainer's complete environment.
pub fn trainer_environment(
    agent: impl Iterator<Item = (String, String)>,
    pass: &[String],
    job: &JobEnvironment,
) -> BTreeMap<String, String> {
    let mut environment = passed_variables(agent, pass);
    exempt_loopback_from_proxy(&mut environment);
    let mut set = |name: &str, value: &str| environment.insert(name.to_owned(), value.to_owned());
    for (name, value) in job.secrets {
        set(name, value.reveal());
    }
    set("CONFIG_PATH", &job.config_path.to_string_lossy());
    set("SIMPLETUNER_CONFIG_BACKEND", "json");
    set("SIMPLETUNER_JOB_ID", job.job_id);
    set("SIMPLETUNER_ATTEMPT", &job.attempt.to_string());
    set("SIMPLETUNER_STOP_FILE", &job.stop_file.to_string_lossy());
    set("SIMPLETUNER_UPLOAD_ENDPOINT", job.upload_endpoint);
    set("SIMPLETUNER_UPLOAD_TOKEN", job.upload_token);
    if job.is_module {
        // Modules in the working directory are not imported. A script's own directory must be.
        set("PYTHONSAFEPATH", "1");
    }
    // Otherwise Python buffers output to a file in large blocks.
    set("PYTHONUNBUFFERED", "1");
    for (name, devices) in job.visible_devices {
        set(name, devices);
    }
    if let Some(count) = job.num_processes {
        set("TRAINING_NUM_PROCESSES", &count.to_string());
    }
    if let Some(trace) = job.trace {
        set("TRACEPARENT", &trace.to_string());
    }
    environment
}

fn is_passed(name: &str, pass: &[String]) -> bool {
    let is_allowed = ALLOWED_NAMES.contains(&name) || ALLOWED_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    !DENIED_NAMES.contains(&name) && (is_allowed || pass.iter().any(|allowed| allowed == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn environment(agent: &[(&str, &str)], pass: &[&str]) -> BTreeMap<String, String> {
        let secrets = BTreeMap::from([("HF_TOKEN".to_owned(), Secret::new("hf_job"))]);
        let trace = TraceContext::parse(TRACE);
        let job = JobEnvironment {
            job_id: "j_1",
            attempt: 2,
            config_path: Path::new("/w/config.json"),
            stop_file: Path::new("/w/stop"),
            upload_endpoint: "http://h/up",
            upload_token: "jt_1",
            secrets: &secrets,
            visible_devices: &[("CUDA_VISIBLE_DEVICES", "GPU-1,GPU-2".to_owned())],
            num_processes: Some(2),
            is_module: true,
            trace: trace.as_ref(),
        };
        let agent: Vec<_> = agent.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let pass: Vec<_> = pass.iter().map(|name| (*name).to_owned()).collect();
        trainer_environment(agent.into_iter(), &pass, &job)
    }

    #[test]
    fn allow_list_applies_and_the_job_overrides() {
        let variables = environment(
            &[
                ("PATH", "/bin"),
                ("HF_TOKEN", "hf_host"),
                ("AWS_SECRET_ACCESS_KEY", "s"),
                ("EXTRA", "x"),
                ("LC_ALL", "C"),
            ],
            &["EXTRA"],
        );
        for (name, value) in [
            ("PATH", Some("/bin")),
            ("LC_ALL", Some("C")),
            ("EXTRA", Some("x")),
            ("HF_TOKEN", Some("hf_job")),
            ("AWS_SECRET_ACCESS_KEY", None),
            ("CUDA_VISIBLE_DEVICES", Some("GPU-1,GPU-2")),
            ("TRAINING_NUM_PROCESSES", Some("2")),
            ("SIMPLETUNER_ATTEMPT", Some("2")),
            ("SIMPLETUNER_CONFIG_BACKEND", Some("json")),
            ("TRACEPARENT", Some(TRACE)),
            ("PYTHONSAFEPATH", Some("1")),
        ] {
            assert_eq!(variables.get(name).map(String::as_str), value, "{name}");
        }
    }

    #[test]
    fn loopback_is_exempt_from_proxies() {
        type Row<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a str);
        let without_proxy = environment(&[("NO_PROXY", "a.example"), ("HTTP_PROXY", "")], &[]);
        assert_eq!(without_proxy.get("NO_PROXY").map(String::as_str), Some("a.example"), "there is no proxy");
        let rows: [Row; 4] = [
            (&[("HTTPS_PROXY", "http://p")], "127.0.0.1,localhost", "127.0.0.1,localhost"),
            (
                &[("http_proxy", "http://p"), ("NO_PROXY", "a, b,")],
                "a,b,127.0.0.1,localhost",
                "a,b,127.0.0.1,localhost",
            ),
            (
                &[("ALL_PROXY", "socks5://p"), ("NO_PROXY", "a"), ("no_proxy", "b")],
                "b,127.0.0.1,localhost",
                "a,127.0.0.1,localhost",
            ),
            (&[("all_proxy", "p"), ("no_proxy", "")], "127.0.0.1,localhost", "127.0.0.1,localhost"),
        ];
        for (agent, lower, upper) in rows {
            let variables = environment(agent, &[]);
            let values = ["no_proxy", "NO_PROXY"].map(|name| variables.get(name).map(String::as_str));
            assert_eq!(values, [Some(lower), Some(upper)], "{agent:?}");
        }
    }

    #[test]
    fn worker_token_is_never_passed_to_trainers() {
        let names = ["SIMPLETUNER_WORKER_TOKEN", "SIMPLETUNER_WORKER_TOKEN_FILE"];
        let variables = environment(&names.map(|name| (name, "wt_secret")), &names);
        assert!(variables.values().all(|value| !value.contains("wt_")));
    }
}
