//! Prefixes in messages (RFC 8415, sections 21.21 and 21.22).

use std::net::Ipv6Addr;

use ipnet::Ipv6Net;

use super::{Options, option};

/// Identity association for prefixes. Times are in seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityAssociation {
    pub id: u32,
    pub renew_after: u32,
    pub rebind_after: u32,
    pub status: u16,
    pub prefixes: Vec<PrefixOption>,
}

/// A delegated prefix. Lifetimes are in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixOption {
    pub net: Ipv6Net,
    pub preferred: u32,
    pub valid: u32,
}

impl Options {
    /// Returns the identity association with this id. `None` if there is none, or if its times contradict each other.
    pub fn prefixes(&self, id: u32) -> Option<IdentityAssociation> {
        self.all(option::PREFIXES).filter_map(parse).find(|association| association.id == id)
    }

    pub fn push_prefixes(&mut self, id: u32, prefixes: &[PrefixOption]) {
        let mut content = Vec::from(id.to_be_bytes());
        // The server chooses the times.
        content.extend([0; 8]);
        let mut inner = Options::default();
        for PrefixOption { net, preferred, valid } in prefixes {
            let mut bytes = Vec::from(preferred.to_be_bytes());
            bytes.extend(valid.to_be_bytes());
            bytes.push(net.prefix_len());
            bytes.extend(net.network().octets());
            inner.push(option::PREFIX, bytes);
        }
        inner.write(&mut content);
        self.push(option::PREFIXES, content);
    }
}

fn parse(content: &[u8]) -> Option<IdentityAssociation> {
    let (head, rest) = content.split_first_chunk::<12>()?;
    let [id, renew_after, rebind_after] = words(head);
    if renew_after > rebind_after && rebind_after > 0 {
        return None;
    }
    let options = Options::parse(rest)?;
    let prefixes = options.all(option::PREFIX).filter_map(prefix).collect();
    Some(IdentityAssociation { id, renew_after, rebind_after, status: options.status(), prefixes })
}

fn prefix(content: &[u8]) -> Option<PrefixOption> {
    let (head, rest) = content.split_first_chunk::<25>()?;
    let [preferred, valid] = words(head.first_chunk::<8>()?);
    let net = Ipv6Net::new(Ipv6Addr::from(*head[9..].first_chunk::<16>()?), head[8]).ok()?;
    let is_valid = preferred <= valid && Options::parse(rest)?.status() == super::status::SUCCESS;
    is_valid.then_some(PrefixOption { net: net.trunc(), preferred, valid })
}

fn words<const BYTES: usize, const WORDS: usize>(bytes: &[u8; BYTES]) -> [u32; WORDS] {
    let mut words = bytes.as_chunks::<4>().0.iter().map(|bytes| u32::from_be_bytes(*bytes));
    std::array::from_fn(|_| words.next().unwrap_or(0))
}
