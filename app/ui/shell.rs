//! The document around the application; only the server makes it.

#[cfg(feature = "ssr")]
mod document {
    use leptos::config::LeptosOptions;
    use leptos::prelude::*;
    use leptos_meta::{HashedStylesheet, MetaTags};

    use crate::ui::app::App;
    use crate::ui::prefs::Prefs;

    /// The whole document. The theme is set before the first paint, so nothing flashes.
    pub fn shell(options: LeptosOptions) -> impl IntoView {
        let prefs = use_context::<Prefs>().unwrap_or_default();
        view! {
            <!DOCTYPE html>
            <html lang=prefs.locale.tag() data-theme=prefs.theme.attribute()>
                <head>
                    <meta charset="utf-8"/>
                    <meta name="viewport" content="width=device-width, initial-scale=1"/>
                    <meta name="color-scheme" content="light dark"/>
                    <meta name="robots" content="noindex"/>
                    <link rel="icon" href="/favicon.svg" type="image/svg+xml"/>
                    <HashedStylesheet options=options.clone() id="simpletuner"/>
                    <HydrationScripts options/>
                    <MetaTags/>
                </head>
                <body>
                    <App/>
                </body>
            </html>
        }
    }
}

#[cfg(feature = "ssr")]
pub use document::shell;
