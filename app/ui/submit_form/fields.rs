//! The table of the fields.

#[cfg(feature = "ssr")]
use std::collections::BTreeSet;

use super::SubmitField;
#[cfg(feature = "ssr")]
use super::{Control, InvalidText, Section, ServerField};
#[cfg(feature = "ssr")]
use crate::command_line::duration::parse_duration;
#[cfg(feature = "ssr")]
use crate::domain::allowed_values::AllowedValues;
#[cfg(feature = "ssr")]
use crate::domain::job_share::JobClass;
#[cfg(feature = "ssr")]
use crate::domain::labels::Labels;
#[cfg(feature = "ssr")]
use crate::domain::sandbox::SandboxLevel;
#[cfg(feature = "ssr")]
use crate::protocol::agents::dispatch::CheckpointPolicy;
#[cfg(feature = "ssr")]
use crate::protocol::jobs::SubmitJob;
use crate::protocol::jobs::overrides;
#[cfg(feature = "ssr")]
use crate::protocol::status::Target;

/// The fields, in their order on the page.
pub static SUBMIT_FIELDS: &[SubmitField] = &[
    SubmitField {
        name: "name",
        api_names: &["name"],
        values: |job| text(job.name.as_ref()),
        form_values: unchanged,
        in_every_address: false,
        #[cfg(feature = "ssr")]
        server: ServerField {
            flag: "name",
            label: |words| words.server_pages().train.name,
            hint: Some(|words| words.server_pages().train.name_hint),
            section: Section::Description,
            control: Control::Text,
            parse: |job, text| {
                job.name = Some(text.to_owned());
                Ok(())
            },
        },
    },
    SubmitField {
        name: "tags",
        api_names: &["tags"],
        values: |job| job.tags.iter().cloned().collect(),
        form_values: |tags| joined(&tags, ", "),
        in_every_address: false,
        #[cfg(feature = "ssr")]
        server: ServerField {
            flag: "tag",
            label: |words| words.server_pages().train.tags,
            hint: Some(|words| words.server_pages().train.tags_hint),
            section: Section::Description,
            control: Control::Text,
            parse: |job, text| {
                job.tags = parse_tags(text);
                Ok(())
            },
        },
    },
    SubmitField {
        name: "notes",
        api_names: &["notes"],
        values: |job| text(job.notes.as_ref()),
        form_values: unchanged,
        in_every_address: false,
        #[cfg(feature = "ssr")]
        server: ServerField {
            flag: "notes",
            label: |words| words.server_pages().train.notes,
            hint: None,
            section: Section::Description,
            control: Control::Lines,
            parse: |job, text| {
                job.notes = Some(text.to_owned());
                Ok(())
            },
        },
    },
    SubmitField {
        name: "gpus",
        api_names: &["gpu_count"],
        values: |job| text(job.gpu_count),
        form_values: unchanged,
        in_every_address: false,
        #[cfg(feature = "ssr")]
        server: ServerField {
            flag: "gpus",
            label: |words| words.server_pages().train.gpu_count,
            hint: Some(|words| words.server_pages().train.gpu_count_hint),
            section: Section::Requirements,
            control: Control::Number(SubmitJob::GPU_COUNTS),
            parse: |job, text| number(text, SubmitJob::GPU_COUNTS).map(|count| job.gpu_count = Some(count)),
        },
    },
    SubmitField {
        name: "min_vram",
        api_names: &["min_vram_gb"],
        values: |job| text(job.min_vram_gb),
        form_values: unchanged,
        in_every_address: false,
        #[cfg(feature = "ssr")]
        server: ServerField {
            flag: "min-vram",
            label: |words| words.server_pages().train.min_vram,
            hint: Some(|words| words.server_pages().train.min_vram_hint),
            section: Section::Requirements,
            control: Control::Number(AllowedValues::Positive),
            parse: |job, text| number(text, AllowedValues::Positive).map(|gb| job.min_vram_gb = Some(gb)),
        },
    },
    SubmitField {
        name: "accelerator",
        api_names: &["accelerator_type"],
        values: |job| text(job.accelerator_type.as_ref()),
        form_values: unchanged,
        in_every_address: false,
        #[cfg(feature = "ssr")]
        server: ServerField {
            flag: "accelerator",
            label: |words| words.server_pages().train.accelerator,
            hint: None,
            section: Section::Requirements,
            control: Control::Select(&[
                ("", |words| words.server_pages().train.any),
                ("cuda", |_| "cuda"),
                ("rocm", |_| "rocm"),
                ("mps", |_| "mps"),
                ("xpu", |_| "xpu"),
                ("cpu", |_| "cpu"),
            ]),
            parse: |job, text| {
                job.accelerator_type = Some(text.to_owned());
                Ok(())
            },
        },
    },
    SubmitField {
        name: "labels",
        api_names: &["worker_labels", "invalid_labels"],
        values: |job| job.worker_labels.0.iter().map(|(key, value)| format!("{key}={value}")).collect(),
        form_values: |labels| joined(&labels, ","),
        in_every_address: false,
        #[cfg(feature = "ssr")]
        server: ServerField {
            flag: "label",
            label: |words| words.server_pages().train.labels,
            hint: Some(|words| words.server_pages().train.labels_hint),
            section: Section::Separate,
            control: Control::CustomWithError,
            parse: |job, text| {
                let (labels, parsed) = Labels::parse_entries(text.split(['\n', ',']));
                job.worker_labels = labels;
                parsed.map_err(InvalidText::Labels)
            },
        },
    },
    SubmitField {
        name: "target",
        api_names: &["target"],
        values: |job| vec![job.target.as_str().to_owned()],
        form_values: unchanged,
        in_every_address: true,
        #[cfg(feature = "ssr")]
        server: ServerField {
            flag: "target",
            label: |words| words.server_pages().train.target,
            hint: None,
            section: Section::Separate,
            control: Control::Custom,
            parse: |job, text| {
                job.target = Target::parse(text).unwrap_or(job.target);
                Ok(())
            },
        },
    },
    SubmitField {
        name: "overrides",
        api_names: &["overrides"],
        values: |job| overrides::to_lines(&job.overrides),
        form_values: |lines| joined(&lines, "\n"),
        in_every_address: false,
        #[cfg(feature = "ssr")]
        server: ServerField {
            flag: "set",
            label: |words| words.server_pages().train.settings,
            hint: Some(|words| words.server_pages().train.settings_hint),
            section: Section::Separate,
            control: Control::CustomWithError,
            parse: |job, text| {
                let values = overrides::parse(text.lines());
                values.map(|values| job.overrides = values).map_err(|_| InvalidText::Allowed(AllowedValues::Settings))
            },
        },
    },
    SubmitField {
        name: "priority",
        api_names: &["priority"],
        values: |job| text(Some(job.priority)),
        form_values: unchanged,
        in_every_address: true,
        #[cfg(feature = "ssr")]
        server: ServerField {
            flag: "priority",
            label: |words| words.server_pages().train.priority,
            hint: Some(|words| words.server_pages().train.priority_hint),
            section: Section::Limits,
            control: Control::Number(SubmitJob::PRIORITIES),
            parse: |job, text| number(text, SubmitJob::PRIORITIES).map(|priority| job.priority = priority),
        },
    },
    SubmitField {
        name: "team",
        api_names: &["team", "team_not_found", "not_team_member"],
        values: |job| text(job.team.as_ref()),
        form_values: unchanged,
        in_every_address: false,
        #[cfg(feature = "ssr")]
        server: ServerField {
            flag: "team",
            label: |words| words.work.team,
            hint: Some(|words| words.server_pages().train.team_hint),
            section: Section::Limits,
            control: Control::Text,
            parse: |job, text| {
                job.team = Some(text.to_owned());
                Ok(())
            },
        },
    },
    SubmitField {
        name: "class",
        api_names: &["class"],
        values: |job| vec![job.class.as_str().to_owned()],
        form_values: unchanged,
        in_every_address: false,
        #[cfg(feature = "ssr")]
        server: ServerField {
            flag: "class",
            label: |words| words.work.class,
            hint: Some(|words| words.server_pages().train.class_hint),
            section: Section::Limits,
            control: Control::Select(&[
                ("normal", |words| words.server_pages().train.class_normal),
                ("urgent", |words| words.work.class_urgent),
                ("idle", |words| words.work.class_idle),
            ]),
            parse: |job, text| {
                job.class = JobClass::parse(text).unwrap_or(job.class);
                Ok(())
            },
        },
    },
    SubmitField {
        name: "max_runtime",
        api_names: &["max_runtime_seconds"],
        values: |job| text(job.max_runtime_seconds),
        form_values: |seconds| seconds.into_iter().map(|seconds| format!("{seconds}s")).collect(),
        in_every_address: false,
        #[cfg(feature = "ssr")]
        server: ServerField {
            flag: "max-runtime",
            label: |words| words.server_pages().train.runtime,
            hint: Some(|words| words.server_pages().train.runtime_hint),
            section: Section::Limits,
            control: Control::Text,
            parse: |job, text| duration_seconds(text).map(|seconds| job.max_runtime_seconds = Some(seconds)),
        },
    },
    SubmitField {
        name: "max_retries",
        api_names: &["max_retries"],
        values: |job| text(Some(job.max_retries)),
        form_values: unchanged,
        in_every_address: false,
        #[cfg(feature = "ssr")]
        server: ServerField {
            flag: "max-retries",
            label: |words| words.server_pages().train.retries,
            hint: Some(|words| words.server_pages().train.retries_hint),
            section: Section::Limits,
            control: Control::Number(SubmitJob::RETRIES),
            parse: |job, text| number(text, SubmitJob::RETRIES).map(|retries| job.max_retries = retries),
        },
    },
    SubmitField {
        name: "retry_on_failure",
        api_names: &["retry_on_failure"],
        values: |job| text(job.retry_on_failure.then_some(true)),
        form_values: unchanged,
        in_every_address: false,
        #[cfg(feature = "ssr")]
        server: ServerField {
            flag: "retry-on-failure",
            label: |words| words.work.retry_on_failure,
            hint: Some(|words| words.server_pages().train.retry_on_failure_text),
            section: Section::Behavior,
            control: Control::Checkbox,
            parse: |job, text| {
                job.retry_on_failure = text == "true";
                Ok(())
            },
        },
    },
    SubmitField {
        name: "checkpoints",
        api_names: &["checkpoints"],
        values: |job| vec![job.checkpoints.as_str().to_owned()],
        form_values: unchanged,
        in_every_address: false,
        #[cfg(feature = "ssr")]
        server: ServerField {
            flag: "checkpoints",
            label: |words| words.work.checkpoints_to_upload,
            hint: Some(|words| words.server_pages().train.checkpoints_hint),
            section: Section::Behavior,
            control: Control::Select(&[
                ("last", |words| words.server_pages().train.upload_last),
                ("all", |words| words.work.upload_all),
                ("none", |words| words.work.upload_none),
            ]),
            parse: |job, text| {
                job.checkpoints = CheckpointPolicy::parse(text).unwrap_or(job.checkpoints);
                Ok(())
            },
        },
    },
    SubmitField {
        name: "sandbox",
        api_names: &["sandbox"],
        values: |job| vec![job.sandbox.as_str().to_owned()],
        form_values: unchanged,
        in_every_address: false,
        #[cfg(feature = "ssr")]
        server: ServerField {
            flag: "sandbox",
            label: |words| words.server_pages().train.sandbox,
            hint: Some(|words| words.server_pages().train.sandbox_hint),
            section: Section::Behavior,
            control: Control::Select(&[
                ("none", |words| words.server_pages().train.sandbox_none),
                ("files", |words| words.server_pages().train.sandbox_files),
                ("full", |words| words.server_pages().train.sandbox_full),
            ]),
            parse: |job, text| {
                job.sandbox = SandboxLevel::parse(text).unwrap_or(job.sandbox);
                Ok(())
            },
        },
    },
    SubmitField {
        name: "exclusive",
        api_names: &["exclusive"],
        values: |job| text(job.exclusive.then_some(true)),
        form_values: unchanged,
        in_every_address: false,
        #[cfg(feature = "ssr")]
        server: ServerField {
            flag: "exclusive",
            label: |words| words.server_pages().train.exclusive,
            hint: Some(|words| words.server_pages().train.exclusive_text),
            section: Section::Behavior,
            control: Control::Checkbox,
            parse: |job, text| {
                job.exclusive = text == "true";
                Ok(())
            },
        },
    },
    SubmitField {
        name: "secret",
        api_names: &["secrets"],
        values: |job| job.secrets.clone().unwrap_or_default(),
        form_values: unchanged,
        in_every_address: false,
        #[cfg(feature = "ssr")]
        server: ServerField {
            flag: "secret",
            label: |words| words.server_pages().train.secrets,
            hint: Some(|words| words.server_pages().train.secrets_hint),
            section: Section::Separate,
            control: Control::Custom,
            parse: |job, text| {
                job.secrets = Some(text.lines().map(str::to_owned).collect());
                Ok(())
            },
        },
    },
];

/// Parses tags that are separated by commas.
#[cfg(feature = "ssr")]
pub fn parse_tags(text: &str) -> BTreeSet<String> {
    text.split(',').map(str::trim).filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
}

fn text(value: Option<impl ToString>) -> Vec<String> {
    value.iter().map(ToString::to_string).collect()
}

fn unchanged(values: Vec<String>) -> Vec<String> {
    values
}

fn joined(values: &[String], separator: &str) -> Vec<String> {
    if values.is_empty() { Vec::new() } else { vec![values.join(separator)] }
}

#[cfg(feature = "ssr")]
fn number<T: std::str::FromStr>(text: &str, allowed: AllowedValues) -> Result<T, InvalidText> {
    text.parse().map_err(|_| InvalidText::Allowed(allowed))
}

/// Parses a duration as in the agent's settings into seconds: `600`, `90s`, `10m`, `2h`, `1d`.
#[cfg(feature = "ssr")]
fn duration_seconds(text: &str) -> Result<u32, InvalidText> {
    let seconds = parse_duration(text).ok().and_then(|duration| u32::try_from(duration.as_secs()).ok());
    seconds.ok_or(InvalidText::Allowed(AllowedValues::Duration))
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn durations_become_seconds() {
        let spans = ["600", "90s", "10m", "2h", "1d", "1 h"].map(|text| duration_seconds(text).ok());
        assert_eq!(spans, [Some(600), Some(90), Some(600), Some(7_200), Some(86_400), Some(3_600)]);
        for bad in ["h", "0m", "-1h", "99999999d", "x"] {
            assert!(duration_seconds(bad).is_err(), "{bad}");
        }
    }
}
