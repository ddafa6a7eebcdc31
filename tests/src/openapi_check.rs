//! Every answer that a test sees is also held against what the OpenAPI document says of its endpoint.

use gateway_api::context::Api;
use gateway_api::openapi;
use gateway_api::table::Method;

/// Panics if the document does not name this status for the endpoint that was asked.
///
/// Paths that nothing is at, and methods that a path has not, belong to no endpoint.
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
