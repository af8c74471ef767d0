//! Splits a query into terms.

use super::QueryParseError;

/// The operator between key and value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchOperator {
    /// `:`
    Contains,
    /// `=`
    Equals,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

impl SearchOperator {
    /// All operators; longer ones come first.
    pub const ALL: [Self; 6] = [Self::AtMost, Self::AtLeast, Self::Contains, Self::Equals, Self::Less, Self::Greater];

    /// Returns the operator as written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Contains => ":",
            Self::Equals => "=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
        }
    }

    /// Returns whether it compares numbers or times.
    pub const fn is_comparison(self) -> bool {
        matches!(self, Self::Less | Self::AtMost | Self::Greater | Self::AtLeast)
    }
}

/// A term as written.
#[derive(Default)]
pub(super) struct RawTerm {
    pub negated: bool,
    pub text: String,
    /// The position of the first unquoted operator.
    operator: Option<(usize, SearchOperator)>,
    has_content: bool,
}

impl RawTerm {
    /// Key, operator and value; none of a word alone.
    pub fn parts(&self) -> Option<(&str, SearchOperator, &str)> {
        let (at, operator) = self.operator?;
        Some((&self.text[..at], operator, &self.text[at + operator.as_str().len()..]))
    }
}

pub(super) fn tokenize(text: &str) -> Result<Vec<RawTerm>, QueryParseError> {
    let (mut terms, mut term, mut quoted) = (Vec::new(), RawTerm::default(), false);
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let next = rest.clone().next();
        match c {
            '"' => (quoted, term.has_content) = (!quoted, true),
            '\\' if quoted && next.is_some_and(|next| ['"', '\\'].contains(&next)) => {
                term.text.extend(rest.next());
            }
            c if c.is_whitespace() && !quoted => {
                terms.extend(Some(std::mem::take(&mut term)).filter(|term| term.has_content));
            }
            '-' if !term.has_content && !term.negated && next.is_some_and(|next| !next.is_whitespace()) => {
                term.negated = true;
            }
            c => {
                term.has_content = true;
                let at = term.text.len();
                term.text.push(c);
                if quoted || term.operator.is_some() {
                    continue;
                }
                let follows = |operator: &SearchOperator| {
                    let mut written = operator.as_str().chars();
                    written.next() == Some(c) && written.next().is_none_or(|second| next == Some(second))
                };
                if let Some(operator) = SearchOperator::ALL.into_iter().find(follows) {
                    term.operator = Some((at, operator));
                    if operator.as_str().len() > 1 {
                        term.text.extend(rest.next());
                    }
                }
            }
        }
    }
    if quoted {
        return Err(QueryParseError::UnclosedQuote(term.text));
    }
    terms.extend(Some(term).filter(|term| term.has_content));
    Ok(terms)
}

/// Quotes a text, so that it is read literally.
pub fn quote(text: &str) -> String {
    let needs_no_quotes = |c: char| !c.is_whitespace() && !['"', '\\', ':', '=', '<', '>'].contains(&c);
    if !text.is_empty() && !text.starts_with('-') && text.chars().all(needs_no_quotes) {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
