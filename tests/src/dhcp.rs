//! DHCP clients: a relay that requests addresses for any number of MAC addresses, and the clients of Debian.

mod programs;

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::netns::Namespace;
use crate::topology::{Host, LAN_V4};

pub use programs::{Parameters, Program};

const SERVER_PORT: u16 = 67;
const COOKIE: [u8; 4] = [99, 130, 83, 99];
const HEADER: usize = 240;

/// Message types (RFC 2132, section 9.6).
pub const DISCOVER: u8 = 1;
pub const REQUEST: u8 = 3;
pub const RELEASE: u8 = 7;
pub const OFFER: u8 = 2;
pub const ACK: u8 = 5;
pub const NAK: u8 = 6;

/// Relay on a host of the LAN. The server answers to its port.
#[derive(Debug)]
pub struct Relay {
    socket: UdpSocket,
    address: Ipv4Addr,
}

/// Message of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub mac: [u8; 6],
    pub kind: u8,
    pub address: Ipv4Addr,
    pub options: BTreeMap<u8, Vec<u8>>,
}

impl Relay {
    pub fn on(host: &Host, timeout: Duration) -> Result<Relay> {
        Relay::within(&host.namespace, host.v4, LAN_V4, timeout)
    }

    /// Opens a relay with an address of a namespace.
    pub fn within(
        namespace: &Namespace,
        address: Ipv4Addr,
        server: Ipv4Addr,
        timeout: Duration,
    ) -> Result<Relay> {
        let socket = namespace.within(|| UdpSocket::bind((address, SERVER_PORT))).context("a relay")?;
        socket.connect((server, SERVER_PORT)).context("the server")?;
        socket.set_read_timeout(Some(timeout))?;
        Ok(Relay { socket, address })
    }

    /// Sends a message of a client.
    pub fn send(&self, mac: [u8; 6], kind: u8, options: &[&[u8]]) -> io::Result<()> {
        let mut message = vec![0; HEADER];
        message[..4].copy_from_slice(&[1, 1, 6, 1]);
        message[4..8].copy_from_slice(&mac[2..]);
        message[24..28].copy_from_slice(&self.address.octets());
        message[28..34].copy_from_slice(&mac);
        message[236..].copy_from_slice(&COOKIE);
        message.extend([53, 1, kind]);
        options.iter().for_each(|option| message.extend(*option));
        message.push(255);
        self.socket.send(&message).map(drop)
    }

    /// Returns the next message of the server. `None` after the timeout, or while there is no server.
    pub fn receive(&self) -> Option<Message> {
        let mut buffer = [0; 1500];
        let length = self.socket.recv(&mut buffer).ok()?;
        read(&buffer[..length])
    }

    /// Returns the next message that has arrived already.
    pub fn receive_now(&self) -> Option<Message> {
        let mut buffer = [0; 1500];
        let flags = nix::sys::socket::MsgFlags::MSG_DONTWAIT;
        let length = nix::sys::socket::recv(self.socket.as_raw_fd(), &mut buffer, flags).ok()?;
        read(&buffer[..length])
    }

    /// Sends a message, and returns the answer to it.
    pub fn ask(&self, mac: [u8; 6], kind: u8, options: &[&[u8]]) -> Option<Message> {
        self.send(mac, kind, options).ok()?;
        loop {
            let answer = self.receive()?;
            if answer.mac == mac {
                return Some(answer);
            }
        }
    }

    /// Gets an address for a client. `None` without an acknowledgement.
    pub fn lease(&self, mac: [u8; 6]) -> Option<Ipv4Addr> {
        let offer = self.ask(mac, DISCOVER, &[]).filter(|offer| offer.kind == OFFER)?;
        let (server, address) = (address_option(54, LAN_V4), address_option(50, offer.address));
        let ack = self.ask(mac, REQUEST, &[&server, &address])?;
        (ack.kind == ACK).then_some(ack.address)
    }
}

/// Returns an option with an address.
pub fn address_option(code: u8, address: Ipv4Addr) -> Vec<u8> {
    [&[code, 4][..], &address.octets()].concat()
}

fn read(bytes: &[u8]) -> Option<Message> {
    let mut options = BTreeMap::new();
    let mut left = bytes.get(HEADER..)?;
    while let [code, length, rest @ ..] = left {
        if *code == 255 {
            break;
        }
        let value = rest.get(..usize::from(*length))?;
        options.insert(*code, value.to_vec());
        left = &rest[value.len()..];
    }
    Some(Message {
        mac: *bytes[28..].first_chunk()?,
        kind: *options.get(&53)?.first()?,
        address: Ipv4Addr::from(*bytes[16..].first_chunk::<4>()?),
        options,
    })
}
