//! In which order workers are listed, and where a page of the list begins.

use std::cmp::Ordering;
use std::fmt;

/// What they are ordered by; those that are alike in it come by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum By {
    /// Their names, which are unique.
    #[default]
    Name,
    /// Where they stand, in the order of a life.
    Status,
    /// When they were last heard of; those that never were come first.
    Seen,
    /// How many GPUs they have.
    Gpus,
}

impl By {
    /// Each.
    pub const ALL: [Self; 4] = [Self::Name, Self::Status, Self::Seen, Self::Gpus];

    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Status => "status",
            Self::Seen => "seen",
            Self::Gpus => "gpus",
        }
    }
}

/// See the module. Its word is that of [`By`], with a `-` before it for the other way round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Order {
    /// By what.
    pub by: By,
    /// Whether the largest comes first.
    pub descending: bool,
}

impl Order {
    /// Reads its word.
    pub fn parse(word: &str) -> Option<Self> {
        let (descending, name) = word.strip_prefix('-').map_or((false, word), |name| (true, name));
        let by = By::ALL.into_iter().find(|by| by.as_str() == name)?;
        Some(Self { by, descending })
    }

    /// How two places stand to each other.
    pub fn compare(self, left: Place<'_>, right: Place<'_>) -> Ordering {
        let turned = |ordering: Ordering| if self.descending { ordering.reverse() } else { ordering };
        match self.by {
            By::Name => turned(left.name.cmp(right.name)),
            _ => turned(left.worth.cmp(&right.worth)).then_with(|| left.name.cmp(right.name)),
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.descending { "-" } else { "" }, self.by.as_str())
    }
}

/// A worker's place in the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'n> {
    /// What it is ordered by, as a number; by name, nothing.
    pub worth: i64,
    /// Its name.
    pub name: &'n str,
}

impl<'n> Place<'n> {
    /// Reads what [`Place::cursor`] wrote.
    pub fn parse(order: Order, cursor: &'n str) -> Option<Self> {
        match order.by {
            By::Name => Some(Self { worth: 0, name: cursor }),
            _ => cursor.split_once(':').and_then(|(worth, name)| Some(Self { worth: worth.parse().ok()?, name })),
        }
    }

    /// The place as text: it stays where it is, whatever comes or goes before it.
    pub fn cursor(self, order: Order) -> String {
        match order.by {
            By::Name => self.name.to_owned(),
            _ => format!("{}:{}", self.worth, self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words() {
        for by in By::ALL {
            for descending in [false, true] {
                let order = Order { by, descending };
                assert_eq!(Order::parse(&order.to_string()), Some(order));
            }
        }
        assert_eq!(["", "-", "age", "--name"].map(Order::parse), [None; 4]);
    }

    #[test]
    fn those_that_are_alike_come_by_name_whichever_way_round() {
        let order = |word| Order::parse(word).expect("an order");
        let (few, many) = (Place { worth: 1, name: "b" }, Place { worth: 8, name: "a" });
        let alike = Place { worth: 1, name: "c" };
        assert_eq!(order("gpus").compare(few, many), Ordering::Less);
        assert_eq!(order("-gpus").compare(few, many), Ordering::Greater);
        assert_eq!([order("gpus"), order("-gpus")].map(|by| by.compare(few, alike)), [Ordering::Less; 2]);
        assert_eq!(order("-name").compare(few, alike), Ordering::Greater);
    }

    proptest! {
        #[test]
        fn a_cursor_is_read_as_it_was_written(worth in any::<i64>(), name in ".{1,12}", which in 0..4_usize) {
            let order = Order { by: By::ALL[which], descending: false };
            let worth = if order.by == By::Name { 0 } else { worth };
            let place = Place { worth, name: &name };
            let cursor = place.cursor(order);
            prop_assert_eq!(Place::parse(order, &cursor), Some(place));
        }
    }
}
