//! Generates Rust code from the dashboard's sentences (`app/locales/*.json`) and rejects incomplete languages.

#[cfg(any(feature = "ssr", feature = "hydrate"))]
#[path = "build/mod.rs"]
mod locales;

fn main() {
    println!("cargo::rerun-if-changed=app/locales");
    #[cfg(any(feature = "ssr", feature = "hydrate"))]
    locales::build();
}
