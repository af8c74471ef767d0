//! Generates Rust code from the dashboard's sentences (`app/locales/*.json`) and rejects incomplete languages. Has the
//! program compiled again when a file is added to a folder that it embeds.

#[cfg(any(feature = "ssr", feature = "hydrate"))]
#[path = "build/mod.rs"]
mod locales;

fn main() {
    for folder in [
        "app/locales",
        "src/server/store/migrations",
        "src/server/store/sqlite/migrations",
        "src/server/store/postgres/migrations",
    ] {
        println!("cargo::rerun-if-changed={folder}");
    }
    #[cfg(any(feature = "ssr", feature = "hydrate"))]
    locales::build();
}
