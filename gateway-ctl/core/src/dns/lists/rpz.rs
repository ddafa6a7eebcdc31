//! Response policy zones in the text form of zone files.
//!
//! Supported triggers are names and addresses of the answer (`rpz-ip`). Supported actions are NXDOMAIN (`CNAME .`),
//! NODATA (`CNAME *.`), `rpz-passthru`, `rpz-drop`, and local data of the types A, AAAA and CNAME. Other local data is
//! answered with NODATA and counted. Triggers by client and by name server, and `rpz-tcp-only`, are not supported.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use super::entries::{Answer, ListCollector, ListRuleEffect};
use super::read_name::read;
use crate::dns::domain_set::{Effect, Form};
use crate::dns::name::MAX;
use crate::dns::rtype;

/// State of the zone parser that later lines depend on.
#[derive(Debug, Default)]
pub(super) struct Zone {
    /// Lower case, without the last dot; empty if unknown.
    origin: String,
    apex: String,
    /// Owner of the previous record, relative to the zone.
    owner: String,
    /// Inside the parentheses of a record over several lines.
    continued: bool,
}

impl Zone {
    pub(super) fn line(&mut self, line: &[u8], into: &mut ListCollector) {
        let Ok(text) = std::str::from_utf8(line) else {
            return into.ignore(Cow::Borrowed("the line is not UTF-8"));
        };
        let text = text.split(';').next().unwrap_or_default().trim_end();
        if self.continued {
            self.continued = !text.contains(')');
            return;
        }
        let mut words = text.split_ascii_whitespace();
        let Some(first) = words.next() else { return };
        if let Some(directive) = first.strip_prefix('$') {
            match (directive.to_ascii_uppercase().as_str(), words.next()) {
                ("ORIGIN", Some(name)) => self.origin = self.full(name),
                ("TTL", _) => {}
                _ => into.ignore(Cow::Borrowed("only $ORIGIN and $TTL are known")),
            }
            return;
        }
        let named = !text.starts_with([' ', '\t']);
        if !named {
            words = text.split_ascii_whitespace();
        }
        let is_class = |word: &str| ["IN", "CH", "HS"].iter().any(|class| word.eq_ignore_ascii_case(class));
        let is_ttl = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
        let record_type = words.find(|word| !is_class(word) && !is_ttl(word)).unwrap_or_default();
        let record_type = record_type.to_ascii_uppercase();
        let data = words.next().unwrap_or_default();
        self.continued = text.contains('(') && !text.contains(')');
        if record_type == "SOA" {
            if named {
                self.apex = self.full(first);
                self.owner.clear();
            }
            return;
        }
        if named {
            match self.relative(first) {
                Some(owner) => self.owner = owner,
                None => {
                    self.owner.clear();
                    return into.ignore(Cow::Borrowed("the name is not within the zone"));
                }
            }
        }
        match record_type.as_str() {
            // Infrastructure records of the zone itself.
            "NS" if self.owner.is_empty() => {}
            "DNSKEY" | "RRSIG" | "NSEC" | "NSEC3" | "NSEC3PARAM" => {}
            _ if self.owner.is_empty() => into.ignore(Cow::Borrowed("a record without a name")),
            known if rtype::parse(known).is_some() => self.record(&record_type, data, into),
            _ => into.ignore(format!("local data of the type {record_type:.16} is not understood").into()),
        }
    }

    /// Returns the whole name, in lower case, without the last dot.
    fn full(&self, name: &str) -> String {
        let lower = name.to_ascii_lowercase();
        match lower.strip_suffix('.') {
            Some(whole) => whole.to_owned(),
            None if lower == "@" => self.origin.clone(),
            None if self.origin.is_empty() => lower,
            None => format!("{lower}.{}", self.origin),
        }
    }

    /// Returns the name relative to the zone; empty for the apex, none for names outside the zone.
    fn relative(&self, name: &str) -> Option<String> {
        // Without a known zone name, names are already relative to it.
        if !name.ends_with('.') && name != "@" && (self.origin.is_empty() || self.origin == self.apex) {
            return Some(name.to_ascii_lowercase());
        }
        let full = self.full(name);
        if full == self.apex {
            return Some(String::new());
        }
        if self.apex.is_empty() {
            return Some(full);
        }
        let front = full.strip_suffix(self.apex.as_str())?;
        front.strip_suffix('.').map(str::to_owned)
    }

    fn record(&self, record_type: &str, data: &str, into: &mut ListCollector) {
        let owner = self.owner.as_str();
        for trigger in ["rpz-client-ip", "rpz-nsip", "rpz-nsdname"] {
            if owner == trigger || owner.ends_with(trigger) {
                return into.ignore(format!("triggers of the kind {trigger} are not understood").into());
            }
        }
        // What cannot be answered as the zone says is answered with no records.
        let effect = match effect(record_type, data, owner) {
            Ok(effect) => effect,
            Err(reason) => {
                into.ignore(reason);
                Data::Effect(Effect::NoData)
            }
        };
        if record_type == "CNAME" && data.trim_end_matches('.').eq_ignore_ascii_case("rpz-tcp-only") {
            return;
        }
        if let Some(net) = owner.strip_suffix(".rpz-ip") {
            return match (net_of(net), effect) {
                (Some(net), Data::Effect(effect)) => into.net(net, effect),
                (Some(net), Data::Answer(_)) => {
                    into.ignore(Cow::Borrowed(
                        "local data for addresses of answers is not understood; they are answered with no records",
                    ));
                    into.net(net, Effect::NoData);
                }
                (None, _) => into.ignore(Cow::Borrowed("not a network such as 24.0.2.0.192.rpz-ip")),
            };
        }
        let (form, name) = match owner.strip_prefix("*.") {
            Some(rest) => (Form::Below, rest),
            None => (Form::Itself, owner),
        };
        let mut room = [0; MAX];
        match (read(name.as_bytes(), &mut room), effect) {
            (Err(reason), _) => into.ignore(reason),
            (Ok(name), Data::Effect(effect)) => {
                into.name(name.as_ref(), form, effect);
            }
            (Ok(name), Data::Answer(answer)) => {
                let text = format!("{owner} {record_type} {data}");
                into.rule(&text, ListRuleEffect::Answer { name: name.as_ref().to_owned(), form, answer });
            }
        }
    }
}

enum Data {
    Effect(Effect),
    Answer(Answer),
}

fn effect(record_type: &str, data: &str, owner: &str) -> Result<Data, Cow<'static, str>> {
    if !matches!(record_type, "CNAME" | "A" | "AAAA") {
        return Err(format!(
            "local data of the type {record_type:.16} is not understood; the name is answered with no records"
        )
        .into());
    }
    if record_type != "CNAME" {
        let address: Option<IpAddr> = match record_type {
            "A" => data.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
            _ => data.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        };
        return match address {
            Some(address) if address.is_unspecified() || address.is_loopback() => {
                Ok(Data::Effect(Effect::Block))
            }
            Some(address) => Ok(Data::Answer(Answer::Address(address))),
            None => Err(format!("not an address of the type {record_type}").into()),
        };
    }
    let target = data.to_ascii_lowercase();
    let bare = target.strip_suffix('.').unwrap_or(&target);
    match bare {
        "" if target == "." => Ok(Data::Effect(Effect::Nxdomain)),
        "*" => Ok(Data::Effect(Effect::NoData)),
        "rpz-passthru" => Ok(Data::Effect(Effect::Allow)),
        "rpz-drop" => Ok(Data::Effect(Effect::Refuse)),
        "rpz-tcp-only" => Err(Cow::Borrowed("rpz-tcp-only is not understood")),
        // Old form of `rpz-passthru`.
        same if same == owner => Ok(Data::Effect(Effect::Allow)),
        _ => {
            let mut room = [0; MAX];
            let name = read(bare.as_bytes(), &mut room)?;
            Ok(Data::Answer(Answer::Name(name.as_ref().to_owned())))
        }
    }
}

/// Parses an `rpz-ip` trigger: `24.0.2.0.192` is 192.0.2.0/24, `48.zz.1.db8.2001` is 2001:db8:1::/48.
fn net_of(text: &str) -> Option<IpNet> {
    let (length, rest) = text.split_once('.')?;
    let length: u8 = length.parse().ok()?;
    let parts: Vec<&str> = rest.rsplit('.').collect();
    let octets: Option<Vec<u8>> = parts.iter().map(|part| part.parse().ok()).collect();
    let address: IpAddr = match octets.as_deref() {
        Some(&[a, b, c, d]) if length <= 32 => Ipv4Addr::new(a, b, c, d).into(),
        _ => {
            let text = parts.join(":").replace("zz", "");
            // At either end both colons are written out.
            let text = match (text.starts_with(':'), text.ends_with(':')) {
                (true, true) => "::".to_owned(),
                (true, false) => format!(":{text}"),
                (false, true) => format!("{text}:"),
                (false, false) => text,
            };
            text.parse::<Ipv6Addr>().ok()?.into()
        }
    };
    Some(IpNet::new(address, length).ok()?.trunc())
}
