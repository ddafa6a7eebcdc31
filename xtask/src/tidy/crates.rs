//! Rules about packages, based on cargo's metadata.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{
    metadata::{Metadata, list, text},
    paths, process,
};

/// Permitted dependencies between the packages of the workspace. `common` and `model` depend neither on each other nor
/// on any other package of it; only `core` joins them.
const DIRECTIONS: &[(&str, &[&str])] = &[
    ("gateway-common", &[]),
    ("gateway-model", &[]),
    ("gateway-ebpf", &["gateway-common"]),
    ("gateway-core", &["gateway-common", "gateway-model"]),
    ("gateway-dissect", &["gateway-common", "gateway-core"]),
    ("gateway-outbound", &["gateway-common"]),
    ("gateway-journal", &[]),
    ("gateway-mesh", &[]),
    (
        "gateway-dns",
        &["gateway-common", "gateway-core", "gateway-journal", "gateway-model", "gateway-outbound"],
    ),
    (
        "gateway-ctl",
        &[
            "gateway-common",
            "gateway-core",
            "gateway-dissect",
            "gateway-dns",
            "gateway-journal",
            "gateway-mesh",
            "gateway-model",
            "gateway-outbound",
        ],
    ),
    (
        "gateway-api",
        &[
            "gateway-common",
            "gateway-core",
            "gateway-ctl",
            "gateway-dns",
            "gateway-model",
            "gateway-outbound",
        ],
    ),
    ("gateway-cli", &["gateway-model"]),
    (
        "gateway-tests",
        &[
            "gateway-api",
            "gateway-cli",
            "gateway-common",
            "gateway-core",
            "gateway-ctl",
            "gateway-dissect",
            "gateway-dns",
            "gateway-mesh",
            "gateway-model",
        ],
    ),
    ("xtask", &[]),
];

/// Crates that block, store, or communicate with a kernel or a peer.
const IMPURE: &[&str] = &[
    "aya",
    "aya-obj",
    "axum",
    "boringtun",
    "hyper",
    "mio",
    "nix",
    "polling",
    "redb",
    "reqwest",
    "rtnetlink",
    "rustix",
    "socket2",
    "tokio",
    "tun-rs",
    "ureq",
];

/// HTTP and SOCKS clients, and resolvers.
const CLIENTS: &[&str] = &[
    "async-socks5",
    "attohttpc",
    "awc",
    "curl",
    "fast-socks5",
    "hickory-resolver",
    "hyper-rustls",
    "hyper-tls",
    "isahc",
    "minreq",
    "reqwest",
    "socks",
    "surf",
    "tokio-socks",
    "trust-dns-resolver",
    "ureq",
];

pub(super) fn directions() -> Result<Vec<String>> {
    let (workspace, ebpf) = (Metadata::of_workspace()?, Metadata::of_ebpf_package()?);
    Ok(wrong_directions(&[workspace.packages(), ebpf.packages()].concat()))
}

fn wrong_directions(packages: &[Value]) -> Vec<String> {
    let ours: BTreeSet<&str> = packages.iter().map(|package| text(&package["name"])).collect();
    let mut wrong = Vec::new();
    for package in packages {
        let name = text(&package["name"]);
        let Some((_, allowed)) = DIRECTIONS.iter().find(|(known, _)| *known == name) else {
            wrong.push(format!("{name} is in no row of the table in xtask/src/tidy/crates.rs"));
            continue;
        };
        let used: BTreeSet<&str> = list(&package["dependencies"]).iter().map(|d| text(&d["name"])).collect();
        for used in used.intersection(&ours).filter(|used| !allowed.contains(used)) {
            wrong.push(format!("{name} must not depend on {used}"));
        }
    }
    wrong
}

pub(super) fn purity() -> Result<Vec<String>> {
    let metadata = Metadata::with_dependencies()?;
    impure(metadata.packages(), metadata.nodes()).context("gateway-core is not in cargo's graph")
}

fn impure(packages: &[Value], nodes: &[Value]) -> Option<Vec<String>> {
    below("gateway-core", IMPURE, packages, nodes)
}

/// Finds clients other than `gateway-outbound` in the daemon.
pub(super) fn outgoing_clients() -> Result<Vec<String>> {
    let metadata = Metadata::with_dependencies()?;
    let found = below("gateway-api", CLIENTS, metadata.packages(), metadata.nodes());
    found.context("gateway-api is not in cargo's graph")
}

/// Returns every forbidden package below a root, with its dependency path. Build and test dependencies do not count:
/// they are not in the program.
fn below(root: &str, forbidden: &[&str], packages: &[Value], nodes: &[Value]) -> Option<Vec<String>> {
    let names: BTreeMap<&str, &str> = packages.iter().map(|p| (text(&p["id"]), text(&p["name"]))).collect();
    let graph: BTreeMap<&str, &Value> = nodes.iter().map(|node| (text(&node["id"]), node)).collect();
    let start = names.iter().find(|(_, name)| **name == root).map(|(id, _)| *id)?;

    let mut found = Vec::new();
    let mut ways = BTreeMap::from([(start, root.to_owned())]);
    let mut open = vec![start];
    while let Some(id) = open.pop() {
        let dependencies = graph.get(id).map_or(&[][..], |node| list(&node["deps"]));
        for dependency in dependencies.iter().filter(|dependency| is_normal(dependency)) {
            let below = text(&dependency["pkg"]);
            if ways.contains_key(below) {
                continue;
            }
            let name = names.get(below).copied().unwrap_or(below);
            let way = format!("{} -> {name}", ways.get(id).map_or("", String::as_str));
            if forbidden.contains(&name) {
                found.push(way.clone());
            }
            ways.insert(below, way);
            open.push(below);
        }
    }
    Some(found)
}

/// Reports whether this is a dependency of the program itself on Linux.
fn is_normal(dependency: &Value) -> bool {
    list(&dependency["dep_kinds"]).iter().any(|kind| {
        let target = text(&kind["target"]);
        let elsewhere =
            ["windows", "wasm", "macos", "hermit", "wasi"].iter().any(|other| target.contains(other));
        kind["kind"].is_null() && (!elsewhere || target.contains("linux") || target.contains("unix"))
    })
}

pub(super) fn lock_files() -> Result<Vec<String>> {
    let manifests = [paths::root().join("Cargo.toml"), paths::ebpf_package().join("Cargo.toml")];
    let mut stale = Vec::new();
    for manifest in manifests {
        let mut command = process::cargo();
        command.args(["metadata", "--locked", "--format-version", "1", "--manifest-path"]).arg(&manifest);
        if let Err(error) = process::output(&mut command) {
            stale.push(format!("{error:#}"));
        }
    }
    Ok(stale)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn package(name: &str, dependencies: &[&str]) -> Value {
        let dependencies: Vec<Value> = dependencies.iter().map(|name| json!({ "name": name })).collect();
        json!({ "id": name, "name": name, "dependencies": dependencies })
    }

    #[test]
    fn the_model_must_not_know_the_common_crate() {
        let packages =
            [package("gateway-common", &["zerocopy"]), package("gateway-model", &["gateway-common"])];
        assert_eq!(wrong_directions(&packages), ["gateway-model must not depend on gateway-common"]);
    }

    #[test]
    fn a_package_without_a_row_is_an_error() {
        assert_eq!(wrong_directions(&[package("gateway-new", &[])]).len(), 1);
    }

    fn node(id: &str, dependency: &str, kind: Value) -> Value {
        json!({ "id": id, "deps": [{ "pkg": dependency, "dep_kinds": [{ "kind": kind, "target": null }] }] })
    }

    #[test]
    fn an_impure_package_is_found_behind_another() {
        let packages = ["gateway-core", "jiff", "tokio"].map(|name| package(name, &[]));
        let nodes = [node("gateway-core", "jiff", Value::Null), node("jiff", "tokio", Value::Null)];
        assert_eq!(impure(&packages, &nodes).unwrap(), ["gateway-core -> jiff -> tokio"]);
    }

    #[test]
    fn a_second_client_is_found_behind_another_package() {
        let packages = ["gateway-api", "opendal", "reqwest"].map(|name| package(name, &[]));
        let nodes = [node("gateway-api", "opendal", Value::Null), node("opendal", "reqwest", Value::Null)];
        let found = below("gateway-api", CLIENTS, &packages, &nodes);
        assert_eq!(found.unwrap(), ["gateway-api -> opendal -> reqwest"]);
    }

    #[test]
    fn test_dependencies_do_not_make_impure() {
        let packages = ["gateway-core", "tokio"].map(|name| package(name, &[]));
        assert_eq!(impure(&packages, &[node("gateway-core", "tokio", json!("dev"))]).unwrap().len(), 0);
    }

    #[test]
    fn a_graph_without_core_proves_nothing() {
        assert!(impure(&[], &[]).is_none());
    }
}
