//! Names of workers and configurations.

use app::domain::text::is_plain;

use super::error::InvalidInput;

/// The maximum length of a name, in characters.
const MAX_NAME: usize = 64;

/// Trims and validates a name.
pub fn checked_name(name: &str) -> Result<String, InvalidInput> {
    let name = name.trim();
    let is_valid = !name.is_empty() && is_plain(name, MAX_NAME);
    if is_valid { Ok(name.to_owned()) } else { Err(InvalidInput::Name(name.chars().take(40).collect())) }
}
