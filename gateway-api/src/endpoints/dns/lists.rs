//! Bulk edits of the allowlist and the blocklist: all domains in one transaction, or none.

use std::sync::Arc;

use gateway_model::domain::DomainName;
use gateway_model::kinds::{DnsAllow, DnsBlock};
use gateway_model::problem::code;
use gateway_model::{EditError, Kind, Problems, Resource, State, Warning, registry};
use http::StatusCode;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::context::Cx;
use crate::error::ApiError;
use crate::reply::{Answer, WithHeaders};
use crate::request::{Body, Req, decode};
use crate::table::Method::{Delete, Post};
use crate::table::{Audit, Effect, Output, SchemaSource, Table, Work, output_schema};

/// Maximum number of domains in a request.
const MAX_DOMAINS: usize = 10_000;

/// A kind whose entries may be domains.
pub(super) trait DomainList: Resource {
    fn is_enabled(&self) -> bool;
    fn enable(&mut self);
}

impl DomainList for DnsAllow {
    fn is_enabled(&self) -> bool {
        self.enabled
    }

    fn enable(&mut self) {
        self.enabled = true;
    }
}

impl DomainList for DnsBlock {
    fn is_enabled(&self) -> bool {
        self.enabled
    }

    fn enable(&mut self) {
        self.enabled = true;
    }
}

/// Domains to add to a list or to remove from it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Domains {
    /// A single domain.
    domain: Option<String>,
    /// Several domains, at most 10000.
    domains: Vec<String>,
}

/// Result for each domain, in canonical form.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct DomainResults {
    /// Domains that were added or removed.
    changed: Vec<String>,
    /// Domains that were already on the list when adding, or not on it when removing.
    unchanged: Vec<String>,
}

/// Lets POST accept many domains, and adds a DELETE of many domains.
pub(super) fn rows<L: DomainList>(t: &mut Table, path: &'static str, operation: &'static str) {
    let row = t.declared(Post, path);
    row.summary = "Add a domain, several domains, or the URL of a list";
    row.doc = "`domains` adds several domains in one change; the response lists which of them are new.";
    row.input.describe(SchemaSource::new(input_schema::<L>));
    row.output = Output::Data(SchemaSource::new(answer_schema::<L>));
    let Work::Handler(one) = row.work.clone() else { return };
    row.work = Work::Handler(Arc::new(move |cx, request| match &request.body {
        Body::Json(Value::Object(map)) if map.contains_key("domains") => {
            let input = Value::Object(map.clone());
            Box::pin(async move { add::<L>(cx, input).await?.reply() })
        }
        _ => one(cx, request),
    }));
    let effect = Effect::Stores(Audit { action: operation, resource_type: L::NOUN });
    let row = t.action(path, operation, effect, remove::<L>);
    row.method = Delete;
    row.requires_input();
    row.summary = "Remove domains from the list";
    row.doc = "Removes all in one change. Domains that are not in the list are ignored.";
}

fn input_schema<L: DomainList>(generator: &mut SchemaGenerator) -> Schema {
    let one = registry::input_schema::<L>(generator);
    let many = generator.subschema_for::<Domains>();
    json_schema!({ "anyOf": [one, many] })
}

fn answer_schema<L: DomainList>(generator: &mut SchemaGenerator) -> Schema {
    let one = output_schema::<L>(generator);
    let many = generator.subschema_for::<DomainResults>();
    json_schema!({ "anyOf": [one, many] })
}

async fn add<L: DomainList>(cx: Cx, input: Value) -> Result<WithHeaders<DomainResults>, ApiError> {
    let (domains, mut warnings) = decode::<Domains>(input)?;
    let names = names(domains)?;
    let (changed, more) = cx.commit(move |draft| put_all::<L>(draft, names)).await?;
    warnings.extend(more);
    let mut answer = WithHeaders::new(changed);
    answer.status = StatusCode::CREATED;
    answer.warnings = warnings;
    Ok(answer)
}

async fn remove<L: DomainList>(cx: Cx, request: Req<Domains>) -> Result<DomainResults, ApiError> {
    let names = names(request.input)?;
    cx.commit(move |draft| take_all::<L>(draft, names)).await
}

/// Returns the domains without duplicates, or all errors in them.
fn names(domains: Domains) -> Result<Vec<DomainName>, ApiError> {
    let mut problems = Problems::new();
    let mut names: Vec<DomainName> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    if domains.domains.len() > MAX_DOMAINS {
        problems.add(code::RANGE, "domains", format!("At most {MAX_DOMAINS} domains at once."));
        return Err(ApiError::validation(&problems));
    }
    let several = domains.domains.iter().enumerate().map(|(index, text)| (format!("domains[{index}]"), text));
    for (path, text) in domains.domain.iter().map(|text| ("domain".to_owned(), text)).chain(several) {
        match DomainName::parse(text) {
            Ok(name) => names.extend(seen.insert(name.clone()).then_some(name)),
            Err(error) => drop(problems.add(code::FORMAT, path, format!("Not a domain: {error}."))),
        }
    }
    if names.is_empty() {
        let path = if domains.domain.is_some() { "domain" } else { "domains" };
        problems.required(path);
    }
    if problems.is_empty() { Ok(names) } else { Err(ApiError::validation(&problems)) }
}

fn put_all<L: DomainList>(
    draft: &mut State,
    names: Vec<DomainName>,
) -> Result<(DomainResults, Vec<Warning>), EditError> {
    let kind = const { &Kind::of::<L>() };
    let mut answer = DomainResults::default();
    let mut warnings: Vec<Warning> = Vec::new();
    for name in names {
        let have = L::table(draft).by_key(name.as_str()).map(|entry| (entry.meta().id, entry.is_enabled()));
        let more = match have {
            Some((_, true)) => {
                answer.unchanged.push(name.to_string());
                continue;
            }
            Some((id, false)) => draft.update::<L>(id, None, L::enable)?.1,
            None => kind.create(draft, json!({"domain": name}))?.warnings,
        };
        // A warning about the whole object is reported once.
        for mut warning in more {
            if warning.path == "domain" {
                warning.message = format!("{name}: {}", warning.message);
            }
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        answer.changed.push(name.to_string());
    }
    Ok((answer, warnings))
}

fn take_all<L: DomainList>(draft: &mut State, names: Vec<DomainName>) -> Result<DomainResults, EditError> {
    let mut answer = DomainResults::default();
    for name in names {
        match L::table(draft).by_key(name.as_str()).map(|entry| entry.meta().id) {
            Some(id) => {
                draft.remove::<L>(id, None, false)?;
                answer.changed.push(name.to_string());
            }
            None => answer.unchanged.push(name.to_string()),
        }
    }
    Ok(answer)
}
