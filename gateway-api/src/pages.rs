//! Built-in pages for browsers while there is no web interface: a landing page and the API documentation. They load no
//! external resources and render the OpenAPI document.

use bytes::Bytes;

use crate::reply::{Content, Reply};

pub const HTML: &str = "text/html; charset=utf-8";
pub const SCRIPT: &str = "text/javascript; charset=utf-8";
pub const STYLE: &str = "text/css; charset=utf-8";

const LANDING: &str = include_str!("assets/landing.html");
const DOCS: &str = include_str!("assets/docs.html");
const DOCS_SCRIPT: &str = include_str!("assets/docs.js");
const DOCS_STYLE: &str = include_str!("assets/docs.css");

/// Pages: path, operation, media type, text.
pub const PAGES: [(&str, &str, &str, &str); 4] = [
    ("/", "get_landing_page", HTML, LANDING),
    ("/api/docs", "get_documentation", HTML, DOCS),
    ("/api/docs/docs.js", "get_documentation_script", SCRIPT, DOCS_SCRIPT),
    ("/api/docs/docs.css", "get_documentation_style", STYLE, DOCS_STYLE),
];

pub fn page(content_type: &'static str, text: &'static str) -> Reply {
    Reply::content(Content::Bytes { content_type, bytes: Bytes::from_static(text.as_bytes()) })
}
