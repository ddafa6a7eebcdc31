//! Addresses in the answers of the query log, for the names of flows.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use gateway_core::dns::NameRef;

use crate::wire::{Records, Section, rtype};

/// Addresses that a client got for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnsweredAddresses {
    /// [`crate::hooks::Client::number`].
    pub client: u64,
    /// Without a dot at its end.
    pub name: String,
    pub addresses: Vec<IpAddr>,
}

/// Receiver of the addresses. The thread of the log calls it, so it must be fast.
#[derive(Clone)]
pub struct AnswerObserver(Arc<dyn Fn(AnsweredAddresses) + Send + Sync>);

impl AnswerObserver {
    pub fn new(observe: impl Fn(AnsweredAddresses) + Send + Sync + 'static) -> AnswerObserver {
        AnswerObserver(Arc::new(observe))
    }

    /// Reports the addresses in an answer for a client.
    pub(super) fn report(&self, client: u64, name: NameRef<'_>, message: &[u8]) {
        let addresses = addresses(message);
        if !addresses.is_empty() {
            (self.0)(AnsweredAddresses { client, name: name.to_string(), addresses });
        }
    }
}

impl fmt::Debug for AnswerObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnswerObserver")
    }
}

fn addresses(message: &[u8]) -> Vec<IpAddr> {
    let records = Records::of(message).into_iter().flatten().map_while(Result::ok);
    let answers = records.take_while(|record| record.section == Section::Answer);
    let address = |kind: u16, bytes: &[u8]| match kind {
        rtype::A => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        rtype::AAAA => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
        _ => None,
    };
    answers.filter_map(|record| address(record.rtype, message.get(record.rdata)?)).collect()
}
