//! Rules in adblock syntax: rules that are only a name are stored as names, the others are compiled.

use std::borrow::Cow;

use gateway_model::pattern::{AdblockRule, AdblockTarget, Match, Pattern};

use super::entries::{ListCollector, ListRuleEffect};
use super::read_name::{Text, read};
use crate::dns::domain_set::{Effect, Form};
use crate::dns::name::{MAX, Name, NameRef};

/// Parses a trimmed line that is no comment.
pub(super) fn rule(line: &[u8], into: &mut ListCollector) {
    let mut room = [0; MAX];
    if let Some((name, form, effect)) = name_only(line, &mut room) {
        return take(name.as_ref(), form, effect, into);
    }
    let Ok(text) = std::str::from_utf8(line) else {
        return into.ignore(Cow::Borrowed("the line is not UTF-8"));
    };
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

fn take(name: NameRef<'_>, form: Form, effect: Effect, into: &mut ListCollector) {
    into.name(name, form, effect);
}

fn compiled(text: &str, rule: Box<AdblockRule>, into: &mut ListCollector) {
    if !rule.clients.is_empty() {
        return into.ignore(Cow::Borrowed("a rule of a list cannot be for certain clients"));
    }
    let bare = rule.types.is_empty() && rule.not_types.is_empty() && rule.deny_allow.is_empty();
    let effect = match (rule.exception, rule.important) {
        (false, false) => Effect::Block,
        (false, true) => Effect::BlockAlways,
        (true, false) => Effect::Allow,
        (true, true) => Effect::AllowAlways,
    };
    match &rule.target {
        AdblockTarget::Suffix(name) if bare => take(Name::from(name).as_ref(), Form::Both, effect, into),
        AdblockTarget::Exact(name) if bare => take(Name::from(name).as_ref(), Form::Itself, effect, into),
        _ => into.rule(text, ListRuleEffect::Adblock(rule)),
    }
}
