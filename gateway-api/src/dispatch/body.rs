//! Request body: size limit, media type, and JSON errors with line and column.

use std::time::Duration;

use axum::body::Body as HttpBody;
use bytes::{Bytes, BytesMut};
use http::header;
use http::request::Parts;
use http_body_util::BodyExt;
use serde_json::{Map, Value};

use super::spool::Spooled;
use super::{multipart, spool};
use crate::context::Api;
use crate::error::{ApiError, Code};
use crate::request::{Body, Query};
use crate::table::Endpoint;

/// Timeout of a request body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Reads the body that the endpoint accepts. Ignores the body of an endpoint without input.
pub(super) async fn read(
    endpoint: &Endpoint,
    parts: &Parts,
    body: HttpBody,
    query: &Query,
    limit: usize,
) -> Result<Body, ApiError> {
    check_coding(parts)?;
    let bytes = tokio::time::timeout(BODY_TIMEOUT, collect(body, limit))
        .await
        .map_err(|_| ApiError::bad_request("The body did not arrive within 30 seconds."))??;
    if endpoint.input.schema().is_none() {
        return Ok(Body::Absent);
    }
    if bytes.is_empty() {
        if endpoint.input.is_required() {
            return Err(ApiError::bad_request("This operation needs a JSON object as its body."));
        }
        return Ok(Body::Absent);
    }
    let content_type =
        parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let media = media_type(parts);
    match endpoint.input.text_field() {
        Some(field) if media == "text/plain" => text(field, &bytes, query),
        Some(field) if media == "multipart/form-data" => form(field, bytes.freeze(), content_type, query),
        _ if is_json(&media) => json(&bytes),
        text_field => {
            let allowed = match text_field {
                Some(_) => vec!["application/json", "text/plain", "multipart/form-data"],
                None => vec!["application/json"],
            };
            let message = format!("The body must be sent with Content-Type: {}.", allowed.join(" or "));
            Err(ApiError::new(Code::UnsupportedMediaType, message)
                .detail("content_type", media)
                .detail("allowed", allowed))
        }
    }
}

/// Writes the body of an import into a file.
pub(super) async fn spooled(
    api: &Api,
    endpoint: &Endpoint,
    parts: &Parts,
    body: HttpBody,
) -> Result<Spooled, ApiError> {
    check_coding(parts)?;
    let media = media_type(parts);
    let is_json = is_json(&media);
    if !is_json && !endpoint.input.is_file() {
        let message = "The body must be sent with Content-Type: application/json.";
        return Err(ApiError::new(Code::UnsupportedMediaType, message)
            .detail("content_type", media)
            .detail("allowed", ["application/json"]));
    }
    let permit = api.heavy.transfer().await?;
    let store = api.open()?.store.path();
    let spooled = spool::spool(body, store.parent().unwrap_or(store), is_json, permit).await?;
    if spooled.length == 0 {
        return Err(ApiError::bad_request("This operation needs a file or a JSON object as its body."));
    }
    Ok(spooled)
}

fn media_type(parts: &Parts) -> String {
    let content_type = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn is_json(media: &str) -> bool {
    media == "application/json" || media.ends_with("+json")
}

/// Refuses a body in a content coding (RFC 9110, section 15.5.16).
fn check_coding(parts: &Parts) -> Result<(), ApiError> {
    let coded = parts.headers.get_all(header::CONTENT_ENCODING).iter();
    let coding = coded.map(|value| value.to_str().unwrap_or("?").trim());
    let Some(coding) = coding.into_iter().find(|coding| !coding.eq_ignore_ascii_case("identity")) else {
        return Ok(());
    };
    let message = format!("The body is in the content coding {coding}; send it without one.");
    Err(ApiError::new(Code::UnsupportedMediaType, message)
        .detail("content_encoding", coding)
        .detail("allowed", ["identity"]))
}

fn json(bytes: &[u8]) -> Result<Body, ApiError> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| {
        ApiError::bad_request(format!("The body is not JSON: {error}."))
            .detail("line", error.line())
            .detail("column", error.column())
    })?;
    if value.is_object() {
        return Ok(Body::Json(value));
    }
    // Position of the value that should have been an object.
    let (line, column) = first_character(bytes);
    Err(ApiError::bad_request("The body must be a JSON object.")
        .detail("line", line)
        .detail("column", column))
}

fn first_character(bytes: &[u8]) -> (usize, usize) {
    let blank = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let before = &bytes[..blank];
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |position| position + 1);
    (1 + before.iter().filter(|byte| **byte == b'\n').count(), 1 + blank - line_start)
}

/// Returns the fields that the query provides.
fn query_fields(query: &Query) -> Map<String, Value> {
    let fields = query.0.iter().filter(|(name, _)| name != "dry_run");
    fields.map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect()
}

fn text(field: &str, bytes: &[u8], query: &Query) -> Result<Body, ApiError> {
    let mut object = query_fields(query);
    object.insert(field.to_owned(), Value::from(multipart::file_text(bytes)));
    Ok(Body::Json(Value::Object(object)))
}

fn form(field: &str, bytes: Bytes, content_type: &str, query: &Query) -> Result<Body, ApiError> {
    let boundary = multipart::boundary(content_type)
        .ok_or_else(|| ApiError::bad_request("The Content-Type names no boundary of the form."))?;
    let fields = multipart::fields(bytes, boundary, field)
        .map_err(|problem| ApiError::bad_request(format!("The form cannot be read: {problem}.")))?;
    let mut object = query_fields(query);
    object.extend(fields);
    Ok(Body::Json(Value::Object(object)))
}

async fn collect(mut body: HttpBody, limit: usize) -> Result<BytesMut, ApiError> {
    let too_large = || {
        ApiError::new(Code::PayloadTooLarge, format!("The body is larger than {limit} bytes."))
            .detail("limit_bytes", limit)
    };
    if axum::body::HttpBody::size_hint(&body).lower() > limit as u64 {
        return Err(too_large());
    }
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| ApiError::bad_request("The body is incomplete."))?;
        if let Ok(data) = frame.into_data() {
            if bytes.len() + data.len() > limit {
                return Err(too_large());
            }
            bytes.extend_from_slice(&data);
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_json_is_reported_with_line_and_column() {
        let error = json(b"{\n  \"a\": ,\n}").expect_err("broken");
        assert_eq!((&error.details["line"], &error.details["column"]), (&Value::from(2), &Value::from(8)));
        let error = json(b"\n  [1]").expect_err("array");
        assert_eq!(error.code, Code::BadRequest);
        assert_eq!((&error.details["line"], &error.details["column"]), (&Value::from(2), &Value::from(3)));
    }
}
