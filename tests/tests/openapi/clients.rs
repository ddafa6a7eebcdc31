//! Clients that public generators make of the document, against the daemon.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::openapi::server::Server;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    said
}

#[test]
fn a_generated_python_client_reads_every_operation_and_changes_objects() {
    let programs = super::program().parent().expect("a folder").to_owned();
    let folder = tempfile::tempdir().expect("a folder");
    let configuration = folder.path().join("config.yaml");
    fs::write(&configuration, "post_hooks: []\n").expect("written");
    let said = succeed(
        Command::new(programs.join("python"))
            .args(["-m", "openapi_python_client", "generate", "--meta", "none", "--path"])
            .arg(root().join("gateway-api/openapi.json"))
            .arg("--config")
            .arg(&configuration)
            .arg("--output-path")
            .arg(folder.path().join("gateway_client")),
    );
    // Left out: bodies of text, metrics, files of the dashboard, packets of a capture, a support bundle, and the stream of flows.
    let left_out: Vec<&str> = said.lines().filter(|line| line.starts_with("WARNING parsing")).collect();
    assert!(left_out.len() <= 9, "{left_out:#?}");
    let server = Server::start();
    let said = succeed(
        Command::new(programs.join("python"))
            .arg(root().join("tests/clients/smoke.py"))
            .arg(server.origin())
            .env("PYTHONPATH", folder.path()),
    );
    assert!(said.contains("operations"), "{said}");
}

#[test]
fn a_generated_typescript_client_is_sound_and_changes_objects() {
    let modules = root().join("ui/node_modules").canonicalize();
    let modules = modules.expect("no packages of the dashboard: `cargo xtask test` installs them");
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink(&modules, at("node_modules")).expect("a link");
    fs::write(at("package.json"), "{\"type\": \"module\"}\n").expect("written");
    fs::copy(root().join("tests/clients/smoke.ts"), at("smoke.ts")).expect("copied");
    let node = || {
        let mut node = Command::new("node");
        node.current_dir(folder.path());
        node
    };
    succeed(
        node()
            .arg(modules.join("openapi-typescript/bin/cli.js"))
            .arg(root().join("gateway-api/openapi.json").canonicalize().expect("the document"))
            .args(["--default-non-nullable=false", "-o", "schema.d.ts"]),
    );
    succeed(node().arg(modules.join("typescript/bin/tsc")).args([
        "--module",
        "nodenext",
        "--target",
        "es2022",
        "--strict",
        "--exactOptionalPropertyTypes",
        "--noEmitOnError",
        "--outDir",
        "out",
        "--types",
        "node",
        "smoke.ts",
    ]));
    let server = Server::start();
    let said = succeed(node().args(["out/smoke.js", &server.origin()]));
    assert_eq!(said.trim(), "ok");
}
