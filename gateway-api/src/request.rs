//! Input of a handler: path and query parameters, and the body as JSON.
//! It is independent of HTTP. The dispatcher has read the relevant headers.

use std::borrow::Cow;
use std::collections::BTreeMap;

use gateway_core::history::MINUTES;
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
    /// Text. Only for endpoints that accept text.
    Text(String),
    /// Bytes. Only for endpoints that accept files.
    Bytes(Vec<u8>),
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

    pub fn flag(&self, name: &str) -> Result<bool, ApiError> {
        match self.get(name) {
            None | Some("false" | "0") => Ok(false),
            Some("" | "true" | "1") => Ok(true),
            Some(_) => Err(ApiError::invalid_parameter(name, format!("{name} is true or false."))),
        }
    }

    /// Returns the number of minutes of history that the request wants: those of `minutes`, all by default. `None` unless
    /// `history` is true.
    pub fn history(&self) -> Result<Option<usize>, ApiError> {
        let (wants, minutes) = (self.flag("history")?, self.minutes()?);
        Ok(wants.then_some(minutes))
    }

    /// Returns the parameter `minutes`, all by default. It must be at least 1 and is clamped.
    pub fn minutes(&self) -> Result<usize, ApiError> {
        let Some(text) = self.get("minutes") else { return Ok(MINUTES) };
        match text.parse::<u64>() {
            Ok(0) | Err(_) => {
                let message = format!("minutes is a whole number from 1 to {MINUTES}; {text:?} is not.");
                Err(ApiError::invalid_parameter("minutes", message))
            }
            Ok(minutes) => Ok(usize::try_from(minutes).unwrap_or(MINUTES).min(MINUTES)),
        }
    }

    /// Returns the parameter `limit`. It must be at least 1 and is clamped to `max`.
    pub fn limit(&self, default: usize, max: usize) -> Result<usize, ApiError> {
        match self.get("limit") {
            None => Ok(default),
            Some(text) => match text.parse::<u64>() {
                Ok(0) | Err(_) => Err(ApiError::invalid_parameter(
                    "limit",
                    format!("limit is a whole number from 1 to {max}; {text:?} is not."),
                )),
                Ok(value) => Ok(usize::try_from(value).unwrap_or(max).min(max)),
            },
        }
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
    fn limits_are_clamped_and_nonsense_is_refused() {
        let query = |raw| Query::parse(Some(raw)).expect("parses");
        assert_eq!(query("limit=7").limit(50, 500).expect("ok"), 7);
        assert_eq!(query("limit=9999").limit(50, 500).expect("ok"), 500);
        assert_eq!(query("").limit(50, 500).expect("ok"), 50);
        for bad in ["limit=0", "limit=-1", "limit=x", "limit=1.5", "limit="] {
            assert_eq!(query(bad).limit(50, 500).expect_err(bad).code, Code::InvalidParameter);
        }
    }

    #[test]
    fn history_is_only_shown_on_request() {
        let history = |raw| Query::parse(Some(raw)).expect("parses").history();
        assert_eq!(history("").expect("ok"), None);
        assert_eq!(history("minutes=60").expect("ok"), None);
        assert_eq!(history("history=true").expect("ok"), Some(MINUTES));
        assert_eq!(history("history=true&minutes=60").expect("ok"), Some(60));
        assert_eq!(history("history=true&minutes=99999").expect("ok"), Some(MINUTES));
        for bad in ["history=x", "history=true&minutes=0", "history=true&minutes=x"] {
            assert_eq!(history(bad).expect_err(bad).code, Code::InvalidParameter);
        }
    }

    #[test]
    fn broken_escapes_are_refused() {
        assert_eq!(percent_decode("a%20b"), Some("a b".into()));
        for bad in ["%", "%4", "%zz", "%ff"] {
            assert_eq!(percent_decode(bad), None, "{bad}");
        }
    }
}
