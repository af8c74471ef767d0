//! Reads an event stream like an agent or a browser.

use std::time::Duration;

use app::protocol::agents::dispatch::JobOffer;
use axum::body::BodyDataStream;
use futures_util::StreamExt;
use serde_json::Value;

pub struct EventStreamReader {
    body: BodyDataStream,
    buffer: String,
}

impl EventStreamReader {
    pub fn new(response: axum::response::Response) -> Self {
        Self { body: response.into_body().into_data_stream(), buffer: String::new() }
    }

    /// Returns the data of the next event; `None` at the end of the stream. Comments are skipped.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((block, rest)) = self.buffer.split_once("\n\n") {
                let data = block.lines().find_map(|line| line.strip_prefix("data: ")).map(str::to_owned);
                self.buffer = rest.to_owned();
                match data {
                    Some(data) => return Some(serde_json::from_str(&data).expect("JSON in one line")),
                    None => continue,
                }
            }
            let chunk =
                tokio::time::timeout(Duration::from_secs(10), self.body.next()).await.expect("an event in time");
            self.buffer.push_str(std::str::from_utf8(&chunk?.expect("a chunk")).expect("UTF-8"));
        }
    }

    /// Returns the next event of this type.
    pub async fn next_of_type(&mut self, kind: &str) -> Value {
        loop {
            let event = self.next().await.unwrap_or_else(|| panic!("the stream ended before a {kind}"));
            if event["type"] == kind {
                return event;
            }
        }
    }

    /// Returns the next offer.
    pub async fn next_offer(&mut self) -> JobOffer {
        serde_json::from_value(self.next_of_type("job_submit").await).expect("an offer")
    }
}
