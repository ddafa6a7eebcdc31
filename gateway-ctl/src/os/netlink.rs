//! The rtnetlink connection that all backends share, and their common operations.
//!
//! The connection belongs to the network namespace of the thread that opened it.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use futures_util::{Stream, StreamExt, pin_mut};
use parking_lot::Mutex;
use rtnetlink::packet_route::link::{LinkAttribute, LinkMessage};
use rtnetlink::{Handle, new_connection};
use tokio::task::JoinHandle;

/// Cheaply cloneable handle. All clones use one socket.
#[derive(Clone, Debug)]
pub struct Netlink {
    connection: Arc<Mutex<Connection>>,
}

#[derive(Debug)]
struct Connection {
    handle: Handle,
    task: JoinHandle<()>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot open a netlink socket")]
    Open(#[source] io::Error),
    #[error("cannot list the {what}")]
    List { what: &'static str, source: Cause },
    #[error("cannot {action}")]
    Change { action: &'static str, source: Cause },
    #[error("there is no interface {0}")]
    NoInterface(String),
    #[error("{0}")]
    Unsupported(&'static str),
}

/// Error of the kernel or of the connection.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    #[error(transparent)]
    Kernel(io::Error),
    #[error("netlink connection failed")]
    Connection,
    #[error("malformed netlink reply")]
    Answer(#[source] rtnetlink::Error),
}

impl From<rtnetlink::Error> for Cause {
    fn from(error: rtnetlink::Error) -> Self {
        match error {
            rtnetlink::Error::NetlinkError(message) => Self::Kernel(message.to_io()),
            rtnetlink::Error::RequestFailed => Self::Connection,
            error => Self::Answer(error),
        }
    }
}

impl Cause {
    pub fn is(&self, errno: i32) -> bool {
        matches!(self, Self::Kernel(error) if error.raw_os_error() == Some(errno))
    }
}

impl Netlink {
    /// Opens the connection. It needs a tokio runtime, which serves the connection.
    pub fn open() -> Result<Self, Error> {
        Ok(Self { connection: Arc::new(Mutex::new(Connection::open()?)) })
    }

    /// Returns a handle for requests and replaces a broken connection. A reply that cannot be parsed breaks the
    /// connection.
    pub(super) fn handle(&self) -> Result<Handle, Error> {
        let mut connection = self.connection.lock();
        if connection.task.is_finished() {
            *connection = Connection::open()?;
        }
        Ok(connection.handle.clone())
    }

    pub(super) async fn links(&self) -> Result<Vec<LinkMessage>, Error> {
        collect("interfaces", self.handle()?.link().get().execute()).await
    }

    /// Returns the interface names by index.
    pub(super) async fn names(&self) -> Result<BTreeMap<u32, String>, Error> {
        let links = self.links().await?;
        Ok(links.iter().filter_map(|link| Some((link.header.index, name(link)?.to_owned()))).collect())
    }

    pub(super) async fn index(&self, interface: &str) -> Result<u32, Error> {
        let found = self.handle()?.link().get().match_name(interface).execute();
        pin_mut!(found);
        match found.next().await {
            Some(Ok(link)) => Ok(link.header.index),
            Some(Err(error)) => match Cause::from(error) {
                cause if cause.is(libc::ENODEV) => Err(Error::NoInterface(interface.to_owned())),
                source => Err(Error::List { what: "interfaces", source }),
            },
            None => Err(Error::NoInterface(interface.to_owned())),
        }
    }
}

impl Connection {
    fn open() -> Result<Self, Error> {
        let (connection, handle, _) = new_connection().map_err(Error::Open)?;
        Ok(Self { handle, task: tokio::spawn(connection) })
    }
}

pub(super) fn name(link: &LinkMessage) -> Option<&str> {
    link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::IfName(name) => Some(name.as_str()),
        _ => None,
    })
}

/// Collects the complete reply to a dump.
pub(super) async fn collect<T>(
    what: &'static str,
    answer: impl Stream<Item = Result<T, rtnetlink::Error>>,
) -> Result<Vec<T>, Error> {
    pin_mut!(answer);
    let mut items = Vec::new();
    while let Some(item) = answer.next().await {
        items.push(item.map_err(|error| Error::List { what, source: error.into() })?);
    }
    Ok(items)
}

/// Maps the result of a change. The errors in `fine` mean that the wanted state already exists.
pub(super) fn settled(
    action: &'static str,
    result: Result<(), rtnetlink::Error>,
    fine: &[i32],
) -> Result<(), Error> {
    match result.map_err(Cause::from) {
        Err(source) if !fine.iter().any(|errno| source.is(*errno)) => Err(Error::Change { action, source }),
        _ => Ok(()),
    }
}
