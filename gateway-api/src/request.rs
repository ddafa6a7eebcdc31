//! Input of a handler: path and query parameters, and the body as JSON.
//! It is independent of HTTP. The dispatcher has read the relevant headers.

use std::borrow::Cow;
use std::collections::BTreeMap;

use gateway_model::{Problems, Secret, Warning};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::dispatch::Spooled;
use crate::error::{ApiError, Code};

/// A routed and authorised request whose body has been read.
#[derive(Debug, Default)]
pub struct Request {
    pub params: Params,
    pub query: Query,
    pub body: Body,
    pub if_match: Option<String>,
    /// Value of `X-Passphrase`, for endpoints that accept files.
    pub passphrase: Secret,
    /// A browser asks for a page.
    pub takes_html: bool,
}

/// Request body before decoding.
#[derive(Debug, Default)]
pub enum Body {
    #[default]
    Absent,
    Json(Value),
    /// A file. Only for endpoints that accept large bodies.
    Spooled(Spooled),
}

/// Request with its decoded input.
#[derive(Debug)]
pub struct Req<I> {
    pub input: I,
    pub params: Params,
    pub query: Query,
    pub if_match: Option<String>,
}

/// Values of the `{placeholders}` of a path.
#[derive(Clone, Debug, Default)]
pub struct Params(pub BTreeMap<&'static str, String>);

impl Params {
    /// Returns the value of a placeholder in the path of this endpoint.
    pub fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }
}

/// Query parameters in the order of the request.
#[derive(Clone, Debug, Default)]
pub struct Query(pub Vec<(String, String)>);

impl Query {
    pub fn parse(raw: Option<&str>) -> Result<Self, ApiError> {
        let mut pairs = Vec::new();
        for pair in raw.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decode = |text: &str| {
                percent_decode(&text.replace('+', " ")).map(Cow::into_owned).ok_or_else(|| {
                    ApiError::new(Code::InvalidParameter, "The query is not percent-encoded UTF-8.")
                })
            };
            pairs.push((decode(name)?, decode(value)?));
        }
        Ok(Self(pairs))
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Decodes percent-encoding: `%41` gives `A`. `None` if an escape is malformed or the result is not UTF-8.
pub fn percent_decode(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(text.into());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let high = char::from(rest.next()?).to_digit(16)?;
            let low = char::from(rest.next()?).to_digit(16)?;
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok().map(Cow::from)
}

/// Fields whose values appear in no message and therefore in no audit entry.
const SECRETS: &[&str] = &[
    "password",
    "current_password",
    "new_password",
    "setup_code",
    "passphrase",
    "old_passphrase",
    "secret",
    "auth_key",
    "private_key",
];

/// Decodes an input. Unknown fields become warnings.
pub fn decode<I: DeserializeOwned>(value: Value) -> Result<(I, Vec<Warning>), ApiError> {
    let mut problems = Problems::new();
    let decoded = gateway_model::decode::decode::<I>(value, SECRETS, &mut problems);
    match decoded {
        Some(decoded) if problems.is_empty() => {
            let warnings =
                decoded.unknown.into_iter().map(|path| Warning::new(path, "unknown key, ignored")).collect();
            Ok((decoded.value, warnings))
        }
        _ => Err(ApiError::validation(&problems)),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Outer {
        #[serde(default)]
        list: Vec<Inner>,
    }

    #[derive(Debug, Deserialize)]
    struct Inner {
        n: u8,
    }

    #[test]
    fn unknown_keys_are_warnings_with_their_path() {
        let (outer, warnings) =
            decode::<Outer>(json!({"list": [{"n": 1, "m": 2}], "lst": []})).expect("decodes");
        assert_eq!(outer.list[0].n, 1);
        let paths: Vec<_> = warnings.iter().map(|warning| warning.path.as_str()).collect();
        assert_eq!(paths, ["list[0].m", "lst"]);
    }

    #[test]
    fn a_wrong_value_names_its_path_and_a_missing_field_its_own_name() {
        let error = decode::<Outer>(json!({"list": [{"n": "x"}]})).expect_err("wrong type");
        assert_eq!(error.details["fields"][0]["path"], "list[0].n");
        assert_eq!(error.details["fields"][0]["pointer"], "/list/0/n");
        let error = decode::<Outer>(json!({"list": [{}]})).expect_err("missing");
        assert_eq!(error.details["fields"][0]["path"], "list[0].n");
        assert_eq!(error.details["fields"][0]["rule"], "required");
    }

    #[test]
    fn broken_escapes_are_refused() {
        assert_eq!(percent_decode("a%20b"), Some("a b".into()));
        for bad in ["%", "%4", "%zz", "%ff"] {
            assert_eq!(percent_decode(bad), None, "{bad}");
        }
    }
}
