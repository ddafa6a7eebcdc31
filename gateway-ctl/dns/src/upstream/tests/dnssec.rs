//! Validation against a small tree of zones that are signed here: secure, insecure and bogus answers.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use hickory_proto::dnssec::crypto::Ed25519SigningKey;
use hickory_proto::dnssec::rdata::{DNSKEY, DNSSECRData, DS, NSEC, RRSIG, SigInput};
use hickory_proto::dnssec::{Algorithm, DigestType, DnssecSigner, SigningKey, TBS, TrustAnchors};
use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::rdata::{A, NS, SOA};
use hickory_proto::rr::{DNSClass, Name as ProtoName, RData, Record, RecordType, SerialNumber};

use super::server::{Act, Came, Server};
use super::*;

const TTL: u32 = 300;

/// A zone's key.
struct Key {
    zone: ProtoName,
    dnskey: DNSKEY,
    signer: DnssecSigner,
}

fn proto(text: &str) -> ProtoName {
    ProtoName::from_ascii(text).unwrap()
}

impl Key {
    fn new(zone: &str) -> Key {
        let zone = proto(zone);
        let made = Ed25519SigningKey::generate_pkcs8().unwrap();
        let key = Ed25519SigningKey::from_pkcs8(&made).unwrap();
        let dnskey = DNSKEY::from_key(&key.to_public_key().unwrap());
        let signer =
            DnssecSigner::new(dnskey.clone(), Box::new(key), zone.clone(), Duration::from_secs(3600));
        Key { zone, dnskey, signer }
    }

    /// The records of one set with their signature, valid since and until so many seconds from the present.
    fn sign(&self, records: Vec<Record>, since: i64, until: i64) -> Vec<Record> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
        let first = &records[0];
        let input = SigInput {
            type_covered: first.record_type(),
            algorithm: Algorithm::ED25519,
            num_labels: first.name.num_labels(),
            original_ttl: first.ttl,
            sig_expiration: SerialNumber::new((now + until) as u32),
            sig_inception: SerialNumber::new((now + since) as u32),
            key_tag: self.signer.calculate_key_tag().unwrap(),
            signer_name: self.zone.clone(),
        };
        let tbs = TBS::from_input(&first.name, DNSClass::IN, &input, records.iter()).unwrap();
        let rrsig = RRSIG::from_sig(input, self.signer.sign(&tbs).unwrap());
        let rrsig = record(first.name.clone(), RData::DNSSEC(DNSSECRData::RRSIG(rrsig)));
        records.into_iter().chain([rrsig]).collect()
    }

    fn good(&self, data: RData, name: &str) -> Vec<Record> {
        self.sign(vec![record(proto(name), data)], -60, 3600)
    }
}

fn record(name: ProtoName, data: RData) -> Record {
    Record::from_rdata(name, TTL, data)
}

fn a(last: u8) -> RData {
    RData::A(A::new(192, 0, 2, last))
}

fn nsec(next: &str, types: &[RecordType]) -> RData {
    RData::DNSSEC(DNSSECRData::NSEC(NSEC::new_cover_self(proto(next), types.iter().copied())))
}

#[derive(Clone, Default)]
struct Answer {
    missing: bool,
    answers: Vec<Record>,
    authorities: Vec<Record>,
}

/// Zones of a resolver that sees the whole tree.
struct Tree {
    answers: BTreeMap<(String, RecordType), Answer>,
    anchors: TrustAnchors,
}

fn tree() -> Tree {
    let (root, secure) = (Key::new("."), Key::new("secure."));
    let soa = |zone: &str| {
        let soa = SOA::new(proto("ns.test."), proto("mail.test."), 1, 3600, 600, 86_400, TTL);
        record(proto(zone), RData::SOA(soa))
    };
    let mut tree = Tree { answers: BTreeMap::new(), anchors: TrustAnchors::empty() };
    tree.anchors.insert(root.dnskey.public_key());
    let mut add = |name: &str, rtype: RecordType, answers: Vec<Record>| {
        tree.answers.insert((name.to_owned(), rtype), Answer { answers, ..Answer::default() });
    };
    let ns = || RData::NS(NS(proto("ns.test.")));
    for key in [&root, &secure] {
        let zone = key.zone.to_ascii();
        let dnskey = RData::DNSSEC(DNSSECRData::DNSKEY(key.dnskey.clone()));
        add(&zone, RecordType::DNSKEY, key.good(dnskey, &zone));
        add(&zone, RecordType::NS, key.good(ns(), &zone));
        add(&zone, RecordType::SOA, key.sign(vec![soa(&zone)], -60, 3600));
    }
    let digest = secure.dnskey.to_digest(&secure.zone, DigestType::SHA256).unwrap();
    let tag = secure.signer.calculate_key_tag().unwrap();
    let ds = DS::new(tag, Algorithm::ED25519, DigestType::SHA256, digest.as_ref().to_vec());
    add("secure.", RecordType::DS, root.good(RData::DNSSEC(DNSSECRData::DS(ds)), "secure."));
    add("insecure.", RecordType::NS, vec![record(proto("insecure."), ns())]);
    add("www.insecure.", RecordType::A, vec![record(proto("www.insecure."), a(2))]);
    add("www.secure.", RecordType::A, secure.good(a(1), "www.secure."));
    let mut bad = secure.good(a(1), "bad.secure.");
    bad[0].data = a(66);
    add("bad.secure.", RecordType::A, bad);
    add("naked.secure.", RecordType::A, vec![record(proto("naked.secure."), a(66))]);
    let old = vec![record(proto("old.secure."), a(66))];
    add("old.secure.", RecordType::A, secure.sign(old, -7200, -3600));
    let early = vec![record(proto("early.secure."), a(66))];
    add("early.secure.", RecordType::A, secure.sign(early, 3600, 7200));
    let foreign = Key::new("secure.");
    add("foreign.secure.", RecordType::A, foreign.good(a(66), "foreign.secure."));

    let denial = |soa_of: &Key, nsecs: Vec<Vec<Record>>, missing: bool| {
        let zone = soa_of.zone.to_ascii();
        let mut authorities = soa_of.sign(vec![soa(&zone)], -60, 3600);
        authorities.extend(nsecs.into_iter().flatten());
        Answer { missing, authorities, answers: Vec::new() }
    };
    let mut deny = |name: &str, rtype: RecordType, answer: Answer| {
        tree.answers.insert((name.to_owned(), rtype), answer);
    };
    let delegation = root.good(nsec("secure.", &[RecordType::NS]), "insecure.");
    deny("insecure.", RecordType::DS, denial(&root, vec![delegation], false));
    let only_a = secure.good(nsec("secure.", &[RecordType::A]), "www.secure.");
    deny("www.secure.", RecordType::AAAA, denial(&secure, vec![only_a], false));
    let apex =
        secure.good(nsec("bad.secure.", &[RecordType::NS, RecordType::SOA, RecordType::DNSKEY]), "secure.");
    let gap = secure.good(nsec("old.secure.", &[RecordType::A]), "naked.secure.");
    deny("none.secure.", RecordType::A, denial(&secure, vec![apex, gap], true));
    deny("hidden.secure.", RecordType::A, denial(&secure, Vec::new(), true));
    let unsigned = Answer { authorities: vec![soa("insecure.")], missing: true, ..Answer::default() };
    deny("none.insecure.", RecordType::A, unsigned.clone());
    for name in ["www.insecure.", "none.insecure."] {
        deny(name, RecordType::NS, Answer { missing: false, ..unsigned.clone() });
    }
    for name in ["www", "bad", "naked", "old", "early", "foreign", "none", "hidden"] {
        let name = format!("{name}.secure.");
        let empty = secure.good(nsec("zzz.secure.", &[RecordType::A]), &name);
        deny(&name, RecordType::NS, denial(&secure, vec![empty], false));
    }
    tree
}

fn say(tree: &Tree, came: &Came) -> Vec<u8> {
    let asked = Message::from_vec(&came.message).unwrap();
    let query = asked.queries[0].clone();
    let mut answer = Message::response(asked.metadata.id, asked.metadata.op_code);
    let name = query.name().to_lowercase().to_ascii();
    match tree.answers.get(&(name, query.query_type())) {
        Some(known) => {
            answer.metadata.response_code =
                if known.missing { ResponseCode::NXDomain } else { ResponseCode::NoError };
            answer.answers = known.answers.clone();
            answer.authorities = known.authorities.clone();
        }
        None => answer.metadata.response_code = ResponseCode::ServFail,
    }
    answer.metadata.recursion_available = true;
    // The AD bit of an upstream is not trusted.
    answer.metadata.authentic_data = true;
    answer.queries = vec![query];
    answer.to_vec().unwrap()
}

struct Proving {
    bench: Bench,
    server: Server,
}

async fn proving() -> Proving {
    let tree = tree();
    let anchors = Arc::new(tree.anchors.clone());
    let server = Server::new(move |came: &Came| Act::Say(say(&tree, came))).await;
    let mut plan = sequential(vec![udp(server.at)]);
    plan.groups[0].dnssec = true;
    let bench = Bench::trusting(plan, anchors);
    Proving { bench, server }
}

impl Proving {
    async fn send_query(&self, name: &str, change: impl Fn(&mut Query)) -> Result<Reply, Failure> {
        let mut query = query(QueryEgress::Default, name);
        change(&mut query);
        self.bench.upstreams.send_query(query).await
    }
}

fn authentic(reply: &Reply) -> bool {
    reply.message[3] & 0x20 != 0
}

fn signatures(reply: &Reply) -> usize {
    let message = Message::from_vec(&reply.message).unwrap();
    message.all_sections().filter(|record| record.record_type().is_rrsig()).count()
}

#[tokio::test]
async fn a_chain_of_trust_from_the_root_is_secure() {
    let proving = proving().await;
    let reply = proving.send_query("www.secure", |_| {}).await.unwrap();
    assert_eq!((address(&reply).as_str(), reply.secure, authentic(&reply)), ("192.0.2.1", Some(true), true));
    let asked = proving.server.count();
    let reply = proving.send_query("www.secure", |query| query.dnssec_ok = true).await.unwrap();
    let life = message::shortest_life(&reply.message).unwrap();
    assert!(life.as_secs() <= TTL.into());
    assert_eq!((signatures(&reply), authentic(&reply)), (1, true));
    assert_eq!(proving.server.count(), asked + 1, "the keys are known");
    let first = &proving.server.came.lock()[0];
    let edns = Message::from_vec(&first.message).unwrap();
    assert!(edns.edns.as_ref().unwrap().flags().dnssec_ok && edns.checking_disabled);
}

#[tokio::test]
async fn a_proven_denial_is_secure() {
    let proving = proving().await;
    let missing = proving.send_query("none.secure", |_| {}).await.unwrap();
    assert_eq!((missing.secure, missing.message[3] & 0xf), (Some(true), 3));
    let other_type = proving.send_query("www.secure", |query| query.qtype = 28).await.unwrap();
    assert_eq!((other_type.secure, other_type.message[3] & 0xf), (Some(true), 0));
}

#[tokio::test]
async fn answers_below_an_insecure_delegation_are_insecure() {
    let proving = proving().await;
    let reply = proving.send_query("www.insecure", |_| {}).await.unwrap();
    assert_eq!(
        (address(&reply).as_str(), reply.secure, authentic(&reply)),
        ("192.0.2.2", Some(false), false)
    );
    let missing = proving.send_query("none.insecure", |_| {}).await.unwrap();
    assert_eq!((missing.secure, missing.message[3] & 0xf), (Some(false), 3));
}

#[tokio::test]
async fn missing_or_wrong_signatures_are_bogus() {
    let proving = proving().await;
    let cases = [("bad", 6), ("foreign", 6), ("naked", 10), ("old", 7), ("early", 8), ("hidden", 12)];
    for (name, code) in cases {
        let outcome = proving.send_query(&format!("{name}.secure"), |_| {}).await;
        assert!(matches!(&outcome, Err(Failure::Bogus(got, _)) if *got == code), "{name}: {outcome:?}");
    }
}

#[tokio::test]
async fn clients_can_disable_validation() {
    let proving = proving().await;
    let reply = proving.send_query("bad.secure", |query| query.checking_disabled = true).await.unwrap();
    assert_eq!((address(&reply).as_str(), reply.secure), ("192.0.2.66", None));
}

#[tokio::test]
async fn without_the_right_anchor_nothing_is_secure() {
    let proving = proving().await;
    let mut plan = sequential(vec![udp(proving.server.at)]);
    plan.groups[0].dnssec = true;
    let bench = Bench::new(plan);
    let outcome = bench.send_query("www.secure").await;
    assert!(matches!(outcome, Err(Failure::Bogus(..))), "{outcome:?}");
}

#[tokio::test]
async fn keys_are_queried_by_the_route_of_the_query() {
    let proving = proving().await;
    proving.bench.send_query("www.secure").await.unwrap();
    let before = proving.bench.seen.marks().len();
    proving.bench.ask_by(marked([9]), "www.secure").await.unwrap();
    let marks = proving.bench.seen.marks();
    assert!(marks[..before].iter().all(|mark| *mark == 0));
    assert!(marks.len() > before + 2 && marks[before..].iter().all(|mark| *mark == 9), "{marks:?}");
}

#[tokio::test]
async fn proofs_of_a_zone_with_upstreams_of_its_own_begin_at_those_of_the_root() {
    let tree = Arc::new(tree());
    let anchors = Arc::new(tree.anchors.clone());
    let knows = |inside: bool| {
        let tree = tree.clone();
        move |came: &Came| {
            let asked = Message::from_vec(&came.message).unwrap();
            let (name, qtype) = (asked.queries[0].name().to_lowercase(), asked.queries[0].query_type());
            let below =
                proto("secure.").zone_of(&name) && !(name == proto("secure.") && qtype == RecordType::DS);
            Act::Say(if below == inside { say(&tree, came) } else { came.rcode(5) })
        }
    };
    let (inside, outside) = (Server::new(knows(true)).await, Server::new(knows(false)).await);
    let mut plan = sequential(vec![udp(outside.at)]);
    let mut group = plan.groups[0].clone();
    group.domain = Name::from(&DomainName::parse("secure").unwrap());
    group.servers = vec![udp(inside.at)];
    (group.dnssec, group.recursion) = (true, false);
    plan.groups.push(group);
    let reply = Bench::trusting(plan, anchors).send_query("www.secure").await.unwrap();
    assert_eq!((address(&reply).as_str(), reply.secure), ("192.0.2.1", Some(true)));
    assert!(inside.count() > 1 && outside.count() > 1);
}

#[tokio::test]
async fn a_key_that_cannot_be_had_is_no_proof_of_fraud() {
    let tree = tree();
    let anchors = Arc::new(tree.anchors.clone());
    let script = move |came: &Came| {
        let asked = Message::from_vec(&came.message).unwrap();
        if asked.queries[0].query_type() == RecordType::DNSKEY {
            Act::Nothing
        } else {
            Act::Say(say(&tree, came))
        }
    };
    let server = Server::new(script).await;
    let mut plan = sequential(vec![udp(server.at)]);
    plan.groups[0].dnssec = true;
    let outcome = Bench::make(plan, no_tls, anchors, 1).send_query("www.secure").await;
    assert!(matches!(outcome, Err(Failure::Timeout)), "{outcome:?}");
}
