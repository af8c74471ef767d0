//! The variables of the vendors' libraries that decide which GPUs a process sees.

use super::{Hardware, is_placeholder};

/// For GPUs that must be numbered, not named.
const CUDA: &str = "CUDA_VISIBLE_DEVICES";
const HIP: &str = "HIP_VISIBLE_DEVICES";
/// Applied before HIP: a GPU that it hides has no number there.
const ROCR: &str = "ROCR_VISIBLE_DEVICES";
const LEVEL_ZERO: &str = "ZE_AFFINITY_MASK";

/// Keeps the GPUs that the agent's own variables show, in their order.
pub fn filter_visible(mut found: Hardware, variable: impl Fn(&str) -> Option<String>) -> Hardware {
    // Each variable numbers the GPUs that the previous one left.
    let lists: Vec<Option<String>> = match found.accelerator.as_str() {
        "cuda" => vec![variable(CUDA)],
        "rocm" => vec![variable(ROCR), variable(HIP).or_else(|| variable(CUDA))],
        // `1.0` is a part of GPU 1.
        "xpu" => vec![variable(LEVEL_ZERO).map(|mask| mask.replace(".0", ""))],
        _ => Vec::new(),
    };
    let had_gpus = !found.gpus.is_empty();
    for list in lists.into_iter().flatten() {
        let mut visible = Vec::new();
        for entry in list.split(',').map(str::trim) {
            let index = entry.parse::<usize>().ok();
            let matches =
                |(at, uuid): (usize, &str)| Some(at) == index || (entry.len() >= 5 && uuid.starts_with(entry));
            let at = (0..found.gpus.len()).find(|at| matches((*at, &found.gpus[*at].uuid)));
            // As in CUDA, the first unknown one ends the list.
            let Some(at) = at else { break };
            visible.push(found.gpus[at].clone());
        }
        found.gpus = visible;
    }
    if had_gpus && found.gpus.is_empty() {
        "cpu".clone_into(&mut found.accelerator);
    }
    found
}

/// The variables that show only the granted GPUs; none without a grant.
pub fn visibility_env(hardware: &Hardware, granted: &[String]) -> Vec<(&'static str, String)> {
    if granted.is_empty() {
        return Vec::new();
    }
    let number = |uuid: &String| {
        let known = hardware.gpus.iter().find(|gpu| gpu.uuid == *uuid);
        known.map_or_else(|| uuid.clone(), |gpu| gpu.index.to_string())
    };
    let list = |name: &dyn Fn(&String) -> String| granted.iter().map(name).collect::<Vec<_>>().join(",");
    // The library knows them by their own IDs.
    let by_id = list(&|uuid| if is_placeholder(uuid) { number(uuid) } else { uuid.clone() });
    match hardware.accelerator.as_str() {
        "rocm" => {
            let visible = list(&|uuid| if uuid.starts_with("GPU-") { uuid.clone() } else { number(uuid) });
            // HIP and CUDA number only the GPUs that ROCR leaves, so both lists are the same.
            let numbers = (0..granted.len()).map(|at| at.to_string()).collect::<Vec<_>>().join(",");
            vec![(ROCR, visible), (HIP, numbers.clone()), (CUDA, numbers)]
        }
        "xpu" => vec![(LEVEL_ZERO, list(&number)), (CUDA, by_id)],
        _ => vec![(CUDA, by_id)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::gpu::tests::{two_gpus, uuids};

    fn visible_gpus(accelerator: &str, set: &[(&str, &str)]) -> Hardware {
        let found = Hardware { accelerator: accelerator.to_owned(), ..two_gpus() };
        filter_visible(found, |name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn agents_own_device_restriction_applies() {
        let cuda = |list: &str| visible_gpus("cuda", &[(CUDA, list)]);
        assert_eq!(uuids(&cuda("1")), ["GPU-1abc"]);
        assert_eq!(uuids(&cuda("GPU-1a,0")), ["GPU-1abc", "GPU-0abc"]);
        assert_eq!(uuids(&cuda("0,9,1")), ["GPU-0abc"]);
        let none = cuda("");
        assert_eq!((none.gpus.len(), none.accelerator.as_str()), (0, "cpu"));
        assert_eq!(visible_gpus("cuda", &[(HIP, "1")]), two_gpus());
    }

    #[test]
    fn other_vendors_use_their_own_variables() {
        assert_eq!(uuids(&visible_gpus("rocm", &[(ROCR, "1")])), ["GPU-1abc"]);
        assert_eq!(uuids(&visible_gpus("rocm", &[(ROCR, "GPU-1abc,0"), (HIP, "1")])), ["GPU-0abc"]);
        assert_eq!(uuids(&visible_gpus("rocm", &[(CUDA, "1")])), ["GPU-1abc"]);
        assert_eq!(uuids(&visible_gpus("xpu", &[(LEVEL_ZERO, "1.0")])), ["GPU-1abc"]);
        assert_eq!(uuids(&visible_gpus("mps", &[(CUDA, "")])), ["GPU-0abc", "GPU-1abc"]);
    }

    #[test]
    fn trainer_sees_only_granted_gpus() {
        let environment = |accelerator: &str, granted: &[&str]| {
            let hardware = Hardware { accelerator: accelerator.to_owned(), ..two_gpus() };
            let granted: Vec<String> = granted.iter().map(|uuid| (*uuid).to_owned()).collect();
            visibility_env(&hardware, &granted)
        };
        let expected = |pairs: &[(&'static str, &str)]| -> Vec<(&'static str, String)> {
            pairs.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
        };
        assert_eq!(environment("cuda", &[]), []);
        assert_eq!(environment("cuda", &["GPU-1abc", "GPU-0abc"]), expected(&[(CUDA, "GPU-1abc,GPU-0abc")]));
        assert_eq!(environment("rocm", &["GPU-1abc"]), expected(&[(ROCR, "GPU-1abc"), (HIP, "0"), (CUDA, "0")]));
        assert_eq!(environment("xpu", &["GPU-1abc"]), expected(&[(LEVEL_ZERO, "1"), (CUDA, "GPU-1abc")]));
        let mut hardware = two_gpus();
        hardware.gpus[1].uuid = "h-gpu-1".to_owned();
        let granted = ["h-gpu-1".to_owned(), "GPU-0abc".to_owned()];
        assert_eq!(visibility_env(&hardware, &granted), expected(&[(CUDA, "1,GPU-0abc")]));
    }
}
