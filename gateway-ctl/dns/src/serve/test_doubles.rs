//! Test doubles of the hooks, and queries in wire format.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use gateway_core::dns::{
    Action, Cause, ClientIdentity, Decision, Local, Name, NameRef, Question, Record, RuleSource,
};
use gateway_model::Id;
use gateway_model::domain::DomainName;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::kernel_cache::Dataplane;
use super::{KernelCache, Settings, Shared, State};
use crate::WallClock;
use crate::hooks::{
    Arrival, Client, ClientLookup, Failure, FqdnInstallError, FqdnPolicy, Host, LocalAnswers, Logged, Query,
    QueryEgress, QueryRoute, Reply, Resolvers, Upstream,
};
use crate::wire::{Answer, StoredAnswer, rtype};

pub(crate) fn name(text: &str) -> Name {
    Name::from(&DomainName::parse(text).expect("a name"))
}

pub(crate) fn route(partition: u16) -> Arc<QueryRoute> {
    Arc::new(QueryRoute { partition, route: QueryEgress::Default, resolvers: Resolvers::Usual })
}

pub(crate) fn client(number: u64, partition: u16) -> Client {
    Client {
        number,
        asker: ClientIdentity {
            device: Some(Id::from_u128(u128::from(number))),
            ..ClientIdentity::default()
        },
        name: Some(format!("client {number}").into()),
        route: route(partition),
        logged: Logged::Full,
        rank: None,
        filtered: true,
        strips_ech: false,
        near: true,
    }
}

/// Address whose packets no host is known to have sent.
pub(crate) const UNIDENTIFIED: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 254));

/// Client lookup that returns one client for all unknown addresses.
pub(crate) struct FakeClients {
    pub known: Mutex<HashMap<IpAddr, Arc<Client>>>,
    pub other: Arc<Client>,
    pub version: AtomicU64,
    /// Number of slow lookups: calls of [`ClientLookup::client`].
    pub found: AtomicU64,
}

impl FakeClients {
    pub(crate) fn new(other: Client) -> Arc<FakeClients> {
        let (known, version, found) = Default::default();
        Arc::new(FakeClients { known, other: Arc::new(other), version, found })
    }
}

impl ClientLookup for FakeClients {
    fn host(&self, arrival: &Arrival) -> Option<Host> {
        let address = arrival.source.ip();
        (address != UNIDENTIFIED).then(|| self.host_at(address))
    }

    fn host_at(&self, address: IpAddr) -> Host {
        address.into()
    }

    fn client(&self, host: &Host) -> Arc<Client> {
        self.found.fetch_add(1, Ordering::AcqRel);
        self.known.lock().get(&host.address).unwrap_or(&self.other).clone()
    }

    fn known(&self, host: &Host) -> Option<Arc<Client>> {
        self.known.lock().get(&host.address).cloned()
    }

    fn device_limit(&self, _: &Host) -> Option<IpAddr> {
        None
    }

    fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }
}

/// Filter decisions by name (QNAME or CNAME target) and by address, and local answers.
#[derive(Default)]
pub(crate) struct Rules {
    pub names: HashMap<Name, (Action, Cause)>,
    pub addresses: HashMap<IpAddr, (Action, Cause)>,
    pub local: HashMap<(Name, u16), Local>,
    /// Secondary zone, and the server that may send NOTIFY for it.
    pub copied: Option<(Name, IpAddr)>,
}

impl Rules {
    pub(crate) fn rule(mut self, text: &str, action: Action, cause: Cause) -> Rules {
        self.names.insert(name(text), (action, cause));
        self
    }

    pub(crate) fn stored(mut self, text: &str, qtype: u16, local: Local) -> Rules {
        self.local.insert((name(text), qtype), local);
        self
    }
}

fn decision(rule: &str, found: Option<&(Action, Cause)>, through: Option<String>) -> Decision {
    found.map_or(Decision::PASS, |(action, cause)| Decision {
        action: action.clone(),
        because: Some(RuleSource {
            cause: *cause,
            id: Some(Id::from_u128(7)),
            rule: rule.into(),
            through: through.map(Into::into),
        }),
    })
}

impl LocalAnswers for Rules {
    fn decide(&self, _: &ClientIdentity, question: Question<'_>, _: Timestamp) -> Decision {
        assert!(question.name.wire() != b"\x05panic\x04test\0", "a defect that is put in");
        let found = question.name.suffixes().find_map(|name| self.names.get(&name.to_owned()));
        decision(&question.name.to_string(), found, None)
    }

    fn inspect_name(
        &self,
        _: &ClientIdentity,
        _: Question<'_>,
        target: NameRef<'_>,
        _: Timestamp,
    ) -> Decision {
        let found = target.suffixes().find_map(|name| self.names.get(&name.to_owned()));
        decision(&target.to_string(), found, Some(target.to_string()))
    }

    fn inspect_address(
        &self,
        _: &ClientIdentity,
        _: Question<'_>,
        address: IpAddr,
        _: Timestamp,
    ) -> Decision {
        decision(&address.to_string(), self.addresses.get(&address), Some(address.to_string()))
    }

    fn local(&self, question: Question<'_>, _: bool) -> Option<Local> {
        self.local.get(&(question.name.to_owned(), question.qtype)).cloned()
    }

    fn notified(&self, zone: NameRef<'_>, from: IpAddr) -> bool {
        self.copied.as_ref().is_some_and(|(name, server)| name.as_ref() == zone && *server == from)
    }
}

pub(crate) type FqdnInstall = (u64, Name, Vec<(IpAddr, Duration)>);

/// FQDN policy that records the installed addresses. It has a route for each name that it covers.
#[derive(Default)]
pub(crate) struct FakeFqdnPolicy {
    pub wanted: HashMap<Name, Arc<QueryRoute>>,
    pub learned: Mutex<Vec<FqdnInstall>>,
    pub broken: std::sync::atomic::AtomicBool,
}

impl FqdnPolicy for FakeFqdnPolicy {
    fn fqdn_route(&self, _: &Client, qname: NameRef<'_>) -> Option<Arc<QueryRoute>> {
        self.wanted.get(&qname.to_owned()).cloned()
    }

    fn install(
        &self,
        client: &Client,
        qname: NameRef<'_>,
        addresses: &[(IpAddr, Duration)],
    ) -> Result<(), FqdnInstallError> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(FqdnInstallError("the map is full".into()));
        }
        let call = (client.number, qname.to_owned(), addresses.to_vec());
        self.learned.lock().push(call);
        Ok(())
    }
}

/// Upstream that answers some names and returns NXDOMAIN for the others.
pub(crate) struct FakeUpstream {
    pub records: Mutex<HashMap<(Name, u16), Result<Answer, Failure>>>,
    pub asked: AtomicUsize,
    pub partitions: Mutex<Vec<u16>>,
    /// Each answer consumes one permit.
    pub gate: Semaphore,
}

impl FakeUpstream {
    pub(crate) fn new() -> Arc<FakeUpstream> {
        Arc::new(FakeUpstream {
            records: Mutex::default(),
            asked: AtomicUsize::new(0),
            partitions: Mutex::default(),
            gate: Semaphore::new(Semaphore::MAX_PERMITS),
        })
    }

    pub(crate) fn knows(&self, text: &str, qtype: u16, answers: Vec<Record>) {
        let answer = Answer { answers, ..Answer::default() };
        self.records.lock().insert((name(text), qtype), Ok(answer));
    }

    pub(crate) fn fails(&self, text: &str, qtype: u16, failure: Failure) {
        self.records.lock().insert((name(text), qtype), Err(failure));
    }

    pub(crate) fn times(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

pub(crate) fn soa(zone: &str, ttl: u32, minimum: u32) -> Record {
    let mut rdata = b"\x02ns\0\x02me\0".to_vec();
    for number in [1, 2, 3, 4, minimum] {
        rdata.extend_from_slice(&number.to_be_bytes());
    }
    Record { name: name(zone), rtype: rtype::SOA, ttl, rdata: rdata.into() }
}

/// Returns an answer in wire format.
pub(crate) fn message(question: Question<'_>, answer: &Answer) -> Vec<u8> {
    let bounds = crate::wire::stored::Bounds { least: 0, most: u32::MAX, most_negative: u32::MAX };
    let stored = StoredAnswer::new(question, answer, bounds).expect("short enough");
    let mut message = vec![0, 0, 0x81, 0x80 | answer.rcode as u8, 0, 1];
    message.extend(stored.counts().into_iter().flat_map(u16::to_be_bytes));
    message.extend_from_slice(question.name.wire());
    message.extend_from_slice(&question.qtype.to_be_bytes());
    message.extend_from_slice(&[0, 1]);
    message.extend_from_slice(stored.records());
    message
}

pub(crate) struct FakeUpstreamHandle(pub Arc<FakeUpstream>);

impl Upstream for FakeUpstreamHandle {
    async fn send_query(&self, query: Query) -> Result<Reply, Failure> {
        self.0.asked.fetch_add(1, Ordering::SeqCst);
        self.0.partitions.lock().push(query.route.partition);
        self.0.gate.acquire().await.expect("open").forget();
        let missing = Answer { rcode: 3, authorities: vec![soa("example", 900, 300)], ..Answer::default() };
        let known = self.0.records.lock().get(&(query.name.clone(), query.qtype)).cloned();
        let answer = known.unwrap_or(Ok(missing))?;
        let message = message(Question { name: query.name.as_ref(), qtype: query.qtype }, &answer);
        Ok(Reply {
            message: message.into(),
            upstream: "192.0.2.53".into(),
            egress: "wg-a".into(),
            elapsed: Duration::from_millis(3),
            forwarder: None,
            secure: None,
        })
    }
}

pub(crate) fn a(owner: &str, ttl: u32, address: [u8; 4]) -> Record {
    Record { name: name(owner), rtype: rtype::A, ttl, rdata: address.into() }
}

pub(crate) fn cname(owner: &str, target: &str) -> Record {
    Record { name: name(owner), rtype: rtype::CNAME, ttl: 300, rdata: name(target).as_ref().wire().into() }
}

/// Returns a query with EDNS. The name keeps its case.
pub(crate) fn question(text: &str, qtype: u16) -> Vec<u8> {
    let mut message = b"\x12\x34\x01\x00\0\x01\0\0\0\0\0\x01".to_vec();
    for label in text.split('.') {
        message.push(label.len() as u8);
        message.extend_from_slice(label.as_bytes());
    }
    message.push(0);
    message.extend_from_slice(&qtype.to_be_bytes());
    message.extend_from_slice(&[0, 1, 0, 0, 41, 0x04, 0xd0, 0, 0, 0, 0, 0, 0]);
    message
}

/// Resolver with test doubles of its hooks.
pub(crate) struct Fixture {
    pub clients: Arc<FakeClients>,
    pub lessons: Arc<FakeFqdnPolicy>,
    pub upstream: Arc<FakeUpstream>,
    pub shared: Arc<Shared>,
}

impl Fixture {
    pub(crate) fn new(rules: Rules) -> Fixture {
        Fixture::with(rules, FakeFqdnPolicy::default(), Settings::default())
    }

    pub(crate) fn with(rules: Rules, lessons: FakeFqdnPolicy, settings: Settings) -> Fixture {
        Fixture::with_dataplane(Arc::new(rules), lessons, settings, None)
    }

    pub(crate) fn with_dataplane(
        local_answers: Arc<dyn LocalAnswers>,
        lessons: FakeFqdnPolicy,
        settings: Settings,
        dataplane: Option<Box<dyn Dataplane>>,
    ) -> Fixture {
        let (clients, lessons, upstream) =
            (FakeClients::new(client(1, 0)), Arc::new(lessons), FakeUpstream::new());
        let settings_of_log = settings.log.clone();
        let state = State {
            settings: Arc::new(settings),
            clients: clients.clone(),
            local_answers,
            fqdn_policy: lessons.clone(),
        };
        let log = crate::query_log::QueryLog::new(settings_of_log, 1, WallClock::new(Timestamp::now));
        let kernel_cache = KernelCache::new(dataplane, log.clone(), 0);
        let shared = Shared::new(
            state,
            FakeUpstreamHandle(upstream.clone()),
            log,
            kernel_cache,
            Arc::new(crate::hooks::Unsupervised),
        );
        Fixture { clients, lessons, upstream, shared }
    }

    /// Answers a query on the slow path.
    pub(crate) async fn send_query(&self, message: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let from: IpAddr = "192.0.2.9".parse().expect("an address");
        self.shared
            .answer(message, from.into(), super::Transport::Udp, self.shared.clock.now(), &mut out)
            .await;
        out
    }

    pub(crate) async fn reply(&self, text: &str, qtype: u16) -> hickory_proto::op::Message {
        hickory_proto::op::Message::from_vec(&self.send_query(&question(text, qtype)).await)
            .expect("a message")
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.shared.log.end();
    }
}
