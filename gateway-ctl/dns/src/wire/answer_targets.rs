//! Targets of an answer: the names of its alias chain, and its addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gateway_core::dns::{Name, NameRef, Record};

use super::name::NameBuf;
use super::{rtype, u16_at};

/// Names and addresses in the answer section, the only section that is passed on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerTargets {
    /// Targets of CNAME, DNAME, HTTPS and SVCB records.
    pub names: Vec<Name>,
    /// Of A and AAAA records, and hints of HTTPS and SVCB records, each with the TTL of its record.
    pub addresses: Vec<(IpAddr, u32)>,
}

impl AnswerTargets {
    pub fn of(records: &[Record]) -> AnswerTargets {
        let mut facts = AnswerTargets::default();
        for record in records {
            facts.add(record);
        }
        facts
    }

    fn add(&mut self, record: &Record) {
        match record.rtype {
            rtype::A => self.addresses.extend(address_v4(&record.rdata).map(|address| (address, record.ttl))),
            rtype::AAAA => {
                self.addresses.extend(address_v6(&record.rdata).map(|address| (address, record.ttl)))
            }
            rtype::CNAME | rtype::DNAME => self.names.extend(name(&record.rdata, 0).map(|(name, _)| name)),
            rtype::SVCB | rtype::HTTPS => {
                let Some((target, end)) = name(&record.rdata, 2) else { return };
                // The root is the owner itself (RFC 9460, section 2.5).
                if target.as_ref() != NameRef::ROOT {
                    self.names.push(target);
                }
                self.addresses.extend(hints(&record.rdata[end..]).map(|address| (address, record.ttl)));
            }
            _ => {}
        }
    }
}

fn name(rdata: &[u8], at: usize) -> Option<(Name, usize)> {
    let (name, end) = NameBuf::read(rdata, at)?;
    Some((name.to_name()?, end))
}

fn address_v4(bytes: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(bytes).ok().map(|bytes| Ipv4Addr::from(bytes).into())
}

fn address_v6(bytes: &[u8]) -> Option<IpAddr> {
    <[u8; 16]>::try_from(bytes).ok().map(|bytes| Ipv6Addr::from(bytes).into())
}

/// Addresses of `ipv4hint` and `ipv6hint` (RFC 9460, section 7.3).
fn hints(mut parameters: &[u8]) -> impl Iterator<Item = IpAddr> {
    let mut found = Vec::new();
    while let (Some(key), Some(length)) = (u16_at(parameters, 0), u16_at(parameters, 2)) {
        let Some(value) = parameters.get(4..4 + usize::from(length)) else { break };
        match key {
            4 => found.extend(value.chunks_exact(4).filter_map(address_v4)),
            6 => found.extend(value.chunks_exact(16).filter_map(address_v6)),
            _ => {}
        }
        parameters = &parameters[4 + value.len()..];
    }
    found.into_iter()
}
