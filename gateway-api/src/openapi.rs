//! OpenAPI 3.1 document of the API: the committed one (`openapi.json`), which a test generates again from the endpoint
//! table and its types. The daemon embeds it compressed.

use std::collections::BTreeMap;
use std::io::Read as _;

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::Value;

#[cfg(debug_assertions)]
mod compatible;
#[cfg(debug_assertions)]
mod defaults;
#[cfg(debug_assertions)]
mod generation;
#[cfg(debug_assertions)]
mod layout;
#[cfg_attr(not(debug_assertions), allow(dead_code))]
mod responses;

#[cfg(debug_assertions)]
pub use generation::{document, text};
pub use responses::statuses;

/// The document as it is committed, compressed by gzip.
pub static COMPRESSED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/openapi.json.gz"));

/// Returns the document as it is committed.
pub fn embedded() -> Vec<u8> {
    let mut document = Vec::new();
    GzDecoder::new(COMPRESSED).read_to_end(&mut document).expect("the build has compressed it");
    document
}

/// Returns the names of the query parameters that a document describes, by operation.
pub fn query_names(document: &[u8]) -> Result<BTreeMap<String, Vec<String>>, serde_json::Error> {
    let document: Document = serde_json::from_slice(document)?;
    let operations = document.paths.into_values().flat_map(BTreeMap::into_values);
    // Beside its operations a path may have servers.
    let operations = operations.filter_map(|operation| Operation::deserialize(operation).ok());
    Ok(operations
        .map(|operation| {
            let parameters = operation.parameters.into_iter().filter(|parameter| parameter.place == "query");
            (operation.id, parameters.map(|parameter| parameter.name).collect())
        })
        .collect())
}

#[derive(Deserialize)]
struct Document {
    paths: BTreeMap<String, BTreeMap<String, Value>>,
}

#[derive(Deserialize)]
struct Operation {
    #[serde(rename = "operationId")]
    id: String,
    #[serde(default)]
    parameters: Vec<Parameter>,
}

#[derive(Deserialize)]
struct Parameter {
    name: String,
    #[serde(rename = "in")]
    place: String,
}
