//! Against real servers on loopback.

mod dnssec;
mod doq;
mod egress;
mod encrypted;
mod plain;
mod server;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use gateway_common::wire::Mark;
use gateway_core::dns::Name;
use gateway_model::domain::DomainName;
use gateway_model::settings::groups::{DnsRotation, RotationMode};
use gateway_model::upstream::DnsProtocol;
use gateway_outbound::{KernelSockets, Sockets, Tls};
use hickory_proto::dnssec::TrustAnchors;
use parking_lot::Mutex;
use tokio::net::{TcpStream, UdpSocket};

use super::*;
use crate::hooks::{Failure, Query, QueryEgress, QueryRoute, Reply, Resolvers, Upstream};

/// Far longer than any step of these tests.
const LONG: Duration = Duration::from_secs(20);
/// A busy machine causes no second query.
const CALM: u32 = 8;

/// Destination and mark of a requested socket.
type Request = (SocketAddr, Option<Mark>);

/// Sockets of the system without marks, which records the requests.
#[derive(Clone, Default)]
struct Recorder {
    sockets: Arc<Mutex<Vec<Request>>>,
    /// Ports that tests cannot have lead to those they have.
    instead: Arc<Mutex<HashMap<SocketAddr, SocketAddr>>>,
    /// Destination of all traffic with this mark.
    only: Arc<Mutex<HashMap<u32, SocketAddr>>>,
}

/// Returns the number of a mark, 0 of none.
fn number(mark: Option<Mark>) -> u32 {
    mark.map_or(0, |mark| mark.0)
}

fn marked<const N: usize>(marks: [u32; N]) -> QueryEgress {
    QueryEgress::Marked(marks.map(Mark).to_vec())
}

impl Recorder {
    fn note(&self, to: SocketAddr, mark: Option<Mark>) -> SocketAddr {
        self.sockets.lock().push((to, mark));
        if let Some(end) = self.only.lock().get(&number(mark)) {
            return *end;
        }
        self.instead.lock().get(&to).copied().unwrap_or(to)
    }

    fn marks(&self) -> Vec<u32> {
        self.sockets.lock().iter().map(|(_, mark)| number(*mark)).collect()
    }

    fn peers(&self) -> Vec<SocketAddr> {
        self.sockets.lock().iter().map(|(to, _)| *to).collect()
    }
}

impl Sockets for Recorder {
    fn datagrams(&self, to: SocketAddr, mark: Option<Mark>) -> io::Result<UdpSocket> {
        KernelSockets::QUICK.datagrams(self.note(to, mark), None)
    }

    fn connect(&self, to: SocketAddr, mark: Option<Mark>) -> BoxFuture<'static, io::Result<TcpStream>> {
        KernelSockets::QUICK.connect(self.note(to, mark), None)
    }
}

/// Upstreams with everything around them that a test may check.
struct Bench {
    upstreams: Arc<Upstreams>,
    seen: Recorder,
    events: Arc<Mutex<Vec<Event>>>,
}

fn no_tls() -> Result<Arc<rustls::ClientConfig>, String> {
    Err("no TLS here".into())
}

impl Bench {
    fn new(plan: Plan) -> Bench {
        Bench::with(plan, no_tls)
    }

    fn with(plan: Plan, tls: impl Tls) -> Bench {
        Bench::make(plan, tls, Arc::new(TrustAnchors::default()), CALM)
    }

    /// Waits no longer than usual.
    fn urgent(plan: Plan) -> Bench {
        Bench::make(plan, no_tls, Arc::new(TrustAnchors::default()), 1)
    }

    fn trusting(plan: Plan, anchors: Arc<TrustAnchors>) -> Bench {
        Bench::make(plan, no_tls, anchors, CALM)
    }

    fn make(plan: Plan, tls: impl Tls, anchors: Arc<TrustAnchors>, pace: u32) -> Bench {
        let (seen, events) = (Recorder::default(), Arc::<Mutex<Vec<Event>>>::default());
        let returned = events.clone();
        let tell = move |event| returned.lock().push(event);
        let context = Context {
            sockets: Box::new(seen.clone()),
            anchors,
            pace,
            ..Context::new(gateway_outbound::Resolver::default(), tls, tell)
        };
        Bench { upstreams: Arc::new(Upstreams::new(plan, context)), seen, events }
    }

    async fn send_query(&self, name: &str) -> Result<Reply, Failure> {
        self.ask_by(QueryEgress::Default, name).await
    }

    async fn ask_by(&self, route: QueryEgress, name: &str) -> Result<Reply, Failure> {
        self.upstreams.send_query(query(route, name)).await
    }
}

fn query(route: QueryEgress, name: &str) -> Query {
    Query {
        route: Arc::new(QueryRoute { partition: 0, route, resolvers: Resolvers::Usual }),
        client: 1,
        name: Name::from(&DomainName::parse(name).unwrap()),
        qtype: 1,
        dnssec_ok: false,
        checking_disabled: false,
    }
}

fn upstream(protocol: DnsProtocol, at: SocketAddr) -> Server {
    let certificate = protocol.is_encrypted().then(|| "dns.test".to_owned());
    let path = if protocol == DnsProtocol::Https { "/dns-query".to_owned() } else { String::new() };
    Server {
        shown: at.to_string().into(),
        protocol,
        place: ServerAddress::Address(at),
        certificate,
        path,
        bootstrap: Vec::new(),
    }
}

fn udp(at: SocketAddr) -> Server {
    upstream(DnsProtocol::Udp, at)
}

/// One group for all names.
fn plan(mode: RotationMode, servers: Vec<Server>) -> Plan {
    let rotation = DnsRotation { mode, ..DnsRotation::default() };
    Plan { groups: vec![Group { servers, ..Group::for_all() }], rotation, ..Plan::default() }
}

fn sequential(servers: Vec<Server>) -> Plan {
    plan(RotationMode::Sequential, servers)
}

/// The address in the first record of an answer.
fn address(reply: &Reply) -> String {
    let message = hickory_proto::op::Message::from_vec(&reply.message).unwrap();
    message.answers[0].data.to_string()
}

/// Waits until something is so.
async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let waiting = async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, waiting).await.unwrap_or_else(|_| panic!("never: {what}"));
}
