//! The address of the page of a configuration.

use leptos::prelude::*;
use leptos_router::hooks::{use_location, use_query_map};

use crate::protocol::percent_encoding;
use crate::ui::format::config_url;
use crate::ui::page_query::query_string;

/// What to show, as given in the address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConfigPageQuery {
    pub name: String,
    pub revision: Option<u32>,
    /// The revision to compare with.
    pub against: Option<u32>,
    /// The configuration to compare with, if it is another one.
    pub with: Option<String>,
    pub split: bool,
}

impl ConfigPageQuery {
    pub fn from_address() -> Self {
        // The router would decode the name a second time.
        let path = use_location().pathname.get_untracked();
        let name = percent_encoding::decode(path.rsplit('/').next().unwrap_or_default());
        use_query_map().with_untracked(|query| Self {
            revision: query.get("revision").and_then(|number| number.parse().ok()),
            against: query.get("against").and_then(|number| number.parse().ok()),
            with: query.get("with").filter(|other| !other.is_empty() && *other != name),
            split: query.get("view").as_deref() == Some("split"),
            name,
        })
    }

    pub fn url(&self) -> String {
        let number = |number: Option<u32>| number.map(|number| number.to_string());
        let view = self.split.then(|| "split".to_owned());
        let (revision, against) = (number(self.revision), number(self.against));
        let query = [("revision", revision), ("with", self.with.clone()), ("against", against), ("view", view)];
        config_url(&self.name) + &query_string(&query)
    }

    /// The same revision without a comparison.
    pub fn alone(&self) -> Self {
        Self { against: None, with: None, split: false, ..self.clone() }
    }
}
