//! Finds the kernel programs that the daemon embeds. It builds nothing: `cargo xtask ebpf` does.

use std::{
    env,
    path::{Path, PathBuf},
};

const VARIABLE: &str = "GATEWAY_BPF_OBJECT";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={VARIABLE}");
    let object = env::var_os(VARIABLE).map_or_else(default_object, PathBuf::from);
    println!("cargo:rerun-if-changed={}", object.display());
    if !object.is_file() {
        eprintln!(
            "The kernel programs are not built ({} is missing): run `cargo xtask setup`.",
            object.display()
        );
        std::process::exit(1);
    }
    println!("cargo:rustc-env={VARIABLE}={}", object.display());
}

/// Where `cargo xtask ebpf` puts them, whatever target directory this build uses.
fn default_object() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it for build scripts");
    let workspace = Path::new(&package).parent().expect("the package lies in a folder of the workspace");
    workspace.join("target/bpf/gateway.bpf.o")
}
