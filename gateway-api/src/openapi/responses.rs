//! Response statuses of an endpoint. They follow from its properties. An endpoint declares the ones that only its
//! handler knows with `Endpoint::answers`.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::authorization::Access;
use crate::error::Code;
use crate::table::{Availability, Effect, Endpoint, Method, Versions};

/// Returns the statuses that the document lists for an endpoint.
pub fn statuses(endpoint: &Endpoint) -> BTreeSet<u16> {
    let mut statuses: BTreeSet<u16> =
        codes(endpoint).into_iter().map(|code| code.status().as_u16()).collect();
    if endpoint.needs().is_none() {
        statuses.insert(endpoint.status);
        statuses.extend(endpoint.dry_run_status);
        if is_cached(endpoint) {
            statuses.insert(304);
        }
    }
    statuses
}

/// Returns the error codes of an endpoint.
fn codes(endpoint: &Endpoint) -> Vec<Code> {
    // Codes of the dispatcher, in the order of its checks.
    let mut codes = vec![Code::BadRequest, Code::RateLimited, Code::OriginNotAllowed, Code::Internal];
    if endpoint.access != Access::Open {
        codes.extend([
            Code::Unauthenticated,
            Code::InvalidCredentials,
            Code::SessionExpired,
            Code::Forbidden,
        ]);
    }
    if endpoint.needs().is_some() {
        codes.push(Code::NotSupported);
        return codes;
    }
    codes.extend([Code::InvalidParameter, Code::UpstreamTimeout]);
    if endpoint.availability == Availability::WithStore {
        codes.push(Code::NotReady);
    }
    if endpoint.method != Method::Get {
        codes.extend([Code::PayloadTooLarge, Code::UnsupportedMediaType]);
    }
    if endpoint.input.schema().is_some() {
        codes.extend([Code::ValidationFailed, Code::UnknownReference]);
    }
    if endpoint.input.is_spooled() {
        codes.push(Code::StorageFull);
    }
    if endpoint.path.contains('{') {
        codes.push(Code::NotFound);
    }
    if matches!(endpoint.effect, Effect::Stores(_)) {
        codes.extend([Code::Conflict, Code::ValidationFailed, Code::StorageFull]);
    }
    if endpoint.versions == Versions::Tagged && endpoint.method != Method::Get {
        codes.push(Code::PreconditionFailed);
    }
    codes.extend(&endpoint.answers);
    codes
}

/// Reports whether the endpoint supports `If-None-Match`.
fn is_cached(endpoint: &Endpoint) -> bool {
    endpoint.method == Method::Get && (endpoint.output.media().is_none() || endpoint.output.is_page())
}

fn is_success(endpoint: &Endpoint, status: u16) -> bool {
    status == endpoint.status || Some(status) == endpoint.dry_run_status
}

/// Returns the `responses` of an endpoint. The caller supplies the successful one.
pub(super) fn of(endpoint: &Endpoint, success: Value) -> Value {
    let mut responses = Map::new();
    for status in statuses(endpoint) {
        let response = match status {
            _ if endpoint.needs().is_none() && is_success(endpoint, status) => success.clone(),
            304 => json!({"description": "Not modified: the ETag equals If-None-Match"}),
            _ => json!({"$ref": format!("#/components/responses/{status}")}),
        };
        responses.insert(status.to_string(), response);
    }
    Value::Object(responses)
}

/// Returns the errors by status, for the components of the document.
pub(super) fn shared() -> Value {
    let mut responses = Map::new();
    for status in Code::ALL.iter().map(|code| code.status()).collect::<BTreeSet<_>>() {
        let codes: Vec<&str> =
            Code::ALL.iter().filter(|code| code.status() == status).map(|code| code.as_str()).collect();
        let response = json!({
            "description": format!("{}: {}", status.canonical_reason().unwrap_or("Error"), codes.join(", ")),
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
        });
        responses.insert(status.as_u16().to_string(), response);
    }
    Value::Object(responses)
}

#[cfg(test)]
mod tests {
    use gateway_model::capability::{Capability, Standing};

    use super::*;
    use crate::endpoints;

    fn of_row(method: Method, path: &str) -> BTreeSet<u16> {
        let table = endpoints::table();
        let endpoint =
            table.endpoints().iter().find(|endpoint| endpoint.method == method && endpoint.path == path);
        statuses(endpoint.unwrap_or_else(|| panic!("no {path}")))
    }

    #[test]
    fn properties_of_an_endpoint_determine_its_responses() {
        let create = of_row(Method::Post, "/devices");
        for status in [201, 400, 401, 403, 409, 413, 415, 422, 429, 500, 503, 507] {
            assert!(create.contains(&status), "{status}");
        }
        assert!(!create.contains(&200) && !create.contains(&404) && !create.contains(&501));
        let read = of_row(Method::Get, "/devices/{id}");
        assert!(read.contains(&304) && read.contains(&404) && !read.contains(&409) && !read.contains(&422));
        let open = of_row(Method::Get, "/health");
        assert!(!open.contains(&401) && open.contains(&403), "the host is looked at even there");
    }

    #[test]
    fn unsupported_endpoints_have_no_success_response() {
        let missing = |needs| {
            Capability::ALL.iter().any(|it| it.needs() == needs && it.standing() == Standing::Missing)
        };
        for endpoint in endpoints::table().endpoints().iter().filter(|endpoint| endpoint.needs().is_some()) {
            assert!(
                endpoint.needs().is_some_and(missing),
                "{}: no capability that is missing",
                endpoint.path
            );
            let statuses = statuses(endpoint);
            assert!(
                statuses.contains(&501) && statuses.iter().all(|status| *status >= 400),
                "{}",
                endpoint.path
            );
        }
    }
}
