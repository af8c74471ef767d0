//! Which GPUs a process sees, by the variables that the vendors' libraries read.

use super::{Hardware, is_made_up};

/// For what has to be counted and is not named.
const CUDA: &str = "CUDA_VISIBLE_DEVICES";
const HIP: &str = "HIP_VISIBLE_DEVICES";
/// Below HIP: what it hides has no number above.
const ROCR: &str = "ROCR_VISIBLE_DEVICES";
const LEVEL_ZERO: &str = "ZE_AFFINITY_MASK";

/// Only what the agent's own variables show, in their order.
pub fn restricted(mut found: Hardware, variable: impl Fn(&str) -> Option<String>) -> Hardware {
    // Each counts in what the one before it has left.
    let asked: Vec<Option<String>> = match found.accelerator.as_str() {
        "cuda" => vec![variable(CUDA)],
        "rocm" => vec![variable(ROCR), variable(HIP).or_else(|| variable(CUDA))],
        // `1.0` is a part of the GPU 1.
        "xpu" => vec![variable(LEVEL_ZERO).map(|mask| mask.replace(".0", ""))],
        _ => Vec::new(),
    };
    let was_there = !found.gpus.is_empty();
    for list in asked.into_iter().flatten() {
        let mut kept = Vec::new();
        for wanted in list.split(',').map(str::trim) {
            let place = wanted.parse::<usize>().ok();
            let is_meant =
                |(at, uuid): (usize, &str)| Some(at) == place || (wanted.len() >= 5 && uuid.starts_with(wanted));
            let at = (0..found.gpus.len()).find(|at| is_meant((*at, &found.gpus[*at].uuid)));
            // As CUDA does: the first unknown one ends the list.
            let Some(at) = at else { break };
            kept.push(found.gpus[at].clone());
        }
        found.gpus = kept;
    }
    if was_there && found.gpus.is_empty() {
        "cpu".clone_into(&mut found.accelerator);
    }
    found
}

/// What shows the granted GPUs and no other; nothing without a grant.
pub fn variables(hardware: &Hardware, granted: &[String]) -> Vec<(&'static str, String)> {
    if granted.is_empty() {
        return Vec::new();
    }
    let number = |uuid: &String| {
        let known = hardware.gpus.iter().find(|gpu| gpu.uuid == *uuid);
        known.map_or_else(|| uuid.clone(), |gpu| gpu.index.to_string())
    };
    let list = |name: &dyn Fn(&String) -> String| granted.iter().map(name).collect::<Vec<_>>().join(",");
    // The library knows them by their own ids.
    let by_id = list(&|uuid| if is_made_up(uuid) { number(uuid) } else { uuid.clone() });
    match hardware.accelerator.as_str() {
        "rocm" => {
            let shown = list(&|uuid| if uuid.starts_with("GPU-") { uuid.clone() } else { number(uuid) });
            // Those above it count what it has left, and must agree.
            let counted = (0..granted.len()).map(|at| at.to_string()).collect::<Vec<_>>().join(",");
            vec![(ROCR, shown), (HIP, counted.clone()), (CUDA, counted)]
        }
        "xpu" => vec![(LEVEL_ZERO, list(&number)), (CUDA, by_id)],
        _ => vec![(CUDA, by_id)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::tests::{two, uuids};

    fn shown(accelerator: &str, set: &[(&str, &str)]) -> Hardware {
        let found = Hardware { accelerator: accelerator.to_owned(), ..two() };
        restricted(found, |name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn the_agents_own_restriction_holds() {
        let cuda = |list: &str| shown("cuda", &[(CUDA, list)]);
        assert_eq!(uuids(&cuda("1")), ["GPU-1abc"]);
        assert_eq!(uuids(&cuda("GPU-1a,0")), ["GPU-1abc", "GPU-0abc"]);
        assert_eq!(uuids(&cuda("0,9,1")), ["GPU-0abc"]);
        let none = cuda("");
        assert_eq!((none.gpus.len(), none.accelerator.as_str()), (0, "cpu"));
        assert_eq!(shown("cuda", &[(HIP, "1")]), two());
    }

    #[test]
    fn other_vendors_have_their_own_words() {
        assert_eq!(uuids(&shown("rocm", &[(ROCR, "1")])), ["GPU-1abc"]);
        assert_eq!(uuids(&shown("rocm", &[(ROCR, "GPU-1abc,0"), (HIP, "1")])), ["GPU-0abc"]);
        assert_eq!(uuids(&shown("rocm", &[(CUDA, "1")])), ["GPU-1abc"]);
        assert_eq!(uuids(&shown("xpu", &[(LEVEL_ZERO, "1.0")])), ["GPU-1abc"]);
        assert_eq!(uuids(&shown("mps", &[(CUDA, "")])), ["GPU-0abc", "GPU-1abc"]);
    }

    #[test]
    fn a_trainer_is_shown_what_was_granted() {
        let said = |accelerator: &str, granted: &[&str]| {
            let hardware = Hardware { accelerator: accelerator.to_owned(), ..two() };
            let granted: Vec<String> = granted.iter().map(|uuid| (*uuid).to_owned()).collect();
            variables(&hardware, &granted)
        };
        let is = |pairs: &[(&'static str, &str)]| -> Vec<(&'static str, String)> {
            pairs.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
        };
        assert_eq!(said("cuda", &[]), []);
        assert_eq!(said("cuda", &["GPU-1abc", "GPU-0abc"]), is(&[(CUDA, "GPU-1abc,GPU-0abc")]));
        assert_eq!(said("rocm", &["GPU-1abc"]), is(&[(ROCR, "GPU-1abc"), (HIP, "0"), (CUDA, "0")]));
        assert_eq!(said("xpu", &["GPU-1abc"]), is(&[(LEVEL_ZERO, "1"), (CUDA, "GPU-1abc")]));
        let mut made_up = two();
        made_up.gpus[1].uuid = "h-gpu-1".to_owned();
        let granted = ["h-gpu-1".to_owned(), "GPU-0abc".to_owned()];
        assert_eq!(variables(&made_up, &granted), is(&[(CUDA, "1,GPU-0abc")]));
    }
}
