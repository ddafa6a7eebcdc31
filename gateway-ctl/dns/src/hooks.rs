//! Traits between the resolver and the daemon, with the types that they exchange.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gateway_common::wire::Mark;
use gateway_core::dns::filter::Filter;
use gateway_core::dns::{ClientIdentity, Decision, Local, Name, NameRef, Question};
use gateway_core::indexes::Rank;
use gateway_model::Id;
use gateway_model::upstream::DnsProtocol;
pub use gateway_outbound::Login;
use tokio::task::JoinHandle;

pub use host::{Arrival, ArrivalKind, Host, Ingress};

use crate::WallClock;

mod host;

/// Start function of a task: returns its future, once for each start.
pub type StartTask = Box<dyn FnMut() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// Supervisor of the resolver's long-lived tasks.
pub trait Supervise: Send + Sync + 'static {
    /// Runs a task until it ends, and restarts it after a panic. Aborting the handle ends the task.
    fn restart_until_done(&self, name: String, start: StartTask) -> JoinHandle<()>;
}

/// Parts of the daemon that the resolver depends on.
#[derive(Clone)]
pub struct Daemon {
    pub supervisor: Arc<dyn Supervise>,
    pub wall: WallClock,
}

/// Supervisor that never restarts a task.
#[derive(Clone, Copy, Debug)]
pub struct Unsupervised;

impl Supervise for Unsupervised {
    fn restart_until_done(&self, _name: String, mut start: StartTask) -> JoinHandle<()> {
        tokio::spawn(start())
    }
}

/// Client of the resolver: a device, or an address without a known device.
#[derive(Clone, Debug)]
pub struct Client {
    /// Client number, stable while the client is known. The dataplane stores the FQDN entries of the client under this
    /// number.
    pub number: u64,
    pub asker: ClientIdentity,
    pub name: Option<Arc<str>>,
    /// Route of its queries. Cached answers are shared only between queries of the same route.
    pub route: Arc<QueryRoute>,
    /// Rank of the policy with this route, if there is one. An FQDN policy applies only if it ranks before.
    pub rank: Option<Rank>,
    pub logged: Logged,
    /// Filter state: false disables the filter for this client.
    pub filtered: bool,
    /// Answers for this client have no keys of Encrypted ClientHello.
    pub strips_ech: bool,
    /// The client is on a local network. Its queries have a rate limit per host instead of the one per network.
    pub near: bool,
}

/// Detail that the query log keeps about a client's queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Logged {
    #[default]
    Full,
    /// Records without the client.
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
    /// These upstreams only.
    Only(Arc<[Server]>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryEgress {
    /// The egress of the gateway itself.
    Default,
    /// One of these fwmarks for each query, in round-robin order.
    Marked(Vec<Mark>),
    /// SOCKS5 proxy. The connection to it carries the fwmark.
    Proxy { server: SocketAddr, mark: Mark, user: Option<Arc<Login>> },
    /// Blocked: no query leaves. Human-readable reason.
    Blocked(Arc<str>),
}

/// Upstream, with all that a query to it needs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Server {
    /// Upstream as configured.
    pub shown: Arc<str>,
    pub protocol: DnsProtocol,
    pub place: ServerAddress,
    /// Name on the certificate.
    pub certificate: Option<String>,
    /// Request path and query string, for DoH.
    pub path: String,
    /// Resolvers for the address of an upstream that is given by name.
    pub bootstrap: Vec<IpAddr>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ServerAddress {
    Address(SocketAddr),
    Name(Name, u16),
}

/// Secondary zone (RFC 9499).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secondary {
    pub id: Id,
    pub zone: Name,
    /// Primary servers, tried in order until one answers.
    pub servers: Vec<Server>,
}

/// Lookup of the host behind a packet, and of its client.
pub trait ClientLookup: Send + Sync + 'static {
    /// Returns the host that sent a packet. None: it is not known, or two hosts claim to have sent it. Such a query is not
    /// answered, because the policies that apply to it are not known. The host sends it again. Called for every query, so
    /// it must be fast.
    fn host(&self, arrival: &Arrival) -> Option<Host>;
    /// Returns the host that has an address at present, for a description without a packet.
    fn host_at(&self, address: IpAddr) -> Host;
    fn client(&self, host: &Host) -> Arc<Client>;
    /// Returns the client if a lookup in memory finds it. None: only [`ClientLookup::client`] can find it, at a higher
    /// cost.
    fn known(&self, host: &Host) -> Option<Arc<Client>>;
    /// Returns the address whose rate limit applies to all addresses of a device that [`ClientLookup::known`] does not
    /// find. None: the host is no device.
    fn device_limit(&self, host: &Host) -> Option<IpAddr>;
    /// Returns a number that changes as soon as [`ClientLookup::client`] returns another client for any host.
    /// Callers cache clients until then. Called very often, so it must be fast.
    fn version(&self) -> u64;
}

/// Local decisions and answers: filter, local records and zones.
pub trait LocalAnswers: Send + Sync + 'static {
    fn decide(&self, asker: &ClientIdentity, question: Question<'_>, now: jiff::Timestamp) -> Decision;
    /// Evaluates a name in the CNAME chain of an answer.
    fn inspect_name(
        &self,
        asker: &ClientIdentity,
        question: Question<'_>,
        target: NameRef<'_>,
        now: jiff::Timestamp,
    ) -> Decision;
    /// Evaluates an address of an answer, or an address hint of an HTTPS record.
    fn inspect_address(
        &self,
        asker: &ClientIdentity,
        question: Question<'_>,
        address: IpAddr,
        now: jiff::Timestamp,
    ) -> Decision;
    /// Returns the answer from local data, with its DNSSEC records if `proved`. None: the query is for an upstream.
    fn local(&self, question: Question<'_>, proved: bool) -> Option<Local>;
    /// Returns the filter, for its copy in the kernel. None: only the resolver decides.
    fn filter(&self) -> Option<Arc<Filter>> {
        None
    }
    /// Handles a NOTIFY (RFC 1996). Returns true if the zone is a secondary zone and `from` is one of its servers.
    fn notified(&self, zone: NameRef<'_>, from: IpAddr) -> bool;
}

/// FQDN policies: the addresses in an answer go to the dataplane before the client gets the answer.
pub trait FqdnPolicy: Send + Sync + 'static {
    /// Returns the route of a query if an FQDN policy covers its name. Its answers must be installed, including cached
    /// ones. None for nearly all names. Called for every query, so it must be fast.
    fn fqdn_route(&self, client: &Client, qname: NameRef<'_>) -> Option<Arc<QueryRoute>>;
    /// Installs the addresses in the dataplane before it returns. After an error the client must not get them.
    fn install(
        &self,
        client: &Client,
        qname: NameRef<'_>,
        addresses: &[(IpAddr, Duration)],
    ) -> Result<(), FqdnInstallError>;
}

/// Human-readable reason why the dataplane did not install an address.
#[derive(Clone, Debug, thiserror::Error)]
#[error("could not install FQDN policy entries: {0}")]
pub struct FqdnInstallError(pub Arc<str>);

/// Query for an upstream.
#[derive(Clone, Debug)]
pub struct Query {
    pub route: Arc<QueryRoute>,
    /// Client number. Queries of a client stay with one upstream where devices do so.
    pub client: u64,
    pub name: Name,
    pub qtype: u16,
    /// DO bit (RFC 3225): the client requests DNSSEC records. `checking_disabled` is the CD bit (RFC 4035, section
    /// 3.2.2): the client wants no validation by the resolver.
    pub dnssec_ok: bool,
    pub checking_disabled: bool,
}

/// Reply of an upstream.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Complete message with any id, checked against the query. It may contain signatures that the client did not
    /// request.
    pub message: Bytes,
    pub upstream: Arc<str>,
    /// Display name of the egress that was used.
    pub egress: Arc<str>,
    pub elapsed: Duration,
    /// Stored forwarder that was used, if any.
    pub forwarder: Option<Id>,
    /// DNSSEC result: true is secure, false is insecure or bogus (RFC 4035, section 4.3). None: not validated.
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
    /// Answer that DNSSEC validation found bogus. Code of RFC 8914 and human-readable reason.
    #[error("the answer does not validate: {1}")]
    Bogus(u16, String),
    #[error("{0}")]
    Failed(String),
}

/// Upstream side of the resolver: sends queries and returns replies.
pub trait Upstream: Send + Sync + 'static {
    fn send_query(&self, query: Query) -> impl Future<Output = Result<Reply, Failure>> + Send;
}

impl<A: Upstream> Upstream for Arc<A> {
    fn send_query(&self, query: Query) -> impl Future<Output = Result<Reply, Failure>> + Send {
        A::send_query(self, query)
    }
}
