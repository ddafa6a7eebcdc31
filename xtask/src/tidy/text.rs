//! Rules about text. Each returns its violations as `path:line: what`.
//!
//! The searched words are split in two halves, so that this file does not violate its own rules.

use super::source::{Source, has_word};

const LONGEST: usize = 600;

/// Packages without unsafe code.
const SAFE: &[&str] = &["gateway-common", "gateway-ctl/core", "gateway-ctl/model", "gateway-api"];

/// Packages whose functions depend on their arguments only.
const PURE: &[&str] = &["gateway-ctl/core", "gateway-ctl/model"];

/// Packages of the daemon that connect through `gateway-outbound` only.
const DAEMON: &[&str] =
    &["gateway-api", "gateway-ctl", "gateway-ctl/core", "gateway-ctl/dns", "gateway-ctl/model"];

/// Host look-ups and clients that `gateway-outbound` replaces.
const OUTGOING: &[&str] = &[
    "lookup_host",
    "Resolver::default",
    "to_socket_addrs",
    "ToSocketAddrs",
    "getaddrinfo",
    "TcpStream::connect",
    "client::conn",
    "client::legacy",
    "russh::client::connect",
    "client::connect",
];

/// Parts of the standard library that pure packages must not use.
const EFFECTS: &[&str] = &[
    "std::fs",
    "std::process",
    "std::env",
    "std::thread",
    "std::os",
    "std::net::TcpStream",
    "std::net::TcpListener",
    "std::net::UdpSocket",
    "std::net::ToSocketAddrs",
];
const WALL_CLOCKS: &[&str] = &["SystemTime::now", "Timestamp::now", "Zoned::now"];

/// Code in which clippy does not apply `disallowed-methods` of clippy.toml: it may open sockets, or is built for another
/// target.
const UNCHECKED_BY_CLIPPY: &[&str] = &["gateway-ctl/src/os", "gateway-ebpf/src"];

pub(super) fn lints(sources: &[Source]) -> Vec<String> {
    let packages =
        sources.iter().filter(|s| s.path.ends_with("Cargo.toml") && section(s, "package").is_some());
    let takes = |source: &Source| {
        section(source, "lints")
            .is_some_and(|lines| lines.iter().any(|line| line.replace(' ', "") == "workspace=true"))
    };
    packages.filter(|s| !takes(s)).map(|s| format!("{}: no `[lints] workspace = true`", s.path)).collect()
}

/// Returns the lines between `[name]` and the next header.
fn section<'a>(source: &'a Source, name: &str) -> Option<Vec<&'a str>> {
    let mut lines = source.text.lines().map(str::trim);
    lines.find(|line| *line == format!("[{name}]"))?;
    Some(lines.take_while(|line| !line.starts_with('[')).collect())
}

pub(super) fn length(sources: &[Source]) -> Vec<String> {
    let counted = sources.iter().filter(|s| s.is_rust() && !s.is_test()).map(|s| (s, s.text.lines().count()));
    counted.filter(|(_, n)| *n > LONGEST).map(|(s, n)| format!("{}: {n} lines", s.path)).collect()
}

pub(super) fn module_docs(sources: &[Source]) -> Vec<String> {
    let undocumented = sources.iter().filter(|s| s.is_rust() && !s.text.starts_with("//! "));
    undocumented.map(|s| format!("{}: does not begin with `//! `", s.path)).collect()
}

pub(super) fn file_names(sources: &[Source]) -> Vec<String> {
    let vague =
        ["mod", "util", "utils", "helper", "helpers", "manager", "handler", "common", "misc", "types"];
    let is_vague = |s: &&Source| {
        let name = s.path.rsplit('/').next().and_then(|file| file.strip_suffix(".rs"));
        name.is_some_and(|name| vague.contains(&name))
    };
    sources.iter().filter(is_vague).map(|s| format!("{}: name it after what it holds", s.path)).collect()
}

/// Returns ignored tests. Exempt are tests that another test runs elsewhere, and that say so: inside the emulated
/// machine.
pub(super) fn ignored_tests(sources: &[Source]) -> Vec<String> {
    let rust = |in_guest: bool| {
        sources.iter().filter(move |s| s.is_rust() && s.is_below("tests/tests/vm") == in_guest)
    };
    let ignored = |line: &str| line.contains(concat!("#[", "ignore"));
    let mut found = find(rust(false), |line| ignored(line).then_some("an ignored test"));
    found.extend(find(rust(true), |line| {
        (ignored(line) && !line.contains("runs inside the guest")).then_some("an ignored test")
    }));
    found
}

pub(super) fn left_to_do(sources: &[Source]) -> Vec<String> {
    let mut found = find(sources.iter().filter(|s| s.is_rust()), |line| {
        let macros = [concat!("to", "do!("), concat!("unimple", "mented!(")];
        macros.iter().any(|name| line.contains(name)).then_some("code that is not there")
    });
    let texts = [".rs", ".toml", ".md", ".sh", ".yaml", ".yml", "/run"];
    let written = sources.iter().filter(|s| texts.iter().any(|ending| s.path.ends_with(ending)));
    found.extend(find(written, |line| {
        let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
        marks
            .iter()
            .any(|mark| has_word(line, mark) && !names_issue(line, mark))
            .then_some("a mark without `(#issue)`")
    }));
    found
}

fn names_issue(line: &str, mark: &str) -> bool {
    let after = line.split_once(mark).and_then(|(_, rest)| rest.strip_prefix("(#"));
    after.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

pub(super) fn machine_paths(sources: &[Source]) -> Vec<String> {
    find(sources.iter(), |line| {
        let folders = [concat!("/wo", "rk/"), concat!("/tmp", "/t/")];
        let begins = |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-~}/".contains(c));
        let found = folders.iter().any(|folder| line.match_indices(folder).any(|(at, _)| begins(at)));
        found.then_some("a path of one machine")
    })
}

pub(super) fn plain_old_data(sources: &[Source]) -> Vec<String> {
    let is_declaration =
        |line: &str| line.contains("unsafe impl") && (line.contains("Pod for") || line.contains("Pod\tfor"));
    let found = find(sources.iter().filter(|s| s.is_rust() && !s.is_below("xtask")), |line| {
        is_declaration(line).then_some("declares `Pod`")
    });
    match found.len() {
        0 => vec!["no declaration was found: has it been moved out of sight of this rule?".to_owned()],
        1 => Vec::new(),
        _ => found,
    }
}

pub(super) fn unsafe_code(sources: &[Source]) -> Vec<String> {
    in_code_of(SAFE, sources, |line| has_word(line, "unsafe").then_some("unsafe code"))
}

/// Returns connections outside `gateway-outbound`. Exempt are the command line's client of the local socket and the
/// HTTP/2 of DNS upstreams, which uses a connection of `gateway-outbound`.
pub(super) fn outgoing(sources: &[Source]) -> Vec<String> {
    let allowed = |source: &str| {
        matches!(source, "gateway-api/src/user_command.rs" | "gateway-ctl/dns/src/upstream/doh.rs")
    };
    let daemon = sources.iter().filter(|s| DAEMON.iter().any(|package| is_source_of(s, package)));
    let mut found = Vec::new();
    for source in daemon.filter(|s| s.is_rust() && !s.is_test()) {
        for (number, line) in source.code() {
            let is_used =
                |name: &&&str| has_word(line, name) && !(allowed(&source.path) && name.contains("client"));
            if let Some(name) = OUTGOING.iter().find(is_used) {
                found.push(source.at(number, &format!("uses `{name}`: connect by gateway-outbound")));
            }
        }
    }
    found
}

pub(super) fn wall_clock(sources: &[Source]) -> Vec<String> {
    let is_unchecked = |s: &&Source| UNCHECKED_BY_CLIPPY.iter().any(|folder| s.is_below(folder));
    let unchecked = sources.iter().filter(|s| s.is_rust() && !s.is_test()).filter(is_unchecked);
    find_in_code(unchecked, |line| reads_clock(line, WALL_CLOCKS))
}

fn reads_clock(line: &str, clocks: &[&str]) -> Option<&'static str> {
    clocks.iter().any(|clock| line.contains(clock)).then_some("reads a clock")
}

pub(super) fn effects(sources: &[Source]) -> Vec<String> {
    let mut found = in_code_of(PURE, sources, |line| {
        reads_clock(line, &["Instant::now"]).or_else(|| reads_clock(line, WALL_CLOCKS))
    });
    for source in
        sources.iter().filter(|s| s.is_rust() && !s.is_test() && PURE.iter().any(|p| is_source_of(s, p)))
    {
        let code: Vec<&str> = source.code().map(|(_, line)| line).collect();
        let items = standard_items(&code.join("\n"));
        let effects = items.iter().filter(|item| EFFECTS.iter().any(|effect| begins_with(item, effect)));
        found.extend(effects.map(|item| format!("{}: uses {item}", source.path)));
    }
    found
}

fn begins_with(item: &str, path: &str) -> bool {
    item.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Returns the full path of every name below `std::`, with groups in braces expanded.
fn standard_items(code: &str) -> Vec<String> {
    let flat: String = code.split_whitespace().collect::<Vec<_>>().join(" ");
    let starts = flat
        .match_indices("std::")
        .filter(|(at, _)| !flat[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_'));
    starts.flat_map(|(at, std)| expand("std", flat[at + std.len()..].trim_start())).collect()
}

/// Expands `a::{b, c::d}` below `std` to `std::a::b` and `std::a::c::d`.
fn expand(prefix: &str, rest: &str) -> Vec<String> {
    if let Some(group) = rest.strip_prefix('{') {
        return members(group).iter().flat_map(|member| expand(prefix, member.trim())).collect();
    }
    let length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    let path = format!("{prefix}::{}", &rest[..length]);
    match rest[length..].strip_prefix("::") {
        Some(below) => expand(&path, below.trim_start()),
        None => vec![path],
    }
}

/// Returns the members of a group up to its closing brace.
fn members(group: &str) -> Vec<&str> {
    let (mut members, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' if depth == 0 => {
                members.push(&group[start..at]);
                start = at + 1;
            }
            '}' => {
                members.push(&group[start..at]);
                break;
            }
            _ => {}
        }
    }
    members
}

fn is_source_of(source: &Source, package: &str) -> bool {
    source.is_below(&format!("{package}/src"))
}

fn in_code_of(
    packages: &[&str],
    sources: &[Source],
    rule: impl Fn(&str) -> Option<&'static str>,
) -> Vec<String> {
    let chosen =
        sources.iter().filter(|s| s.is_rust() && !s.is_test() && packages.iter().any(|p| is_source_of(s, p)));
    find_in_code(chosen, rule)
}

fn find_in_code<'a>(
    sources: impl Iterator<Item = &'a Source>,
    rule: impl Fn(&str) -> Option<&'static str>,
) -> Vec<String> {
    sources
        .flat_map(|s| s.code().filter_map(|(n, line)| Some(s.at(n, rule(line)?))).collect::<Vec<_>>())
        .collect()
}

fn find<'a>(
    sources: impl Iterator<Item = &'a Source>,
    rule: impl Fn(&str) -> Option<&'static str>,
) -> Vec<String> {
    sources
        .flat_map(|s| s.lines().filter_map(|(n, line)| Some(s.at(n, rule(line)?))).collect::<Vec<_>>())
        .collect()
}

#[cfg(test)]
mod tests;
