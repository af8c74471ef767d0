//! Secrets on the command line, which every user of this host can read in the process list.

/// Returns the flags that contain a secret, each with its alternative.
pub fn exposed_flags(args: impl Iterator<Item = String>) -> Vec<(&'static str, &'static str)> {
    let args: Vec<String> = args.collect();
    let value = |flag: &str| {
        let inline_value = |arg: &String| arg.strip_prefix(flag)?.strip_prefix('=').map(str::to_owned);
        let following_value = |window: &[String]| (window[0] == flag).then(|| window[1].clone());
        args.iter().find_map(inline_value).or_else(|| args.windows(2).find_map(following_value))
    };
    let has_token = value("--bootstrap-admin-token").is_some();
    let has_password = value("--database-url").is_some_and(|url| url_has_password(&url));
    [
        has_token.then_some(("--bootstrap-admin-token", "--bootstrap-admin-token-file")),
        has_password.then_some(("--database-url", "SIMPLETUNER_DATABASE_URL")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn url_has_password(url: &str) -> bool {
    let userinfo = url.split_once("://").and_then(|(_, rest)| rest.split_once('@'));
    userinfo.is_some_and(|(userinfo, _)| userinfo.contains(':')) || url.contains("password=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_on_the_command_line_are_reported() {
        let flags = |text: &str| -> Vec<&str> {
            exposed_flags(text.split(' ').map(str::to_owned)).into_iter().map(|(flag, _)| flag).collect()
        };
        assert_eq!(flags("server --bootstrap-admin-token st_1"), ["--bootstrap-admin-token"]);
        assert_eq!(flags("server --bootstrap-admin-token=st_1 -v"), ["--bootstrap-admin-token"]);
        assert_eq!(flags("server --database-url postgres://me:secret@db/x"), ["--database-url"]);
        assert_eq!(flags("server --database-url=postgres://db/x?password=secret"), ["--database-url"]);
        for harmless in
            ["server", "server --bootstrap-admin-token-file f", "server --database-url postgres://me@db:5432/x"]
        {
            assert!(flags(harmless).is_empty(), "{harmless}");
        }
    }
}
