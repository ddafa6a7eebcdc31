//! The load: clients behind a relay, a fixed number of them at the same time. A client begins when another one has its
//! address, so the rate is what the server sustains, without messages that it drops.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::ops::Range;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use gateway_tests::dhcp::{ACK, DISCOVER, Message, NAK, OFFER, REQUEST, Relay, address_option};

/// Clients that exchange messages at the same time.
pub(super) const CLIENTS_AT_ONCE: usize = 128;
/// Share of lost messages that a measurement may have.
const MAX_LOSS: f64 = 0.01;

/// Result of a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub per_second: f64,
    /// Messages without an answer.
    pub repeated: u64,
}

/// State of a client: the message that it sent last.
#[derive(Clone, Debug)]
enum Client {
    Discovering,
    /// Address, and the options of the request.
    Requesting(Ipv4Addr, [Vec<u8>; 2]),
}

/// Gets an address for each of these clients, and adds them to the addresses that are given.
pub(super) fn exchange(relay: &Relay, clients: Range<u32>, given: &mut BTreeSet<Ipv4Addr>) -> Result<Load> {
    let number = f64::from(clients.end - clients.start);
    let mut repeated = 0;
    let mut waiting: BTreeMap<[u8; 6], Client> = BTreeMap::new();
    let mut clients = clients.map(mac);
    let started = Instant::now();
    loop {
        while waiting.len() < CLIENTS_AT_ONCE
            && let Some(mac) = clients.next()
        {
            send(relay, mac, &Client::Discovering)?;
            waiting.insert(mac, Client::Discovering);
        }
        if waiting.is_empty() {
            break;
        }
        match relay.receive() {
            Some(message) => answer(relay, &message, &mut waiting, given)?,
            None => {
                repeated += waiting.len() as u64;
                ensure!(repeated as f64 <= number * MAX_LOSS, "{repeated} messages got no answer");
                waiting.iter().try_for_each(|(mac, client)| send(relay, *mac, client))?;
            }
        }
    }
    Ok(Load { per_second: number / started.elapsed().as_secs_f64(), repeated })
}

fn answer(
    relay: &Relay,
    message: &Message,
    waiting: &mut BTreeMap<[u8; 6], Client>,
    given: &mut BTreeSet<Ipv4Addr>,
) -> Result<()> {
    // Others are answers to messages that were repeated.
    let Some(client) = waiting.get_mut(&message.mac) else { return Ok(()) };
    match (message.kind, &*client) {
        (OFFER, Client::Discovering) => {
            let server = message.options.get(&54).and_then(|server| server.first_chunk::<4>());
            let server = Ipv4Addr::from(*server.context("an offer without a server")?);
            let options = [address_option(54, server), address_option(50, message.address)];
            *client = Client::Requesting(message.address, options);
            send(relay, message.mac, client)
        }
        (ACK, Client::Requesting(address, _)) => {
            ensure!(message.address == *address, "{address} was offered, and {} given", message.address);
            ensure!(given.insert(*address), "{address} is given twice");
            waiting.remove(&message.mac);
            Ok(())
        }
        (NAK, _) => bail!("a client is refused"),
        _ => Ok(()),
    }
}

fn send(relay: &Relay, mac: [u8; 6], client: &Client) -> Result<()> {
    match client {
        Client::Discovering => relay.send(mac, DISCOVER, &[]),
        Client::Requesting(_, [server, address]) => relay.send(mac, REQUEST, &[server, address]),
    }
    .context("send a message")
}

fn mac(client: u32) -> [u8; 6] {
    let [a, b, c, d] = client.to_be_bytes();
    [2, 8, a, b, c, d]
}
