//! Detection of the format of a list from its beginning.

use std::net::IpAddr;

use ipnet::IpNet;

use super::format::Format;

/// Number of significant lines that are inspected.
const DETECTION_LINES: usize = 400;

/// Returns the format that most lines have; `Domains` if no line is significant.
pub(super) fn format(head: &[u8]) -> Format {
    let mut counts = [0usize; 5];
    for line in
        head.split(|b| *b == b'\n').map(<[u8]>::trim_ascii).filter_map(looks_like).take(DETECTION_LINES)
    {
        counts[line as usize] += 1;
    }
    if counts == [0; 5] {
        return Format::Domains;
    }
    let formats = [Format::Ip, Format::Domains, Format::Hosts, Format::Adblock, Format::Rpz];
    // Records of a zone cannot be mistaken for another format.
    if counts[Format::Rpz as usize] > 0 && counts[Format::Adblock as usize] == 0 {
        return Format::Rpz;
    }
    // `max_by_key` returns the last of equal counts. Plain names are weak evidence. A list of addresses has no names, and
    // the other formats skip addresses, so that addresses need the majority.
    formats.into_iter().max_by_key(|format| counts[*format as usize]).unwrap_or(Format::Domains)
}

fn looks_like(line: &[u8]) -> Option<Format> {
    let first = *line.first()?;
    if first == b'[' && line.len() > 8 && line[1..8].eq_ignore_ascii_case(b"adblock") {
        return Some(Format::Adblock);
    }
    if matches!(first, b'#' | b';' | b'!' | b'[') {
        return None;
    }
    let text = std::str::from_utf8(line).ok()?;
    let mut words = text.split_ascii_whitespace();
    let word = words.next()?;
    if word.starts_with("||") || word.starts_with("@@") || word.contains('^') {
        return Some(Format::Adblock);
    }
    if word.eq_ignore_ascii_case("$TTL") || word.eq_ignore_ascii_case("$ORIGIN") {
        return Some(Format::Rpz);
    }
    let next = words.next().filter(|next| !next.starts_with('#'));
    if word.parse::<IpNet>().is_ok() || word.parse::<IpAddr>().is_ok() {
        return Some(if next.is_some_and(|next| !next.starts_with(';')) {
            Format::Hosts
        } else {
            Format::Ip
        });
    }
    let is_type = |word: &str| ["SOA", "CNAME"].iter().any(|name| word.eq_ignore_ascii_case(name));
    match next {
        None => Some(Format::Domains),
        Some(next) if is_type(next) || words.take(2).any(is_type) => Some(Format::Rpz),
        Some(_) => None,
    }
}
