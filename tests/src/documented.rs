//! Every answer that a test sees is also held against what the OpenAPI document says of its row.

use gateway_api::context::Api;
use gateway_api::openapi;
use gateway_api::table::Method;

/// Panics if the document does not name this status for the row that was asked.
///
/// Paths that nothing is at, and methods that a path has not, belong to no row.
pub fn assert_documented(api: &Api, method: &http::Method, path: &str, status: u16) {
    let Some(found) = api.routes.find(path) else { return };
    let Some(position) = Method::find(method.as_str()).and_then(|method| found.rows.get(&method)) else {
        return;
    };
    let row = &api.table.rows()[*position];
    let documented = openapi::statuses(row);
    assert!(
        documented.contains(&status),
        "{method} {path} answered {status}, of which the document says nothing: {documented:?}"
    );
}
