//! Checks every response of a test against the OpenAPI document of its endpoint.

use gateway_api::context::Api;
use gateway_api::openapi;
use gateway_api::table::Method;

/// Panics if the document does not declare this status for the endpoint.
///
/// Unknown paths, and methods that a path does not have, belong to no endpoint.
pub fn assert_documented(api: &Api, method: &http::Method, path: &str, status: u16) {
    let Some(found) = api.routes.find(path) else { return };
    let Some(position) = Method::find(method.as_str()).and_then(|method| found.endpoints.get(&method)) else {
        return;
    };
    let endpoint = &api.table.endpoints()[*position];
    let documented = openapi::statuses(endpoint);
    assert!(
        documented.contains(&status),
        "{method} {path} answered {status}, of which the document says nothing: {documented:?}"
    );
}
