//! Parses labels of the command line.

use app::domain::labels::Labels;

/// Parses `key=value` pairs.
///
/// # Errors
/// A message for the user.
pub fn parse(pairs: &[String]) -> Result<Labels, String> {
    let mut labels = Labels::default();
    for pair in pairs {
        let (key, value) =
            pair.split_once('=').ok_or_else(|| format!("--label {pair:?} must have the form key=value"))?;
        labels.0.insert(key.trim().to_owned(), value.trim().to_owned());
    }
    labels.validate().map_err(|error| error.to_string())?;
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_pairs_are_parsed_and_validated() {
        let parse_pair = |pair: &str| parse(&[pair.to_owned()]);
        assert!(parse_pair("a=b=c").is_ok_and(|labels| labels.0["a"] == "b=c"));
        assert!(parse_pair(" a = b ").is_ok_and(|labels| labels.0["a"] == "b"));
        assert!(parse_pair("a").is_err_and(|error| error.contains("key=value")));
        assert!(parse_pair("=b").is_err());
    }
}
