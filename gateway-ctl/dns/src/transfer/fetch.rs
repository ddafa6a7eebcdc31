//! One refresh of a zone: a query for its serial and, if that is newer, a transfer on the same connection.

use std::sync::Arc;
use std::time::Duration;

use gateway_core::dns::domain_set::Key;
use gateway_core::dns::zones::{Copy, numbers};
use gateway_core::dns::{Name, Record};
use gateway_outbound::Egress;
use jiff::Timestamp;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::disk::{self, CompleteZone};
use super::reader::{self, Reader, TransferFault};
use crate::hooks::{Secondary, Server};
use crate::upstream::message::{QueryEncoding, UpstreamQuery};
use crate::upstream::{Addresses, Context, random};
use crate::wire::{flag, rtype, u16_at};

/// Timeout of a connection, and of each message.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Timeout of a whole transfer.
const TRANSFER_TIMEOUT: Duration = Duration::from_secs(600);

/// Reason for a failed refresh of a zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("zone has no usable primaries")]
    NoServer,
    #[error("{0} cannot be reached: {1}")]
    Unreachable(Arc<str>, String),
    #[error("{0} did not answer in time")]
    Timeout(Arc<str>),
    #[error("{0} is not authoritative for the zone")]
    Lame(Arc<str>),
    #[error("{0} has serial {1}, which is older than the stored zone")]
    Older(Arc<str>, u32),
    #[error("{0}: {1}")]
    TransferFault(Arc<str>, TransferFault),
}

pub(super) enum SerialCheck {
    /// The zone equals that of the primaries.
    Same,
    New(Arc<Fetched>),
}

pub(super) struct Fetched {
    pub whole: CompleteZone,
    /// Zone in its format on disk.
    pub body: Vec<u8>,
}

/// Returns true if a serial number is past another (RFC 1982, section 3.2).
pub fn is_newer(serial: u32, than: u32) -> bool {
    serial != than && serial.wrapping_sub(than) < 1 << 31
}

/// Queries the primaries in order until one answers. Queries leave like those of the gateway itself.
pub(super) async fn check(
    context: &Context,
    zone: &Secondary,
    have: Option<u32>,
    key: Key,
) -> Result<SerialCheck, Error> {
    let mut last = Error::NoServer;
    for server in &zone.servers {
        let looking = at(context, zone, server, have, key);
        let looked = timeout(context.wait(TRANSFER_TIMEOUT), looking).await;
        match looked.unwrap_or_else(|_| Err(Error::Timeout(server.shown.clone()))) {
            Ok(looked) => return Ok(looked),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn at(
    context: &Context,
    zone: &Secondary,
    server: &Server,
    have: Option<u32>,
    key: Key,
) -> Result<SerialCheck, Error> {
    let mut line = ServerConnection::to(context, server).await?;
    let serial = line.serial(&zone.zone).await?;
    match have {
        Some(have) if serial == have => return Ok(SerialCheck::Same),
        Some(have) if !is_newer(serial, have) => return Err(Error::Older(server.shown.clone(), serial)),
        _ => {}
    }
    let records = line.zone(&zone.zone).await?;
    let (apex, by) = (zone.zone.clone(), server.shown.clone());
    let read = tokio::task::spawn_blocking(move || {
        let times = records.first().and_then(|soa| numbers(&soa.rdata)).ok_or(TransferFault::Start)?;
        let body = disk::body(&records);
        let copy = Copy::new(&apex, records, key).map_err(|_| TransferFault::Start)?;
        #[expect(clippy::disallowed_methods, reason = "age of copies on disk")]
        let head = disk::ZoneHeader::new(&apex, &by, Timestamp::now(), &body);
        Ok(Fetched { whole: CompleteZone { head, copy, times }, body })
    });
    let fetched = match read.await {
        Ok(fetched) => fetched.map_err(|bad| Error::TransferFault(server.shown.clone(), bad))?,
        Err(_) => return Err(Error::TransferFault(server.shown.clone(), TransferFault::Data)),
    };
    // Between the two queries the zone may have become newer, but not older.
    let serial = fetched.whole.copy.serial;
    match have {
        Some(have) if !is_newer(serial, have) => Err(Error::Older(server.shown.clone(), serial)),
        _ => Ok(SerialCheck::New(Arc::new(fetched))),
    }
}

/// A connection to a server.
struct ServerConnection<'a> {
    context: &'a Context,
    server: &'a Server,
    stream: TcpStream,
}

impl<'a> ServerConnection<'a> {
    async fn to(context: &'a Context, server: &'a Server) -> Result<ServerConnection<'a>, Error> {
        let path = Egress::DEFAULT;
        let unreachable = |error: String| Error::Unreachable(server.shown.clone(), error);
        let finding = Addresses::of(server);
        let found = finding.find(context, &path).await.map_err(|error| unreachable(error.to_string()))?;
        let mut last = Error::Timeout(server.shown.clone());
        for address in found {
            let connecting = path.connect(context.sockets.as_ref(), address);
            match timeout(context.wait(TIMEOUT), connecting).await {
                Ok(Ok(stream)) => return Ok(ServerConnection { context, server, stream }),
                Ok(Err(error)) => last = unreachable(error.to_string()),
                Err(_) => last = Error::Timeout(server.shown.clone()),
            }
        }
        Err(last)
    }

    /// Returns the serial of the zone's SOA record. Only authoritative replies count.
    async fn serial(&mut self, zone: &Name) -> Result<u32, Error> {
        let id = self.send_query(zone, rtype::SOA).await?;
        let message = self.message().await?;
        let records = reader::open(&message, id, zone.as_ref(), rtype::SOA, true).map_err(self.bad())?;
        for record in records {
            let record = record.map_err(|_| TransferFault::MalformedMessage).map_err(self.bad())?;
            if record.rtype != rtype::SOA || record.section != crate::wire::Section::Answer {
                continue;
            }
            let authoritative = u16_at(&message, 2).is_some_and(|flags| flags & flag::AA != 0);
            let record = reader::read(&message, &record).map_err(self.bad())?;
            if record.name == *zone && authoritative {
                return numbers(&record.rdata)
                    .map(|times| times.serial)
                    .ok_or_else(|| self.bad()(TransferFault::Data));
            }
        }
        Err(Error::Lame(self.server.shown.clone()))
    }

    /// All records of the zone, the start of authority first.
    async fn zone(&mut self, zone: &Name) -> Result<Vec<Record>, Error> {
        let id = self.send_query(zone, rtype::AXFR).await?;
        let mut reader = Reader::new(zone.clone(), id);
        while !reader.push(&self.message().await?).map_err(self.bad())? {}
        if reader.strangers > 0 {
            let (strangers, server) = (reader.strangers, &self.server.shown);
            tracing::warn!(%zone, %server, strangers, "ignored records outside of the secondary zone");
        }
        reader.finish().ok_or_else(|| self.bad()(TransferFault::MalformedMessage))
    }

    fn bad(&self) -> impl Fn(TransferFault) -> Error + use<> {
        let server = self.server.shown.clone();
        move |bad| Error::TransferFault(server.clone(), bad)
    }

    fn lost(&self, error: &std::io::Error) -> Error {
        Error::Unreachable(self.server.shown.clone(), error.to_string())
    }

    /// Sends a query. Returns its id.
    async fn send_query(&mut self, zone: &Name, qtype: u16) -> Result<u16, Error> {
        let drawn = random::<2>();
        let id = u16::from_be_bytes(
            drawn.map_err(|error| Error::Unreachable(self.server.shown.clone(), error.to_string()))?,
        );
        let asked = UpstreamQuery {
            name: zone.clone(),
            qtype,
            recursion: false,
            dnssec_ok: false,
            checking_disabled: false,
        };
        let message = asked.message(&QueryEncoding { id, ..QueryEncoding::default() });
        // A query has at most 255 + 16 bytes.
        let framed = [&(message.len() as u16).to_be_bytes()[..], &message].concat();
        let writing = timeout(self.context.wait(TIMEOUT), self.stream.write_all(&framed));
        match writing.await {
            Ok(written) => written.map(|()| id).map_err(|error| self.lost(&error)),
            Err(_) => Err(Error::Timeout(self.server.shown.clone())),
        }
    }

    async fn message(&mut self) -> Result<Vec<u8>, Error> {
        let stream = &mut self.stream;
        let reading = async {
            let mut message = vec![0; usize::from(stream.read_u16().await?)];
            stream.read_exact(&mut message).await?;
            Ok::<_, std::io::Error>(message)
        };
        match timeout(self.context.wait(TIMEOUT), reading).await {
            Ok(read) => read.map_err(|error| self.lost(&error)),
            Err(_) => Err(Error::Timeout(self.server.shown.clone())),
        }
    }
}
