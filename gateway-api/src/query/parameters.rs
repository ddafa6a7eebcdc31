//! Parameters that many endpoints have.

use std::borrow::Cow;
use std::str::FromStr;

use gateway_core::history::MINUTES;
use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error as _};

/// Maximum number of objects of a page: at least 1, and clamped to `MAX`. A `DEFAULT` of 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit<const DEFAULT: usize, const MAX: usize>(usize);

/// Length of a history in minutes: at least 1, and clamped to what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Minutes(usize);

/// Dry run of an endpoint that creates an object.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct DryRun {
    /// Responds with the object as it would be created, and stores nothing.
    pub dry_run: bool,
}

/// Page of a list whose objects are all returned without a limit.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct ListQuery {
    /// Maximum number of objects, 1 to 1000. Without it all are returned.
    limit: Option<Limit<0, 1000>>,
}

impl ListQuery {
    /// Returns the maximum number of objects.
    pub(crate) fn limit(self) -> usize {
        self.limit.map_or(usize::MAX, Limit::get)
    }
}

/// History beside the present state.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct HistoryQuery {
    /// Adds the history.
    pub history: bool,
    /// Length of the history: 1 to 1440 minutes, by default all.
    pub minutes: Minutes,
}

/// Instant of RFC 3339.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instant(pub Timestamp);

/// Start of a page behind an entry: its ID or its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before<I> {
    Id(I),
    Time(Timestamp),
}

impl HistoryQuery {
    /// Returns the number of minutes of history that the request wants. `None` unless it wants a history.
    pub(crate) fn wanted(self) -> Option<usize> {
        self.history.then_some(self.minutes.get())
    }
}

impl<const DEFAULT: usize, const MAX: usize> Limit<DEFAULT, MAX> {
    pub(crate) fn get(self) -> usize {
        self.0
    }
}

impl Minutes {
    pub(crate) fn get(self) -> usize {
        self.0
    }
}

impl<const DEFAULT: usize, const MAX: usize> Default for Limit<DEFAULT, MAX> {
    fn default() -> Self {
        Limit(DEFAULT)
    }
}

impl Default for Minutes {
    fn default() -> Minutes {
        Minutes(MINUTES)
    }
}

/// Reads a whole number from 1 on, and clamps it.
fn clamped<'de, D: Deserializer<'de>>(deserializer: D, max: usize) -> Result<usize, D::Error> {
    let text = Cow::<str>::deserialize(deserializer)?;
    match text.parse::<u64>() {
        Ok(0) | Err(_) => Err(D::Error::custom(format!("a whole number from 1 to {max}"))),
        Ok(number) => Ok(usize::try_from(number).unwrap_or(max).min(max)),
    }
}

fn schema_from_1(default: usize, max: usize) -> Schema {
    let mut schema = json_schema!({"type": "integer", "minimum": 1, "maximum": max});
    if default > 0 {
        schema.insert("default".to_owned(), default.into());
    }
    schema
}

impl<'de, const DEFAULT: usize, const MAX: usize> Deserialize<'de> for Limit<DEFAULT, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        clamped(deserializer, MAX).map(Limit)
    }
}

impl<'de> Deserialize<'de> for Minutes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Minutes, D::Error> {
        clamped(deserializer, MINUTES).map(Minutes)
    }
}

impl<'de> Deserialize<'de> for Instant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Instant, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        text.parse().map(Instant).map_err(|_| D::Error::custom("a time such as 2026-11-20T12:00:00Z"))
    }
}

impl<'de, I: FromStr> Deserialize<'de> for Before<I> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Before<I>, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        let id = text.parse().map(Before::Id);
        id.or_else(|_| text.parse().map(Before::Time)).map_err(|_: jiff::Error| {
            D::Error::custom("the id of an entry or a time such as 2026-11-20T12:00:00Z")
        })
    }
}

impl JsonSchema for Instant {
    fn schema_name() -> Cow<'static, str> {
        "Instant".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time"})
    }
}

impl<I> JsonSchema for Before<I> {
    fn schema_name() -> Cow<'static, str> {
        "Before".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}

impl<const DEFAULT: usize, const MAX: usize> JsonSchema for Limit<DEFAULT, MAX> {
    fn schema_name() -> Cow<'static, str> {
        format!("Limit{DEFAULT}To{MAX}").into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema_from_1(DEFAULT, MAX)
    }
}

impl JsonSchema for Minutes {
    fn schema_name() -> Cow<'static, str> {
        "Minutes".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema_from_1(MINUTES, MINUTES)
    }
}
