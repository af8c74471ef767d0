//! Rules for passwords, and how pages ask for one.

use serde_json::json;

use crate::http::state::AuthMode;
use crate::tests::harness::{Actor, PASSWORD, TestServer};
use crate::tests::ui::pages::{log_in, page};
use crate::text::percent_escaped;

#[tokio::test]
async fn passwords_may_be_long_with_any_characters() {
    let server = TestServer::start().await;
    let long = "otter sings at dawn, purple ".repeat(4);
    let longest = format!("{long}{}", "é".repeat((1_024 - long.len()) / 2));
    assert!(long.len() > 64 && longest.len() == 1_024);
    for (name, password) in [
        ("lower-case", "purpleottersingsatdawn"),
        ("digits", "830164927750318642"),
        ("signs", "}#=(~/%?;&+<[^"),
        ("blanks", " otter sings at dawn "),
        ("umlauts", "übermäßig langes Gleis"),
        ("kanji", "紫色の川獺が夜明けに歌う丘"),
        ("long", &long),
        ("longest", &longest),
    ] {
        let body = json!({"name": name, "role": "viewer", "password": password});
        server.post(&Actor::Admin, "/api/admin/users", body).await.expect_status(201);
        assert!(server.log_in(name, &percent_escaped(password)).await.is_some(), "{name}");
        let truncated: String = password.chars().take(password.chars().count() - 1).collect();
        assert!(server.log_in(name, &percent_escaped(&truncated)).await.is_none(), "{name}: the last character counts");
    }
    let body = json!({"name": "longer", "role": "viewer", "password": format!("{longest}é")});
    server.post(&Actor::Admin, "/api/admin/users", body).await.expect_problem(422, "weak_password");
}

#[tokio::test]
async fn password_fields_hide_input_and_support_password_managers() {
    let server = TestServer::start().await;
    let Actor::Cookie(ada) = server.add_user("ada", "admin").await else { panic!("a browser") };
    let user_path = format!("/admin/users/{}", server.user_id("ada").await);
    let new_server = TestServer::start_as(AuthMode::SingleUser).await;
    new_server.app.services.access.issue_setup_code().await.expect("a database").expect("no users yet");
    let pages = [
        (page(&server, "", "/login").await, 1),
        (page(&new_server, "", "/login").await, 1),
        (page(&server, &ada, "/account").await, 2),
        (page(&server, &ada, "/admin/users").await, 1),
        (page(&server, &ada, &user_path).await, 1),
        (page(&server, &ada, "/confirm").await, 1),
        // A user with a token enters it again in the same field.
        (page(&server, &log_in(&server).await, "/confirm").await, 1),
    ];
    for (html, count) in pages {
        let inputs = html.split("<input").skip(1).filter_map(|rest| rest.split('>').next());
        let named =
            |input: &&str| ["password", "old", "new"].iter().any(|name| input.contains(&format!("id=\"{name}\"")));
        let fields: Vec<&str> = inputs.filter(named).collect();
        assert_eq!(fields.len(), count, "{html}");
        for field in fields {
            let is_known = ["current-password", "new-password"].iter().any(|kind| field.contains(kind));
            assert!(field.contains("type=\"password\"") && is_known, "{field}");
            assert!(!field.contains("maxlength") && !field.contains("readonly"), "{field}");
        }
        assert!(!html.contains("onpaste") && !html.contains(PASSWORD), "{html}");
    }
}
