//! Damaged files of an agent: cut off, or with zeros at the end.

use std::path::Path;
use std::sync::Arc;

use crate::disk::{Disk, Entry};
use crate::operation::Operation;
use crate::states::{CrashState, killed};

/// At how many positions each file is damaged.
const POSITIONS: usize = 16;

/// All damaged states after each of some numbers of operations.
pub fn damaged_states(operations: &[Operation], survivor: &Path, prefixes: &[usize]) -> Vec<CrashState> {
    let mut disk = Disk::default().with_survivor(Some(survivor.to_owned()));
    let mut states = Vec::new();
    for (operation, prefix) in operations.iter().zip(1..) {
        disk.apply(operation);
        if prefixes.contains(&prefix) {
            states.extend(damage_each_file(&disk, prefix));
        }
    }
    states
}

fn damage_each_file(disk: &Disk, prefix: usize) -> Vec<CrashState> {
    let mut states = Vec::new();
    for (name, entry) in disk.live.iter().filter(|(name, _)| !disk.survives(name)) {
        let Entry::File(file) = entry else { continue };
        let content = &disk.files[*file].live;
        let mut positions: Vec<usize> = (0..POSITIONS).map(|part| content.len() * part / POSITIONS).collect();
        positions.dedup();
        for at in positions.into_iter().filter(|at| *at < content.len()) {
            let mut zeroed = content.to_vec();
            zeroed[at..].fill(0);
            for (damage, bytes) in [("is cut off", content[..at].to_vec()), ("has zeros", zeroed)] {
                let mut state = killed(disk, prefix);
                state.variant = format!("{} {damage} from byte {at} of {}", name.display(), content.len());
                state.replace(*file, Arc::new(bytes));
                states.push(state);
            }
        }
    }
    states
}
