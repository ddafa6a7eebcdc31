//! Every rule finds its violations and nothing else.

use super::*;

fn source(path: &str, text: &str) -> Vec<Source> {
    vec![Source { path: path.to_owned(), text: text.to_owned() }]
}

#[test]
fn a_package_without_the_workspaces_lints_is_found() {
    let with = "[package]\nname = \"a\"\n[lints]\nworkspace = true\n";
    assert!(lints(&source("a/Cargo.toml", with)).is_empty());
    assert_eq!(
        lints(&source("a/Cargo.toml", "[package]\nname = \"a\"\n[lints]\n[x]\nworkspace = true\n")).len(),
        1
    );
    assert!(lints(&source("Cargo.toml", "[workspace]\n")).is_empty());
}

#[test]
fn a_long_file_is_found_unless_it_is_a_test() {
    let text = "//! Long.\n".repeat(601);
    assert_eq!(length(&source("a/src/lib.rs", &text)).len(), 1);
    assert!(length(&source("a/src/b/tests.rs", &text)).is_empty());
    assert!(length(&source("a/src/lib.rs", &text[10..])).is_empty());
}

#[test]
fn a_module_without_documentation_is_found() {
    assert_eq!(module_docs(&source("a.rs", "use std::fmt;\n")).len(), 1);
    assert!(module_docs(&source("a.rs", "//! What it is.\n")).is_empty());
}

#[test]
fn a_vague_file_name_is_found() {
    assert_eq!(file_names(&source("a/src/utils.rs", "")).len(), 1);
    assert!(file_names(&source("a/src/netns.rs", "")).is_empty());
}

#[test]
fn a_connection_past_the_outbound_crate_is_found() {
    let path = "gateway-ctl/src/services/a.rs";
    for line in [
        "lookup_host(name).await",
        "let names = Resolver::default();",
        "let s = TcpStream::connect(to);",
        "client::connect(c, a, h)",
    ] {
        assert_eq!(outgoing(&source(path, line)).len(), 1, "{line}");
        assert!(outgoing(&source("gateway-ctl/outbound/src/names.rs", line)).is_empty(), "{line}");
        assert!(outgoing(&source("gateway-ctl/src/services/tests.rs", line)).is_empty(), "{line}");
    }
    let http = "hyper::client::conn::http1::handshake(stream)";
    assert_eq!(outgoing(&source(path, http)).len(), 1);
    assert!(outgoing(&source("gateway-api/src/user_command.rs", http)).is_empty());
    assert!(outgoing(&source(path, "client::connect_stream(c, s, h)")).is_empty());
}

#[test]
fn an_ignored_test_is_found() {
    let text = concat!("#[", "ignore = \"slow\"]\n");
    assert_eq!(ignored_tests(&source("a.rs", text)), ["a.rs:1: an ignored test"]);
    assert_eq!(ignored_tests(&source("tests/tests/vm/guest.rs", text)).len(), 1);
    let elsewhere = text.replace("slow", "runs inside the guest, called by smoke.sh");
    assert!(ignored_tests(&source("tests/tests/vm/guest.rs", &elsewhere)).is_empty());
    assert_eq!(ignored_tests(&source("tests/tests/e2e/a.rs", &elsewhere)).len(), 1);
}

#[test]
fn a_mark_needs_an_issue() {
    let mark = concat!("TO", "DO");
    assert_eq!(left_to_do(&source("a.rs", &format!("// {mark}: later"))).len(), 1);
    assert!(left_to_do(&source("a.rs", &format!("// {mark}(#12): later"))).is_empty());
    assert_eq!(left_to_do(&source("a.md", concat!("FIX", "ME"))).len(), 1);
    assert!(left_to_do(&source("a.sh", "mktemp -d gw-XXXXXX")).is_empty());
    assert_eq!(left_to_do(&source("a.rs", concat!("to", "do!()"))).len(), 1);
}

#[test]
fn a_path_of_one_machine_is_found() {
    assert_eq!(machine_paths(&source("a.md", concat!("see /wo", "rk/main"))).len(), 1);
    assert_eq!(machine_paths(&source("a.md", concat!("see /tmp", "/t/x"))).len(), 1);
    assert!(machine_paths(&source("a.md", concat!("see docs/wo", "rk/a.md"))).is_empty());
}

#[test]
fn plain_old_data_is_declared_once() {
    let one = "unsafe impl<T: Wire> aya::Pod for Raw<T> {}\n";
    assert!(plain_old_data(&source("gateway-ctl/src/a.rs", one)).is_empty());
    assert_eq!(plain_old_data(&source("gateway-ctl/src/a.rs", &one.repeat(2))).len(), 2);
    assert_eq!(plain_old_data(&source("gateway-ctl/src/a.rs", "")).len(), 1);
}

#[test]
fn unsafe_code_is_found_in_safe_packages_only() {
    let text = "#![forbid(unsafe_code)]\n// unsafe is not used\nunsafe { f() }\n";
    assert_eq!(
        unsafe_code(&source("gateway-common/src/a.rs", text)),
        ["gateway-common/src/a.rs:3: unsafe code"]
    );
    assert!(unsafe_code(&source("gateway-ebpf/src/a.rs", text)).is_empty());
}

#[test]
fn effects_are_found_in_pure_packages() {
    let core = |text| effects(&source("gateway-ctl/core/src/a.rs", text));
    assert_eq!(core("use std::{collections::BTreeMap, fs};\n").len(), 1);
    assert_eq!(core("use std::{\n    net::{IpAddr, UdpSocket},\n    process::Command,\n};\n").len(), 2);
    assert_eq!(core("let x = std::fs::read(p);\n").len(), 1);
    assert_eq!(core("let now = Instant::now();\n").len(), 1);
    assert!(core("use std::{fmt, net::{IpAddr, Ipv4Addr}};\n// std::fs\n").is_empty());
    assert!(core("#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n").is_empty());
    assert!(effects(&source("gateway-ctl/src/a.rs", "use std::fs;\n")).is_empty());
}

#[test]
fn wall_clock_is_found_where_clippy_does_not_look() {
    for path in ["gateway-ctl/src/os/sync.rs", "gateway-ebpf/src/main.rs"] {
        assert_eq!(
            wall_clock(&source(path, "//! Doc\nTimestamp::now()\n")),
            [format!("{path}:2: reads a clock")]
        );
        assert!(wall_clock(&source(path, "//! Doc\nInstant::now()\n")).is_empty());
    }
    assert!(wall_clock(&source("gateway-ctl/src/os/sync/tests.rs", "Timestamp::now()\n")).is_empty());
    assert!(wall_clock(&source("gateway-ctl/src/clock/system.rs", "Timestamp::now()\n")).is_empty());
}
