//! Test double of the programs and maps of the kernel, and a resolver that uses it.

use std::net::IpAddr;
use std::sync::Arc;

use gateway_common::dns_filter::{Buckets, Plain, answer_index, look_up, read_query};
use gateway_common::wire::{
    DnsCacheKey, DnsCacheValue, DnsHit, FILTER_HEAD, FilterAnswer, FilterBucket, FilterClient,
    FilterClientKey, FilterHeader, FilterHit, FilterQuery, QUESTION,
};
use gateway_core::dns::domain_set::Key;
use gateway_core::dns::filter::{Canaries, Filter, Lists, Options};
use gateway_core::dns::lists::Reader;
use gateway_core::dns::{ClientIdentity, Decision, Local, NameRef, Question};
use gateway_model::domain::DomainName;
use gateway_model::kinds::dns::Scope;
use gateway_model::kinds::dns_filter_rule::FilterAction;
use gateway_model::kinds::{Device, DnsAllow, DnsBlock, DnsFilterRule, ThreatFeed};
use gateway_model::pattern::Match;
use gateway_model::{EditError, Id, State as Stored};
use hashbrown::HashMap;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use parking_lot::Mutex;

use super::super::*;
use crate::hooks::{Host, Ingress, LocalAnswers};
use crate::serve::kernel_cache::entry::key;
use crate::serve::settings::Settings;
use crate::serve::test_doubles::*;
use crate::serve::{QueryContext, Shared, Transport};
use crate::wire::Request;

pub(super) const INTERFACE: u32 = 7;

/// The programs and maps of the kernel.
#[derive(Clone, Default)]
pub(super) struct Kernel(pub Arc<Mutex<Maps>>);

#[derive(Default)]
pub(super) struct Maps {
    epoch: u64,
    table: Vec<FilterBucket>,
    answers: HashMap<u32, FilterAnswer>,
    clients: HashMap<FilterClientKey, FilterClient>,
    hits: Vec<FilterHit>,
    pub tables: usize,
    pub broken: bool,
}

struct Table<'a>(&'a [FilterBucket]);

impl Buckets for Table<'_> {
    fn bucket(&self, index: u32) -> Option<&FilterBucket> {
        self.0.get(index as usize + 1)
    }
}

impl Dataplane for Kernel {
    fn set_epoch(&self, epoch: u64) {
        self.0.lock().epoch = epoch;
    }

    fn put(&self, _: &DnsCacheKey, _: &DnsCacheValue) {}

    fn remove(&self, _: &[DnsCacheKey]) {}

    fn take_hits(&self, _: &mut dyn FnMut(DnsHit)) {}

    fn put_table(&self, table: &[FilterBucket], answers: &[(u32, FilterAnswer)]) -> std::io::Result<()> {
        let mut maps = self.0.lock();
        if maps.broken {
            return Err(std::io::ErrorKind::OutOfMemory.into());
        }
        maps.tables += 1;
        maps.table = table.to_vec();
        maps.answers.extend(answers.iter().copied());
        Ok(())
    }

    fn put_client(&self, key: &FilterClientKey, client: &FilterClient) {
        self.0.lock().clients.insert(*key, *client);
    }

    fn take_filter_hits(&self, report: &mut dyn FnMut(FilterHit)) {
        self.0.lock().hits.drain(..).for_each(report);
    }
}

impl Kernel {
    /// Answers a query as the programs do.
    pub(super) fn answer(&self, message: &[u8], server: Address) -> Option<Vec<u8>> {
        let asked = key(&client_host(), self::server(), INTERFACE, message)?;
        let mut maps = self.0.lock();
        let client_key =
            FilterClientKey { client: asked.client, server, interface: INTERFACE, host: asked.host, _pad: 0 };
        let epoch = maps.epoch;
        let client = maps.clients.get_mut(&client_key)?;
        if !client.is_valid(epoch, monotonic()) {
            return None;
        }
        let mut query = FilterQuery { serial: client.serial, kinds: client.kinds, ..FilterQuery::EMPTY };
        query.question[..QUESTION].copy_from_slice(&asked.question);
        let header = FilterHeader::from(maps.table[0]);
        if !read_query::<Plain>(&mut query, asked.length.into(), &header.key) || header.serial != query.serial
        {
            return None;
        }
        let kind = look_up::<Plain, _>(&mut query, &Table(&maps.table), header.buckets)?;
        let index = answer_index(query.serial, kind, query.variant);
        let answer = *maps.answers.get(&index)?;
        assert_eq!(answer.serial, query.serial, "an answer of another table");
        maps.clients.get_mut(&client_key)?.budget -= 1;
        maps.hits.push(FilterHit { query: asked, time: monotonic(), answer: index });
        let mut sent = message[..2 + query.question_end as usize].to_vec();
        let copied = [message[2] & 1, message[3] & 0x10];
        sent[2..2 + FILTER_HEAD].copy_from_slice(&answer.head);
        sent[2] |= copied[0];
        sent[3] |= copied[1];
        sent.extend_from_slice(&answer.tail[..usize::from(answer.length)]);
        Some(sent)
    }
}

/// The filter without zones.
pub(super) struct FilterOnly(Arc<Filter>);

impl LocalAnswers for FilterOnly {
    fn decide(&self, asker: &ClientIdentity, question: Question<'_>, now: Timestamp) -> Decision {
        self.0.decide(asker, question, now)
    }

    fn inspect_name(&self, _: &ClientIdentity, _: Question<'_>, _: NameRef<'_>, _: Timestamp) -> Decision {
        Decision::PASS
    }

    fn inspect_address(&self, _: &ClientIdentity, _: Question<'_>, _: IpAddr, _: Timestamp) -> Decision {
        Decision::PASS
    }

    fn local(&self, _: Question<'_>, _: bool) -> Option<Local> {
        None
    }

    fn filter(&self) -> Option<Arc<Filter>> {
        Some(self.0.clone())
    }

    fn notified(&self, _: NameRef<'_>, _: IpAddr) -> bool {
        false
    }
}

/// Checks that an entry was stored, unless there is another one with the same name.
fn may_be_there<R>(created: Result<R, EditError>) {
    if let Err(error) = created {
        assert!(matches!(error, EditError::Conflict { .. }), "{error:?}");
    }
}

/// Stored state and lists.
pub(super) struct Inputs {
    pub state: Stored,
    lists: Lists,
    /// Device of the client, and another one.
    pub devices: [Id; 2],
}

impl Inputs {
    pub(super) fn new() -> Inputs {
        let now = Timestamp::now();
        let mut state = Stored::new(now).begin(now);
        let devices = ["02:00:00:00:00:01", "02:00:00:00:00:02"].map(|mac| {
            let device = Device { name: mac.to_owned(), mac: mac.parse().ok(), ..Device::default() };
            state.create(device).expect("a device").0.meta.id
        });
        Inputs { state, lists: Lists::new(Key::new(3)), devices }
    }

    pub(super) fn rule(&mut self, r#match: Match, pattern: &str, action: FilterAction, scope: Scope) {
        let answer = (action == FilterAction::Rewrite).then(|| "192.0.2.7".to_owned());
        let pattern = pattern.to_owned();
        let rule = DnsFilterRule { r#match, pattern, action, answer, scope, ..Default::default() };
        may_be_there(self.state.create(rule));
    }

    pub(super) fn block(&mut self, domain: &str) {
        let domain = DomainName::parse(domain).ok();
        may_be_there(self.state.create(DnsBlock { domain, ..Default::default() }));
    }

    pub(super) fn allow(&mut self, domain: &str) {
        let domain = DomainName::parse(domain).ok();
        may_be_there(self.state.create(DnsAllow { domain, ..Default::default() }));
    }

    pub(super) fn list(&mut self, feed: bool, text: &str) {
        let number = self.lists.ids().count();
        let (name, url) = (format!("list {number}"), format!("https://lists.example/{number}"));
        let id = match feed {
            true => {
                let feed = ThreatFeed { name, url, ..Default::default() };
                self.state.create(feed).expect("a feed").0.meta.id
            }
            false => {
                let list = DnsBlock { name: Some(name), url: Some(url), ..Default::default() };
                self.state.create(list).expect("a list").0.meta.id
            }
        };
        self.lists.put(id, Reader::read(None, self.lists.key(), text.as_bytes())).expect("there is room");
    }

    pub(super) fn filter(&self) -> FilterOnly {
        let options = Options { zone: TimeZone::UTC, canaries: Canaries::default() };
        FilterOnly(Arc::new(Filter::new(&self.state, &self.lists, options)))
    }
}

pub(super) fn client_address() -> IpAddr {
    "192.0.2.9".parse().expect("v4")
}

/// The client as the programs see it.
pub(super) fn client_host() -> Host {
    let ingress = Ingress { mac: [2, 0, 0, 0, 0, 9], interface: INTERFACE, vlan: 0 };
    Host { address: client_address(), ingress: Some(ingress) }
}

pub(super) fn server() -> IpAddr {
    "192.0.2.1".parse().expect("v4")
}

pub(super) struct FilterFixture {
    world: Fixture,
    pub kernel: Kernel,
}

impl FilterFixture {
    pub(super) fn new(inputs: &Inputs, settings: Settings) -> FilterFixture {
        let kernel = Kernel::default();
        let dataplane = Some(Box::new(kernel.clone()) as Box<dyn Dataplane>);
        let world =
            Fixture::with_dataplane(Arc::new(inputs.filter()), Default::default(), settings, dataplane);
        let mut client = client(1, 0);
        client.asker.device = Some(inputs.devices[0]);
        world.clients.known.lock().insert(client_address(), Arc::new(client));
        let fixture = FilterFixture { world, kernel };
        fixture.serve();
        fixture
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.world.shared
    }

    /// Brings the table up to date, and serves the client.
    pub(super) fn serve(&self) {
        let shared = self.shared();
        shared.collect_filter_hits();
        shared.kernel_filter.sync(&shared.kernel_cache, &shared.state);
        let (state, epoch) = (shared.state.load_full(), shared.kernel_cache.epoch());
        let client = state.clients.client(&client_host());
        let (host, server, interface) = (&client_host(), server(), INTERFACE);
        let offer = ServedClient { host, server, interface, client: &client };
        shared.kernel_filter.offer(&offer, &state, epoch, shared.clock.now());
    }

    pub(super) fn change(&self, change: impl Fn(&mut State)) {
        self.shared().state.rcu(|state| {
            let mut state = State::clone(state);
            change(&mut state);
            state
        });
        self.shared().kernel_cache.invalidate();
    }

    pub(super) fn kernel(&self, message: &[u8]) -> Option<Vec<u8>> {
        self.kernel.answer(message, server().into())
    }

    pub(super) fn resolver(&self, message: &[u8]) -> Option<Vec<u8>> {
        let state = self.shared().state.load_full();
        let (client, now) = (state.clients.client(&client_host()), self.shared().clock.now());
        let request = Request::read(message).ok()?;
        let query = QueryContext::new(&state, &request, &client, Transport::Udp, now);
        let mut answer = Vec::new();
        self.shared().answer_fast(&query, &mut answer).map(|_| answer)
    }

    /// Checks that both answer alike.
    pub(super) fn check(&self, message: &[u8]) {
        let answer = self.kernel(message).expect("from the kernel");
        assert_eq!(Some(answer), self.resolver(message));
    }
}
