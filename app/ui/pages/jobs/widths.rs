//! The widths of columns that the user has set. As text, they are part of the address: `name:320,metric.loss:96`.

use std::collections::BTreeMap;

use crate::domain::job_search::columns::MAX_COLUMNS;

/// In CSS pixels, as all widths.
const MIN_WIDTH: u16 = 48;
const MAX_WIDTH: u16 = 800;
/// The key of the name, which is no other column.
pub(super) const NAME: &str = "name";

/// Widths by the names of columns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ColumnWidths(BTreeMap<String, u16>);

impl ColumnWidths {
    /// Parses the text form. What is no width is ignored.
    pub fn parse(text: &str) -> Self {
        let parse = |part: &str| {
            let (column, width) = part.rsplit_once(':')?;
            Some((column.to_owned(), clamp(width.parse().ok()?)))
        };
        Self(text.split(',').filter_map(parse).take(MAX_COLUMNS + 1).collect())
    }

    pub fn get(&self, column: &str) -> Option<u16> {
        self.0.get(column).copied()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns them with another width of a column.
    #[must_use]
    pub fn with(&self, column: &str, width: u16) -> Self {
        let mut widths = self.0.clone();
        widths.insert(column.to_owned(), width);
        Self(widths)
    }

    /// The text form; none if no column has a width.
    pub fn to_text(&self) -> Option<String> {
        let texts: Vec<_> = self.0.iter().map(|(column, width)| format!("{column}:{width}")).collect();
        (!texts.is_empty()).then(|| texts.join(","))
    }
}

impl FromIterator<(String, f64)> for ColumnWidths {
    /// Collects what the browser has measured. Hidden columns have no width.
    fn from_iter<T: IntoIterator<Item = (String, f64)>>(measured: T) -> Self {
        let shown = measured.into_iter().filter(|(_, width)| *width > 0.0);
        Self(shown.map(|(column, width)| (column, clamp(width))).collect())
    }
}

/// Returns the allowed width that is nearest.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 48 to 800")]
pub(super) fn clamp(width: f64) -> u16 {
    width.max(f64::from(MIN_WIDTH)).min(f64::from(MAX_WIDTH)).round() as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> String {
        ColumnWidths::parse(text).to_text().unwrap_or_default()
    }

    #[test]
    fn widths_round_trip_and_nonsense_is_ignored() {
        let all = "metric.val:loss:96,name:320,status:120";
        assert_eq!(text(all), all);
        assert_eq!(text("name:1,status:9999,user,id:x,loss:NaN,:,worker:inf"), "loss:48,name:48,status:800,worker:800");
        assert_eq!(ColumnWidths::parse("").to_text(), None);
        let many = (0..100).map(|n| format!("metric.m{n}:90")).collect::<Vec<_>>().join(",");
        assert_eq!(ColumnWidths::parse(&many).0.len(), MAX_COLUMNS + 1);
    }

    #[test]
    fn a_width_is_set_and_hidden_columns_have_none() {
        assert_eq!(
            ColumnWidths::parse("name:320").with("status", 120).to_text().as_deref(),
            Some("name:320,status:120")
        );
        let measured = [("user".to_owned(), 0.0), ("name".to_owned(), 120.4), ("id".to_owned(), 12.0)];
        assert_eq!(ColumnWidths::from_iter(measured).to_text().as_deref(), Some("id:48,name:120"));
    }
}
