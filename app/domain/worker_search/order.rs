//! The order of the list of workers, and the start of its pages.

use std::cmp::Ordering;
use std::fmt;

/// The sort key; workers with equal keys are sorted by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WorkerSortKey {
    /// By name, which is unique.
    #[default]
    Name,
    /// By status, in the order of the life cycle.
    Status,
    /// By last contact; workers that never connected come first.
    Seen,
    /// By number of GPUs.
    Gpus,
}

impl WorkerSortKey {
    /// All sort keys.
    pub const ALL: [Self; 4] = [Self::Name, Self::Status, Self::Seen, Self::Gpus];

    /// Returns the name of the key.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Status => "status",
            Self::Seen => "seen",
            Self::Gpus => "gpus",
        }
    }
}

/// An order. As text, the name of the [`WorkerSortKey`], with a `-` prefix for descending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerOrder {
    /// The sort key.
    pub key: WorkerSortKey,
    /// Whether the largest value comes first.
    pub descending: bool,
}

impl WorkerOrder {
    /// Parses the text form.
    pub fn parse(text: &str) -> Option<Self> {
        let (descending, name) = text.strip_prefix('-').map_or((false, text), |name| (true, name));
        let key = WorkerSortKey::ALL.into_iter().find(|key| key.as_str() == name)?;
        Some(Self { key, descending })
    }

    /// Compares two positions.
    pub fn compare(self, left: WorkerPosition<'_>, right: WorkerPosition<'_>) -> Ordering {
        let directed = |ordering: Ordering| if self.descending { ordering.reverse() } else { ordering };
        match self.key {
            WorkerSortKey::Name => directed(left.name.cmp(right.name)),
            _ => directed(left.sort_value.cmp(&right.sort_value)).then_with(|| left.name.cmp(right.name)),
        }
    }
}

impl fmt::Display for WorkerOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.descending { "-" } else { "" }, self.key.as_str())
    }
}

/// A worker's position in the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerPosition<'n> {
    /// The value of the sort key, as a number; 0 if sorted by name.
    pub sort_value: i64,
    /// Its name.
    pub name: &'n str,
}

impl<'n> WorkerPosition<'n> {
    /// Parses the text of [`WorkerPosition::to_cursor`].
    pub fn parse(order: WorkerOrder, cursor: &'n str) -> Option<Self> {
        match order.key {
            WorkerSortKey::Name => Some(Self { sort_value: 0, name: cursor }),
            _ => cursor.split_once(':').and_then(|(value, name)| Some(Self { sort_value: value.parse().ok()?, name })),
        }
    }

    /// Returns the position as text: it stays valid when workers before it are added or removed.
    pub fn to_cursor(self, order: WorkerOrder) -> String {
        match order.key {
            WorkerSortKey::Name => self.name.to_owned(),
            _ => format!("{}:{}", self.sort_value, self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sort_orders_are_parsed() {
        for key in WorkerSortKey::ALL {
            for descending in [false, true] {
                let order = WorkerOrder { key, descending };
                assert_eq!(WorkerOrder::parse(&order.to_string()), Some(order));
            }
        }
        assert_eq!(["", "-", "age", "--name"].map(WorkerOrder::parse), [None; 4]);
    }

    #[test]
    fn equal_keys_are_sorted_by_name_in_both_directions() {
        let order = |text| WorkerOrder::parse(text).expect("an order");
        let (few, many) = (WorkerPosition { sort_value: 1, name: "b" }, WorkerPosition { sort_value: 8, name: "a" });
        let equal = WorkerPosition { sort_value: 1, name: "c" };
        assert_eq!(order("gpus").compare(few, many), Ordering::Less);
        assert_eq!(order("-gpus").compare(few, many), Ordering::Greater);
        assert_eq!([order("gpus"), order("-gpus")].map(|order| order.compare(few, equal)), [Ordering::Less; 2]);
        assert_eq!(order("-name").compare(few, equal), Ordering::Greater);
    }

    proptest! {
        #[test]
        fn cursor_round_trips(sort_value in any::<i64>(), name in ".{1,12}", key_index in 0..4_usize) {
            let order = WorkerOrder { key: WorkerSortKey::ALL[key_index], descending: false };
            let sort_value = if order.key == WorkerSortKey::Name { 0 } else { sort_value };
            let position = WorkerPosition { sort_value, name: &name };
            let cursor = position.to_cursor(order);
            prop_assert_eq!(WorkerPosition::parse(order, &cursor), Some(position));
        }
    }
}
