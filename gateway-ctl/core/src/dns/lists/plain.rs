//! Lines of hosts files, name lists and address lists. Lines that look like a rule are passed to `adblock`.

use std::borrow::Cow;
use std::net::IpAddr;

use ipnet::IpNet;

use super::adblock;
use super::entries::ListCollector;
use super::read_name::{Text, read};
use crate::dns::domain_set::{Effect, Form};
use crate::dns::name::{MAX, NameRef};

/// Names of the host itself in every hosts file.
const OWN: &[&[u8]] = &[
    b"localhost",
    b"localhost.localdomain",
    b"local",
    b"broadcasthost",
    b"ip6-localhost",
    b"ip6-loopback",
    b"ip6-localnet",
    b"ip6-mcastprefix",
    b"ip6-allnodes",
    b"ip6-allrouters",
    b"ip6-allhosts",
    b"0.0.0.0",
];

/// Parses a trimmed line. `is_adblock`: the list is one of rules, in which a dot or a star at the beginning is part of
/// a pattern.
pub(super) fn line(line: &[u8], is_adblock: bool, into: &mut ListCollector) {
    let Some(first) = line.first() else { return };
    match first {
        b'!' | b'[' | b';' => {}
        b'#' if !is_cosmetic(line) => {}
        b'@' | b'|' => adblock::rule(line, into),
        b'/' if line.starts_with(b"//") && !is_rule_of_url(line) => {}
        b'.' | b'*' if is_adblock => adblock::rule(line, into),
        _ => {
            let word = word(line);
            let (word, line) = match comment_at(word) {
                Some(at) => (&word[..at], &word[..at]),
                None => (word, line),
            };
            match null_or_address(word) {
                Some(null) if word.len() < line.len() => hosts(null, &line[word.len()..], into),
                Some(_) => into.ignore(Cow::Borrowed("an address without a name")),
                None if word.len() < line.len() && !is_comment(&line[word.len()..]) => {
                    adblock::rule(line, into);
                }
                None => alone(word, into),
            }
        }
    }
}

/// Returns whether the line is a hiding rule of browsers. Such rules begin like comments.
fn is_cosmetic(line: &[u8]) -> bool {
    [&b"##"[..], b"#@#", b"#?#", b"#$#"].iter().any(|mark| {
        line.strip_prefix(*mark).is_some_and(|rest| !matches!(rest.first(), None | Some(b' ' | b'#' | b'\t')))
    })
}

/// Returns whether the line is a rule such as `//name^`. Others that begin so are comments.
fn is_rule_of_url(line: &[u8]) -> bool {
    line.ends_with(b"^") && !line.iter().any(u8::is_ascii_whitespace)
}

/// Returns the offset of the comment in a word such as `name#comment`.
fn comment_at(word: &[u8]) -> Option<usize> {
    let at = memchr::memchr(b'#', word)?;
    let is_mark = |byte: &u8| matches!(byte, b'@' | b'?' | b'$' | b'%');
    let is_cosmetic = word[at + 1..].iter().find(|byte| !is_mark(byte)) == Some(&b'#');
    // Expressions and modifiers may have the character.
    let is_name = !word[..at].iter().any(|byte| matches!(byte, b'/' | b'$' | b'^' | b'|'));
    (is_name && !is_cosmetic).then_some(at)
}

fn word(line: &[u8]) -> &[u8] {
    &line[..line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len())]
}

fn is_comment(rest: &[u8]) -> bool {
    matches!(rest.trim_ascii_start().first(), None | Some(b'#' | b'!' | b';'))
}

/// Returns whether an address is a null or loopback address; none if the word is no address.
fn null_or_address(word: &[u8]) -> Option<bool> {
    match word {
        b"0.0.0.0" | b"127.0.0.1" | b"::" | b"::1" | b"0" => Some(true),
        // An address begins with a digit or has a colon.
        _ if !word.first().is_some_and(u8::is_ascii_hexdigit) && !word.contains(&b':') => None,
        _ => {
            let word = std::str::from_utf8(word).ok()?;
            // The zone id of the interface is not significant here.
            let address: IpAddr = word.split('%').next().unwrap_or(word).parse().ok()?;
            Some(address.is_unspecified() || address.is_loopback())
        }
    }
}

fn hosts(null: bool, rest: &[u8], into: &mut ListCollector) {
    for name in rest.split(u8::is_ascii_whitespace).filter(|name| !name.is_empty()) {
        let comment = memchr::memchr(b'#', name);
        if comment == Some(0) {
            return;
        }
        hosts_name(&name[..comment.unwrap_or(name.len())], null, into);
        if comment.is_some() {
            return;
        }
    }
}

fn hosts_name(name: &[u8], null: bool, into: &mut ListCollector) {
    if OWN.iter().any(|own| name.eq_ignore_ascii_case(own)) {
        return;
    }
    if !null {
        return into.ignore(Cow::Borrowed("the line gives a name an address, which lists may not"));
    }
    let mut room = [0; MAX];
    take(read(name, &mut room), Form::Itself, into);
}

/// Parses a single name, with or without `*.` or a dot before it. The entry includes its subdomains.
fn alone(word: &[u8], into: &mut ListCollector) {
    let name = word.strip_prefix(b"*.").or_else(|| word.strip_prefix(b".")).unwrap_or(word);
    let mut room = [0; MAX];
    match read(name, &mut room) {
        Err(_) if name.len() == word.len() || word.contains(&b'^') => adblock::rule(word, into),
        read => take(read, Form::Both, into),
    }
}

fn take(read: Result<Text<'_>, Cow<'static, str>>, form: Form, into: &mut ListCollector) {
    match read {
        Ok(name) if name.as_ref().parent().is_none_or(NameRef::is_root) => {
            into.ignore(Cow::Borrowed("a whole top-level domain; as ||name^ it would be taken"));
        }
        Ok(name) => {
            into.name(name.as_ref(), form, Effect::Block);
        }
        Err(reason) => into.ignore(reason),
    }
}

/// Parses a line of an address list.
pub(super) fn net(line: &[u8], into: &mut ListCollector) {
    let end = line.iter().position(|b| b.is_ascii_whitespace() || matches!(b, b'#' | b';' | b','));
    let word = &line[..end.unwrap_or(line.len())];
    if word.is_empty() || word.starts_with(b"//") || word.starts_with(b"!") {
        return;
    }
    let text = std::str::from_utf8(word).unwrap_or_default();
    let parsed = text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
    match parsed {
        Some(net) => into.net(net, Effect::Block),
        None => into.ignore(Cow::Borrowed("neither an address nor a network such as 192.0.2.0/24")),
    }
}
