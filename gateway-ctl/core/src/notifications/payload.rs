//! Body of a webhook's request, and the headers that belong to its format.

use serde_json::Value;

/// Body of a request, and its headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// `Content-Type` first.
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

impl Payload {
    pub fn json(value: &Value) -> Payload {
        let headers = vec![("content-type", "application/json".to_owned())];
        Payload { headers, body: value.to_string().into_bytes() }
    }
}
