//! Routing from a path to its endpoints: a tree of segments in which a fixed segment takes precedence over a
//! placeholder.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{Endpoint, Location, Method};
use crate::request::{Params, percent_decode};

/// Routing tree of a table.
#[derive(Debug, Default)]
pub struct Routes {
    root: Node,
}

#[derive(Debug, Default)]
struct Node {
    fixed: BTreeMap<String, Node>,
    placeholder: Option<Box<Node>>,
    /// Indexes in the table.
    endpoints: BTreeMap<Method, usize>,
    /// Indexes of the endpoints that take the rest of the path.
    tail: BTreeMap<Method, usize>,
}

/// Endpoints of a path.
#[derive(Debug)]
pub struct MatchedPath<'a> {
    pub endpoints: &'a BTreeMap<Method, usize>,
    values: Vec<String>,
}

impl MatchedPath<'_> {
    /// Returns the values of the placeholders by their names in the path of the endpoint.
    pub fn params(self, endpoint: &Endpoint) -> Params {
        Params(placeholders(endpoint.path).zip(self.values).collect())
    }

    /// Returns the value of `Allow`.
    pub fn allow(&self) -> String {
        let mut names = Vec::new();
        for method in self.endpoints.keys() {
            names.push(method.as_str());
            if *method == Method::Get {
                names.push("HEAD");
            }
        }
        names.push("OPTIONS");
        names.join(", ")
    }
}

/// Returns the names between braces, in order.
pub fn placeholders(path: &'static str) -> impl Iterator<Item = &'static str> {
    path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
}

impl Routes {
    /// Builds the tree. Fails if the table declares a method and path twice.
    pub fn new(endpoints: &[Endpoint]) -> Result<Self, String> {
        let mut routes = Self::default();
        for (position, endpoint) in endpoints.iter().enumerate() {
            let full = endpoint.full_path();
            let mut node = &mut routes.root;
            let (path, tail) = match endpoint.location == Location::RestOfRoot {
                true => full.rsplit_once('/').map_or((full.as_str(), true), |(path, _)| (path, true)),
                false => (full.as_str(), false),
            };
            // The root itself has no segments.
            for segment in segments(path).filter(|segment| !tail || !segment.is_empty()) {
                node = if segment.starts_with('{') {
                    &mut **node.placeholder.get_or_insert_default()
                } else {
                    node.fixed.entry(segment.to_owned()).or_default()
                };
            }
            let declared = if tail { &mut node.tail } else { &mut node.endpoints };
            if declared.insert(endpoint.method, position).is_some() {
                return Err(format!("{} {full} is declared twice", endpoint.method.as_str()));
            }
        }
        Ok(routes)
    }

    /// Finds the endpoints of a path. `None` if there are none. Ignores a trailing slash, and treats `-` and `_` alike
    /// in fixed segments.
    pub fn find(&self, path: &str) -> Option<MatchedPath<'_>> {
        let path = path.strip_suffix('/').filter(|path| !path.is_empty()).unwrap_or(path);
        let segments: Option<Vec<Cow<'_, str>>> = segments(path).map(percent_decode).collect();
        let mut values = Vec::new();
        let endpoints = descend(&self.root, &segments?, &mut values)?;
        Some(MatchedPath { endpoints, values })
    }
}

fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.strip_prefix('/').unwrap_or(path).split('/')
}

fn descend<'a>(
    node: &'a Node,
    segments: &[Cow<'_, str>],
    values: &mut Vec<String>,
) -> Option<&'a BTreeMap<Method, usize>> {
    let Some((first, rest)) = segments.split_first() else {
        return (!node.endpoints.is_empty()).then_some(&node.endpoints);
    };
    let other = |from: &str, to| first.contains(from).then(|| first.replace(from, to));
    let others = [other("_", "-"), other("-", "_")];
    let spellings = std::iter::once(&**first).chain(others.iter().flatten().map(String::as_str));
    let mut is_fixed = false;
    for next in spellings.filter_map(|spelling| node.fixed.get(spelling)) {
        is_fixed = true;
        if let Some(found) = descend(next, rest, values) {
            return Some(found);
        }
    }
    if first.is_empty() {
        return None;
    }
    if let Some(next) = node.placeholder.as_deref() {
        values.push(first.clone().into_owned());
        if let Some(found) = descend(next, rest, values) {
            return Some(found);
        }
        values.pop();
    }
    // A path that begins like a declared one is a mistake in that one.
    if is_fixed || node.tail.is_empty() || rest.iter().any(|segment| segment.is_empty()) {
        return None;
    }
    values.push(segments.join("/"));
    Some(&node.tail)
}

#[cfg(test)]
mod tests {
    use gateway_model::capability::Capability;

    use super::super::Table;
    use super::*;

    fn table(endpoints: &[(Method, &'static str)]) -> Table {
        let mut table = Table::default();
        table.unsupported(Capability::ProfileMtu, endpoints);
        table
    }

    #[test]
    fn a_fixed_segment_beats_a_placeholder_and_falls_back_to_it() {
        let table = table(&[
            (Method::Get, "/tunnels/{id}"),
            (Method::Get, "/tunnels/egress"),
            (Method::Get, "/tunnels/{name}/config"),
        ]);
        let routes = Routes::new(table.endpoints()).expect("no duplicates");
        let path_of = |path: &str| {
            let found = routes.find(path)?;
            let endpoint = &table.endpoints()[*found.endpoints.get(&Method::Get)?];
            Some((endpoint.path, found.params(endpoint)))
        };
        assert_eq!(path_of("/api/v1/tunnels/egress").expect("found").0, "/tunnels/egress");
        let (path, params) = path_of("/api/v1/tunnels/a%2Fb").expect("found");
        assert_eq!((path, params.get("id")), ("/tunnels/{id}", "a/b"));
        let (path, params) = path_of("/api/v1/tunnels/egress/config").expect("found");
        assert_eq!((path, params.get("name")), ("/tunnels/{name}/config", "egress"));
        assert_eq!(path_of("/api/v1/tunnels/egress/").expect("found").0, "/tunnels/egress");
        for unknown in [
            "/api/v1/tunnels",
            "/api/v1/tunnels/",
            "/api/v1/tunnels/egress//",
            "/tunnels/egress",
            "/api/v1/tunnels/%ff",
        ] {
            assert!(path_of(unknown).is_none(), "{unknown}");
        }
    }

    #[test]
    fn hyphens_and_underscores_are_alike_in_fixed_segments() {
        let table = table(&[(Method::Get, "/device-groups/{id}"), (Method::Get, "/a_b")]);
        let routes = Routes::new(table.endpoints()).expect("no duplicates");
        for path in ["/api/v1/device-groups/x_y", "/api/v1/device_groups/x_y"] {
            let found = routes.find(path).expect("found");
            let endpoint = &table.endpoints()[*found.endpoints.get(&Method::Get).expect("a row")];
            assert_eq!(found.params(endpoint).get("id"), "x_y");
        }
        assert!(routes.find("/api/v1/a-b").is_some());
    }

    #[test]
    fn a_tail_takes_what_begins_no_other_path() {
        let mut table = Table::default();
        table.unsupported(Capability::ProfileMtu, &[(Method::Get, "/a/{id}")]);
        table.page("/", "root", "text/html", |pages, _| Some(pages.index()));
        table.page("/assets/{file}", "asset", "*/*", |pages, _| Some(pages.index()));
        table.page("/{path}", "rest", "*/*", |pages, _| Some(pages.index())).tail();
        let routes = Routes::new(table.endpoints()).expect("no duplicates");
        let rest_of = |path: &str| {
            let found = routes.find(path)?;
            let endpoint = &table.endpoints()[*found.endpoints.get(&Method::Get)?];
            Some((endpoint.operation.clone(), found.params(endpoint).get("path").to_owned()))
        };
        let rest = |path: &str| Some(("rest".to_owned(), path.to_owned()));
        assert_eq!(rest_of("/devices"), rest("devices"));
        assert_eq!(rest_of("/devices/7/"), rest("devices/7"));
        assert_eq!(rest_of("/apis"), rest("apis"));
        assert_eq!(rest_of("/a%2Fb/../c"), rest("a/b/../c"));
        assert_eq!(rest_of("/").expect("found").0, "root");
        assert_eq!(rest_of("/assets/x.js").expect("found").0, "asset");
        for none in ["/api", "/api/v1", "/api/v1/b", "/api/v2/a/1", "/assets", "/assets/x/y", "//x", "/x//y"]
        {
            assert_eq!(rest_of(none), None, "{none}");
        }
        let Some(found) = routes.find("/devices") else { panic!("not found") };
        assert_eq!(found.allow(), "GET, HEAD, OPTIONS");
    }

    #[test]
    fn one_method_and_path_is_one_row() {
        let table = table(&[(Method::Get, "/a/{x}"), (Method::Get, "/a/{y}")]);
        assert!(Routes::new(table.endpoints()).expect_err("duplicate").contains("declared twice"));
    }

    #[test]
    fn allow_names_what_is_answered() {
        let table = table(&[(Method::Get, "/a"), (Method::Post, "/a")]);
        let routes = Routes::new(table.endpoints()).expect("no duplicates");
        assert_eq!(routes.find("/api/v1/a").expect("found").allow(), "GET, HEAD, POST, OPTIONS");
    }
}
