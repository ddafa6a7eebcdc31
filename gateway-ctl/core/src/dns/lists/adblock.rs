//! Rules in adblock syntax: rules that are only a name are stored as names, the others are compiled.

use std::borrow::Cow;
use std::net::IpAddr;

use gateway_model::pattern::{AdblockRule, Match, Pattern};

use super::entries::{ListCollector, ListRuleEffect, as_name};
use super::read_name::{Text, read};
use crate::dns::domain_set::{Effect, Form};
use crate::dns::name::{MAX, NameRef};

/// Parses a trimmed line that is no comment.
pub(super) fn rule(line: &[u8], into: &mut ListCollector) {
    let mut room = [0; MAX];
    if let Some((name, form, effect)) = name_only(line, &mut room) {
        return take(name.as_ref(), form, effect, into);
    }
    let Ok(text) = std::str::from_utf8(line) else {
        return into.ignore(Cow::Borrowed("the line is not UTF-8"));
    };
    if let Some((address, effect)) = address_only(text) {
        return into.net(address.into(), effect);
    }
    if let Some(disabled) = without_badfilter(text) {
        return match Pattern::parse(Match::Adblock, &disabled) {
            Ok(Pattern::Adblock(rule)) => into.disable(&rule),
            Ok(_) => {}
            Err(reason) => into.ignore(reason.into()),
        };
    }
    match Pattern::parse(Match::Adblock, text) {
        Ok(Pattern::Adblock(rule)) => compiled(text, rule, into),
        Ok(_) => {}
        Err(reason) => into.ignore(reason.into()),
    }
}

/// Parses `||name^`, with `@@` before it or `$important` behind it. Nearly all rules have this form.
fn name_only<'a>(line: &[u8], room: &'a mut [u8; MAX]) -> Option<(Text<'a>, Form, Effect)> {
    let (allow, rest) = match line.strip_prefix(b"@@") {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let rest = rest.strip_prefix(b"||")?;
    let end = rest.iter().position(|b| matches!(b, b'^' | b'$' | b'|' | b'/' | b'*'))?;
    let important = match &rest[end..] {
        b"^" | b"^|" => false,
        b"^$important" => true,
        _ => return None,
    };
    let effect = match (allow, important) {
        (false, false) => Effect::Block,
        (false, true) => Effect::BlockAlways,
        (true, false) => Effect::Allow,
        (true, true) => Effect::AllowAlways,
    };
    Some((read(&rest[..end], room).ok()?, Form::Both, effect))
}

/// Parses a rule for an address, such as `||192.0.2.1^`: answers with it are blocked.
fn address_only(text: &str) -> Option<(IpAddr, Effect)> {
    let (effect, rest) = match text.strip_prefix("@@") {
        Some(rest) => (Effect::Allow, rest),
        None => (Effect::Block, text),
    };
    let rest = ["||", "|http://", "http://", "://", "|"].iter().find_map(|start| rest.strip_prefix(start))?;
    let end = rest.find(['^', '/', '|']).unwrap_or(rest.len());
    let is_end = matches!(&rest[end..], "^" | "/" | "|" | "^|");
    Some((rest[..end].parse().ok().filter(|_| is_end)?, effect))
}

/// Returns the rule that a rule with the modifier `badfilter` disables.
fn without_badfilter(text: &str) -> Option<String> {
    let (body, modifiers) = text.rsplit_once('$')?;
    let mut modifiers: Vec<&str> = modifiers.split(',').collect();
    let at = modifiers.iter().position(|modifier| *modifier == "badfilter")?;
    modifiers.remove(at);
    Some(if modifiers.is_empty() { body.to_owned() } else { format!("{body}${}", modifiers.join(",")) })
}

fn take(name: NameRef<'_>, form: Form, effect: Effect, into: &mut ListCollector) {
    into.name(name, form, effect);
}

fn compiled(text: &str, rule: Box<AdblockRule>, into: &mut ListCollector) {
    if !rule.clients.is_empty() {
        return into.ignore(Cow::Borrowed("a rule of a list cannot be for certain clients"));
    }
    match as_name(&rule) {
        Some((name, form, effect)) => take(name.as_ref(), form, effect, into),
        None => into.rule(text, ListRuleEffect::Adblock(rule)),
    }
}
