//! `/docs/api`

use axum::http::header;

use super::harness::{By, Server};
use super::openapi::{description, operations};

#[tokio::test]
async fn the_page_shows_every_operation_to_everybody() {
    let server = Server::start().await;
    let page = server.get(&By::Nobody, "/docs/api").await;
    assert_eq!(page.status, 200);
    let html = page.text();
    for (_, path, operation) in operations(&description(&server).await) {
        let id = operation["operationId"].as_str().expect("text");
        assert!(html.contains(&format!("id=\"{id}\"")), "{id}");
        assert!(html.contains(&format!("<code>{path}</code>")), "{path}");
    }
    assert!(html.contains("curl -s -X DELETE &quot;$ORCHESTRATOR/api/admin/workers/$ID&quot;"));
    assert!(html.contains("Takes <code>admin.workers</code>."));
}

#[tokio::test]
async fn the_page_asks_nobody_for_anything_and_every_link_leads_somewhere() {
    let server = Server::start().await;
    let page = server.get(&By::Cookie("theme=dark".to_owned()), "/docs/api").await;
    let policy = page.headers[header::CONTENT_SECURITY_POLICY].to_str().expect("text").to_owned();
    assert!(policy.starts_with("default-src 'none'; style-src 'self'; img-src 'self'; "), "{policy}");
    let html = page.text();
    assert!(html.contains("data-theme=\"dark\""));
    for never in ["<script", "style=", "=\"http", "=\"//", "url(", "onclick", "javascript:"] {
        assert!(!html.contains(never), "{never}");
    }
    let links: Vec<&str> =
        html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()).filter(|link| *link != "/").collect();
    assert!(links.len() > 100);
    for link in links {
        match link.strip_prefix('#') {
            Some(id) => assert!(html.contains(&format!("id=\"{id}\"")), "{link}"),
            None => assert!(
                link.starts_with("/api/openapi") || link.starts_with("/pkg/") || link == "/favicon.svg",
                "{link}"
            ),
        }
    }
}
