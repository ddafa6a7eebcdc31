//! Traits between the resolver and the daemon, with the types that they exchange.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gateway_core::dns::{Asker, Decision, Local, Name, NameRef, Question};
use gateway_model::Id;
use gateway_model::upstream::DnsProtocol;
pub use gateway_outbound::Login;
use tokio::task::JoinHandle;

use crate::WallClock;

/// Start of a task: makes its future, once for each time that it begins.
pub type StartTask = Box<dyn FnMut() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// Supervisor of the resolver's long-lived tasks.
pub trait Supervise: Send + Sync + 'static {
    /// Runs a task until it ends, and starts it again whenever it panics. Aborting the handle ends it.
    fn restart_until_done(&self, name: String, start: StartTask) -> JoinHandle<()>;
}

/// Parts of the daemon that the resolver depends on.
#[derive(Clone)]
pub struct Daemon {
    pub supervisor: Arc<dyn Supervise>,
    pub wall: WallClock,
}

/// Runs tasks without starting them again.
#[derive(Clone, Copy, Debug)]
pub struct Unsupervised;

impl Supervise for Unsupervised {
    fn restart_until_done(&self, _name: String, mut start: StartTask) -> JoinHandle<()> {
        tokio::spawn(start())
    }
}

/// One who asks: a device, or an address behind which none is known.
#[derive(Clone, Debug)]
pub struct Client {
    /// Stable while the client is known; what is learned for it stands under this number in the dataplane.
    pub number: u64,
    pub asker: Asker,
    pub name: Option<Arc<str>>,
    /// How its questions leave; answers are remembered for those of the same way only.
    pub way: Arc<QueryRoute>,
    /// Place of the policy that has this way: a policy for a name counts only before it. `u32::MAX` without one.
    pub rank: u32,
    pub logged: Logged,
    /// False: nothing is filtered for it.
    pub filtered: bool,
    /// It is on a network of ours: its questions are not counted against a limit.
    pub near: bool,
}

/// What the log keeps of a client's questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Logged {
    #[default]
    Full,
    /// Without the client.
    Anonymous,
    Off,
}

/// Cache partition, egress and upstreams of a client's queries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryRoute {
    /// Cache partition; equal routes have equal numbers.
    pub partition: u16,
    pub route: QueryEgress,
    pub resolvers: Resolvers,
}

/// Upstreams for names without a forwarder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Resolvers {
    /// The upstreams for all names.
    #[default]
    Usual,
    /// Only these.
    Only(Arc<[Server]>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryEgress {
    /// The egress of the gateway itself.
    Default,
    /// One of these fwmarks for each query, in round-robin order.
    Marked(Vec<u32>),
    /// Over a SOCKS5 proxy; the connection to it carries the mark.
    Proxy { server: SocketAddr, mark: u32, user: Option<Arc<Login>> },
    /// No query leaves. Human-readable reason.
    Blocked(Arc<str>),
}

/// One upstream, with all that is needed to ask it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Server {
    /// As it was given.
    pub shown: Arc<str>,
    pub protocol: DnsProtocol,
    pub place: Place,
    /// Name on the certificate.
    pub certificate: Option<String>,
    /// For https: what is asked for, with the query of the address.
    pub path: String,
    /// Find the address of a server that is given by name.
    pub bootstrap: Vec<IpAddr>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    Address(SocketAddr),
    Name(Name, u16),
}

/// A zone to have a copy of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secondary {
    pub id: Id,
    pub zone: Name,
    /// Asked in turn until one answers.
    pub servers: Vec<Server>,
}

/// Lookup of the client behind an address.
pub trait ClientLookup: Send + Sync + 'static {
    fn client(&self, address: IpAddr) -> Arc<Client>;
    /// The client, if that takes no more than a look-up in memory. None: [`ClientLookup::client`] has to find out, which costs.
    fn known(&self, address: IpAddr) -> Option<Arc<Client>>;
    /// Another number as soon as [`ClientLookup::client`] answers otherwise for any address: its answers are remembered until
    /// then. Asked very often, so it must be quick.
    fn version(&self) -> u64;
}

/// Local decisions and answers: filter, local records and zones.
pub trait LocalAnswers: Send + Sync + 'static {
    fn decide(&self, asker: &Asker, question: Question<'_>, now: jiff::Timestamp) -> Decision;
    /// A name of the CNAME chain of an answer.
    fn inspect_name(
        &self,
        asker: &Asker,
        asked: Question<'_>,
        target: NameRef<'_>,
        now: jiff::Timestamp,
    ) -> Decision;
    /// An address of an answer, or one that an HTTPS record hints at.
    fn inspect_address(
        &self,
        asker: &Asker,
        asked: Question<'_>,
        address: IpAddr,
        now: jiff::Timestamp,
    ) -> Decision;
    /// What is stored here, with what proves it if it is to be `proved`; none when it is for an upstream.
    fn local(&self, question: Question<'_>, proved: bool) -> Option<Local>;
    /// Somebody says that a zone has changed. True if it is one of those whose copies are kept, and one of its servers.
    fn notified(&self, zone: NameRef<'_>, from: IpAddr) -> bool;
}

/// FQDN policies: the addresses in an answer go to the dataplane before the client gets the answer.
pub trait FqdnPolicy: Send + Sync + 'static {
    /// By which way a question leaves whose name policies know; its answers are to be learned, cached ones too. None for
    /// nearly all names: asked for every question, so it must be quick.
    fn wanted(&self, client: &Client, asked: NameRef<'_>) -> Option<Arc<QueryRoute>>;
    /// Installs the addresses in the dataplane before it returns. After an error the client must not get them.
    fn install(
        &self,
        client: &Client,
        asked: NameRef<'_>,
        addresses: &[(IpAddr, Duration)],
    ) -> Result<(), FqdnInstallError>;
}

/// Human-readable reason why the dataplane did not install an address.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the dataplane has not learned the answer: {0}")]
pub struct FqdnInstallError(pub Arc<str>);

/// A query for an upstream.
#[derive(Clone, Debug)]
pub struct Query {
    pub way: Arc<QueryRoute>,
    /// Stays with its server where devices are to.
    pub client: u64,
    pub name: Name,
    pub qtype: u16,
    /// The one who asks wants signatures (RFC 3225), or none of our validation (RFC 4035, section 3.2.2).
    pub dnssec_ok: bool,
    pub checking_disabled: bool,
}

/// Reply of an upstream.
#[derive(Clone, Debug)]
pub struct Reply {
    /// A whole message with any id; it was held against the question. It may bear signatures nobody asked for.
    pub message: Bytes,
    pub upstream: Arc<str>,
    pub elapsed: Duration,
    /// The forwarder that was chosen, if it was one of those stored.
    pub forwarder: Option<Id>,
    /// Validated; none where nothing validates.
    pub secure: Option<bool>,
}

/// Reason why an upstream gave no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure {
    #[error("no upstream answered in time")]
    Timeout,
    #[error("no upstream is set")]
    NoUpstream,
    #[error("{0}")]
    Blocked(Arc<str>),
    /// DNSSEC: the answer does not prove itself. Code of RFC 8914 and words.
    #[error("the answer does not validate: {1}")]
    Bogus(u16, String),
    #[error("{0}")]
    Failed(String),
}

/// Sends queries to an upstream.
pub trait Upstream: Send + Sync + 'static {
    fn ask(&self, query: Query) -> impl Future<Output = Result<Reply, Failure>> + Send;
}

impl<A: Upstream> Upstream for Arc<A> {
    fn ask(&self, query: Query) -> impl Future<Output = Result<Reply, Failure>> + Send {
        A::ask(self, query)
    }
}
