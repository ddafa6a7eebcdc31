//! Answers of a stateless server: resolvers and domains, no addresses (RFC 8415, section 18.3.6).

use std::net::Ipv6Addr;

use super::{Kind, Message, option};
use crate::domain_search;

/// Settings for hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatelessSettings {
    pub resolvers: Vec<Ipv6Addr>,
    pub domains: Vec<String>,
    /// Seconds after which hosts ask again.
    pub refresh: u32,
}

/// Returns the answer to a message. `None` if it is no information request, or one for another server.
pub fn answer(request: &[u8], server: &[u8], settings: &StatelessSettings) -> Option<Vec<u8>> {
    let request = Message::parse(request).filter(|message| message.kind == Kind::InformationRequest)?;
    let options = &request.options;
    let is_for_other = options.all(option::SERVER_ID).any(|id| id != server);
    let wants_addresses = [option::ADDRESSES, option::TEMPORARY_ADDRESSES, option::PREFIXES];
    if is_for_other || wants_addresses.iter().any(|code| options.all(*code).next().is_some()) {
        return None;
    }
    let mut reply = Message::new(Kind::Reply, request.transaction);
    if options.all(option::CLIENT_ID).next().is_some() {
        reply.options.push(option::CLIENT_ID, options.duid(option::CLIENT_ID)?);
    }
    reply.options.push(option::SERVER_ID, server);
    let StatelessSettings { resolvers, domains, refresh } = settings;
    if options.requests(option::RESOLVERS) && !resolvers.is_empty() {
        let addresses: Vec<u8> = resolvers.iter().flat_map(Ipv6Addr::octets).collect();
        reply.options.push(option::RESOLVERS, addresses);
    }
    let mut names = Vec::new();
    for domain in domains {
        domain_search::push(&mut names, domain);
    }
    if options.requests(option::DOMAINS) && !names.is_empty() {
        reply.options.push(option::DOMAINS, names);
    }
    // Hosts must take it, whether or not they ask for it (RFC 8415, section 21.23).
    reply.options.push(option::REFRESH, refresh.to_be_bytes());
    Some(reply.bytes())
}
