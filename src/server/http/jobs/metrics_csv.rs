//! The metrics of an attempt as CSV.

use std::collections::BTreeSet;

use app::domain::ids::AttemptNumber;
use app::protocol::agents::ProgressPoint;
use app::protocol::jobs::MetricsCsvQuery;
use axum::extract::State;
use axum::response::Response;

use crate::http::edge::csv::{csv_field, csv_response};
use crate::http::edge::extractors::{Path, Query, job_id};
use crate::http::operation::doc::{ContentDoc, OperationDoc, ResponseDoc};
use crate::http::problem::ApiError;
use crate::http::state::AppState;

pub const EXPORT: OperationDoc = OperationDoc {
    description: "At most 10,000 steps: of a longer attempt, every n-th.",
    responses: &[ResponseDoc::new(200, "One line per step, after a header line.", ContentDoc::Bytes(&["text/csv"]))],
    problems: &["attempt_not_found"],
    ..OperationDoc::new("exportJobMetrics", "Exports the metrics of an attempt as CSV.")
};

/// `GET /api/queue/{id}/metrics.csv`
pub async fn export(
    State(app): State<AppState>,
    Path(id): Path<String>,
    Query(query): Query<MetricsCsvQuery>,
) -> Result<Response, ApiError> {
    let id = job_id(&id)?;
    let points = app.services.jobs.exported_points(&id, query.attempt.map(AttemptNumber)).await?;
    Ok(csv_response(&format!("{id}-metrics.csv"), csv_lines(&points, query.metric.as_deref())))
}

/// Returns one line for each point that has a value; a column for each metric, or for the only one.
fn csv_lines(points: &[ProgressPoint], only: Option<&str>) -> String {
    let names: BTreeSet<&str> = match only {
        Some(name) => BTreeSet::from([name]),
        None => points.iter().flat_map(|point| point_values(point).map(|(name, _)| name)).collect(),
    };
    let header = names.iter().map(|name| format!(",{}", csv_field(name)));
    let mut lines = format!("step,at{}\r\n", header.collect::<String>());
    for point in points {
        let value =
            |name: &&str| point_values(point).find(|(known, _)| known == name).map(|(_, value)| value.to_string());
        let values: Vec<Option<String>> = names.iter().map(value).collect();
        if values.iter().any(Option::is_some) {
            let cells = values.into_iter().map(|value| format!(",{}", value.unwrap_or_default()));
            let line = format!("{},{}{}\r\n", point.step, point.at, cells.collect::<String>());
            lines.push_str(&line);
        }
    }
    lines
}

/// The values of a point; a trainer's metric of a standard name is the same metric.
fn point_values(point: &ProgressPoint) -> impl Iterator<Item = (&str, f64)> {
    let loss = point.loss.or(point.loss_is_nan.then_some(f64::NAN));
    let standard = [("loss", loss), ("learning_rate", point.learning_rate), ("epoch", point.epoch)];
    let standard = standard.into_iter().filter_map(|(name, value)| Some((name, value?)));
    standard.chain(point.metrics.iter().map(|(name, value)| (name.as_str(), *value)))
}

#[cfg(test)]
mod tests {
    use app::domain::time::Timestamp;

    use super::*;

    #[test]
    fn steps_are_lines_and_metrics_columns() {
        let point = |step, loss, metrics: &[(&str, f64)]| ProgressPoint {
            step,
            at: Timestamp(0),
            loss,
            metrics: metrics.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            ..ProgressPoint::default()
        };
        let points = [
            point(1, Some(0.5), &[("=a,b", 2.0)]),
            ProgressPoint { loss_is_nan: true, ..point(2, None, &[]) },
            point(3, None, &[]),
        ];
        let all = "step,at,\"'=a,b\",loss\r\n1,1970-01-01T00:00:00.000Z,2,0.5\r\n2,1970-01-01T00:00:00.000Z,,NaN\r\n";
        assert_eq!(csv_lines(&points, None), all);
        assert_eq!(csv_lines(&points, Some("=a,b")), "step,at,\"'=a,b\"\r\n1,1970-01-01T00:00:00.000Z,2\r\n");
        assert_eq!(csv_lines(&[], None), "step,at\r\n");
    }
}
