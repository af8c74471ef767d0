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

    /// The operator at the beginning of a text.
    fn at(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operator| text.starts_with(operator.as_str()))
    }

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
    loop {
        let operator = SearchOperator::at(rest.as_str());
        let Some(c) = rest.next() else { break };
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
                if let Some(operator) = operator {
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

/// The last term of a query that is being typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastTerm<'t> {
    /// The text before the term, with the `-` that excludes its matches.
    pub before: &'t str,
    /// Its key and operator, if it has one already.
    pub operator: Option<(&'t str, SearchOperator)>,
    /// What was typed of the word or the value, without its first quotation mark.
    pub value: &'t str,
}

impl<'t> LastTerm<'t> {
    /// Finds the last term.
    pub fn of(text: &'t str) -> Self {
        let (mut start, mut operator, mut quoted) = (0, None, false);
        for (at, c) in text.char_indices() {
            match c {
                '"' => quoted = !quoted,
                c if c.is_whitespace() && !quoted => (start, operator) = (at + c.len_utf8(), None),
                _ if quoted || operator.is_some() => {}
                '-' if at == start => start += 1,
                _ => operator = SearchOperator::at(&text[at..]).map(|found| (at, found)),
            }
        }
        let (before, value_at) = (&text[..start], operator.map_or(start, |(at, found)| at + found.as_str().len()));
        let operator = operator.map(|(at, found)| (&text[start..at], found));
        Self { before, operator, value: text[value_at..].trim_start_matches('"') }
    }
}

/// Quotes a text, so that it is read literally.
pub fn quote(text: &str) -> String {
    let needs_no_quotes = |c: char| !c.is_whitespace() && !['"', '\\', ':', '=', '<', '>'].contains(&c);
    if !text.is_empty() && !text.starts_with('-') && text.chars().all(needs_no_quotes) {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
