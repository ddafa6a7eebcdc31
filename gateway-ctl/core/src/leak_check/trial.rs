//! Packets of live tests: one to each destination, and a query for each name, as a host would send them.

use std::net::SocketAddr;

use gateway_model::Device;
use gateway_model::id::MacAddr;
use gateway_model::settings::groups::HostBlocks;

use super::frame::Transport;
use super::probe::Builder;
use super::{Check, Host, Plan, Token};
use crate::compile::{Compiled, Input};
use crate::evaluate::Subject;

/// Packet that a live test wants to send.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wanted {
    /// Opens a TCP connection.
    Tcp(SocketAddr),
    Udp(SocketAddr),
    /// Asks the gateway for the IPv4 addresses of a name.
    Name(String),
}

/// Packet with the host that sends it.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'a> {
    pub host: &'a Host,
    pub device: Option<&'a Device>,
    pub wanted: &'a Wanted,
}

/// Plans the packets. The second value has the index of the probe for each trial, or why there is none. `None` without
/// trials.
pub fn plan_trials(
    input: &Input<'_>,
    compiled: &Compiled,
    trials: &[Trial<'_>],
    random: u64,
) -> Option<(Plan, Vec<Result<usize, String>>)> {
    let mut probes = Vec::new();
    let mut indexes = Vec::new();
    for trial in trials {
        let before = probes.len();
        let subject = Subject {
            device: trial.device,
            mac: Some(MacAddr(trial.host.mac)),
            names: Vec::new(),
            previous_leg: None,
        };
        let mut builder = Builder {
            input,
            compiled,
            subject,
            host: trial.host,
            random,
            probes: std::mem::take(&mut probes),
            unsent: Vec::new(),
        };
        let refusal = builder.try_out(trial.wanted);
        probes = builder.probes;
        indexes.push(match refusal {
            None if probes.len() > before => Ok(before),
            None => Err("no such packet exists".to_owned()),
            Some(refusal) => Err(refusal),
        });
    }
    let plan = Plan {
        host: trials.first()?.host.clone(),
        blocks: HostBlocks::default(),
        checks: Vec::new(),
        probes,
        unsent: Vec::new(),
        is_protected: false,
        uplinks: std::collections::BTreeSet::new(),
        servers: Vec::new(),
        exits: Vec::new(),
    };
    Some((plan, indexes))
}

impl Builder<'_> {
    /// Adds the packet. Returns why it cannot be sent.
    fn try_out(&mut self, wanted: &Wanted) -> Option<String> {
        match wanted {
            Wanted::Tcp(to) => self.open(Check::Route, *to, "TCP"),
            Wanted::Udp(to) => self.datagram(Check::Route, *to, "UDP", |token| token.to_vec()),
            Wanted::Name(_) if !self.host.is_known_by_address => {
                return Some(
                    "no IPv4 address of the device is known, by which the resolver would recognise it"
                        .to_owned(),
                );
            }
            Wanted::Name(name) => match self.host.resolver.filter(|_| self.input.network.dns_port != 0) {
                None => return Some("the gateway has no resolver on this LAN".to_owned()),
                Some(resolver) => self.ask(SocketAddr::new(resolver, 53), name),
            },
        }
        None
    }

    fn ask(&mut self, resolver: SocketAddr, name: &str) {
        let id = self.token() as u16;
        let token = Token::Query { id, name: name.to_owned() };
        let query = Transport::Udp(name_query(id, name));
        self.add(Check::Dns, resolver, format!("a DNS query for {name}"), &query, token);
    }
}

/// Query for the A records of a name (RFC 1035, section 4.1), with EDNS (RFC 6891), so that the answer says whether the name
/// was blocked.
fn name_query(id: u16, name: &str) -> Vec<u8> {
    let id = id.to_be_bytes();
    let mut query = vec![id[0], id[1], 1, 0, 0, 1, 0, 0, 0, 0, 0, 1];
    for label in name.trim_end_matches('.').split('.') {
        query.push(u8::try_from(label.len()).unwrap_or(0));
        query.extend(label.as_bytes());
    }
    query.extend([0, 0, 1, 0, 1]);
    // The root as owner, OPT, 1232 bytes, no flags, no options.
    query.extend([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]);
    query
}
