//! A resolver with a list of blocked names and an upstream that knows every name, to be measured over loopback:
//! `loopback ADDRESS LIST WORKERS [LOG FOLDER]`. At the end of its input it prints what it has answered and what that cost.
#![allow(clippy::disallowed_methods, reason = "measures by the clock of the system")]

use std::collections::HashSet;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use gateway_core::dns::{
    Action, Cause, ClientIdentity, Decision, Local, Name, NameRef, Question, RuleSource,
};
use gateway_dns::hooks::{
    Arrival, Client, ClientLookup, Failure, FqdnInstallError, FqdnPolicy, Host, LocalAnswers, Logged, Query,
    QueryEgress, QueryRoute, Reply, Resolvers, Upstream,
};
use gateway_dns::serve::settings::Listen;
use gateway_dns::{Resolver, Settings};
use gateway_model::Id;
use gateway_model::domain::DomainName;

struct SingleClient(Arc<Client>);

impl ClientLookup for SingleClient {
    fn host(&self, arrival: &Arrival) -> Option<Host> {
        Some(arrival.source.ip().into())
    }

    fn host_at(&self, address: IpAddr) -> Host {
        address.into()
    }

    fn client(&self, _: &Host) -> Arc<Client> {
        self.0.clone()
    }

    fn known(&self, _: &Host) -> Option<Arc<Client>> {
        Some(self.0.clone())
    }

    fn device_limit(&self, _: &Host) -> Option<IpAddr> {
        None
    }

    fn version(&self) -> u64 {
        0
    }
}

struct List(HashSet<Box<[u8]>, rapidhash::fast::RandomState>, RuleSource);

impl List {
    fn look(&self, name: NameRef<'_>) -> Decision {
        match name.suffixes().any(|name| self.0.contains(name.wire())) {
            true => Decision { action: Action::Block, because: Some(self.1.clone()) },
            false => Decision::PASS,
        }
    }
}

impl LocalAnswers for List {
    fn decide(&self, _: &ClientIdentity, question: Question<'_>, _: jiff::Timestamp) -> Decision {
        self.look(question.name)
    }

    fn inspect_name(
        &self,
        _: &ClientIdentity,
        _: Question<'_>,
        target: NameRef<'_>,
        _: jiff::Timestamp,
    ) -> Decision {
        self.look(target)
    }

    fn inspect_address(
        &self,
        _: &ClientIdentity,
        _: Question<'_>,
        _: IpAddr,
        _: jiff::Timestamp,
    ) -> Decision {
        Decision::PASS
    }

    fn local(&self, _: Question<'_>, _: bool) -> Option<Local> {
        None
    }

    fn notified(&self, _: NameRef<'_>, _: IpAddr) -> bool {
        false
    }
}

struct Nothing;

impl FqdnPolicy for Nothing {
    fn fqdn_route(&self, _: &Client, _: NameRef<'_>) -> Option<Arc<QueryRoute>> {
        None
    }

    fn install(&self, _: &Client, _: NameRef<'_>, _: &[(IpAddr, Duration)]) -> Result<(), FqdnInstallError> {
        Ok(())
    }
}

struct Omniscient;

impl Upstream for Omniscient {
    async fn send_query(&self, query: Query) -> Result<Reply, Failure> {
        let mut message = b"\0\0\x81\x80\0\x01\0\x01\0\0\0\0".to_vec();
        message.extend_from_slice(query.name.as_ref().wire());
        message.extend_from_slice(&query.qtype.to_be_bytes());
        message.extend_from_slice(b"\0\x01\xc0\x0c\0\x01\0\x01\0\0\x0e\x10\0\x04\xc0\0\x02\x01");
        let (upstream, elapsed) = ("192.0.2.53".into(), Duration::ZERO);
        Ok(Reply {
            message: message.into(),
            upstream,
            egress: "auto".into(),
            elapsed,
            forwarder: None,
            secure: None,
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, address, list, workers, rest @ ..] = arguments.as_slice() else {
        return Err("loopback ADDRESS LIST WORKERS [LOG FOLDER]".into());
    };
    let address: SocketAddr = address.parse()?;
    let names = std::fs::read_to_string(list)?;
    let names = names.lines().filter_map(|name| DomainName::parse(name).ok());
    let names = names.map(|name| Name::from(&name).as_ref().wire().into()).collect();
    let because =
        RuleSource { cause: Cause::Blocklist, id: Some(Id::NIL), rule: "listed".into(), through: None };
    let client = Client {
        number: 1,
        asker: ClientIdentity { device: Some(Id::NIL), ..ClientIdentity::default() },
        name: Some("load".into()),
        route: Arc::new(QueryRoute {
            partition: 0,
            route: QueryEgress::Default,
            resolvers: Resolvers::Usual,
        }),
        logged: if rest.is_empty() { Logged::Off } else { Logged::Full },
        rank: None,
        filtered: true,
        strips_ech: false,
        near: true,
    };
    let mut settings = Settings {
        listen: vec![Listen { address, interface: None }],
        workers: workers.parse()?,
        ..Settings::default()
    };
    settings.log.directory = rest.first().map(Into::into);
    let clients = Arc::new(SingleClient(Arc::new(client)));
    let resolver = Resolver::start(
        settings,
        clients,
        Arc::new(List(names, because)),
        Arc::new(Nothing),
        Omniscient,
        None,
        gateway_dns::hooks::Daemon {
            supervisor: Arc::new(gateway_dns::hooks::Unsupervised),
            wall: gateway_dns::WallClock::new(jiff::Timestamp::now),
        },
    )
    .await?;
    println!("{:?}", resolver.status().listening);
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
    let status = resolver.status();
    let usage = processor_time()?;
    let per = usage.as_secs_f64() * 1e6 / status.today.queries.max(1) as f64;
    println!("{} questions, {usage:?} of CPU, {per:.2} µs each", status.today.queries);
    println!("{:?}", status);
    resolver.stop().await;
    Ok(())
}

/// Of all threads; with the start, which reads the list.
fn processor_time() -> std::io::Result<Duration> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = fields.iter().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * 10))
}
