//! Copies of zones from a server that behaves, and from one that does not.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use gateway_core::dns::Record;
use gateway_core::dns::zones::Zones;
use gateway_model::domain::DomainName;
use gateway_model::upstream::DnsProtocol;
use gateway_outbound::Resolver;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::*;
use crate::hooks::Unsupervised;
use crate::wire::{HEADER, Writer, flag, name::skip, rtype};

mod messages;

const KEY: Key = Key::new(3);
const TIMEOUT: Duration = Duration::from_secs(20);

fn name(text: &str) -> Name {
    Name::from(&DomainName::parse(text).expect("a name"))
}

fn record(owner: &str, rtype: u16, rdata: &[u8]) -> Record {
    Record { name: name(owner), rtype, ttl: 300, rdata: rdata.into() }
}

fn soa(serial: u32, [refresh, retry, expire]: [u32; 3]) -> Record {
    let numbers = [serial, refresh, retry, expire, 60].map(u32::to_be_bytes).concat();
    record("example", rtype::SOA, &[b"\x02ns\x07example\0\0", &numbers[..]].concat())
}

/// Reply to the query for the zone, with these records.
fn message(id: u16, qtype: u16, records: &[Record]) -> Vec<u8> {
    let mut out = id.to_be_bytes().to_vec();
    out.extend_from_slice(&(flag::QR | flag::AA).to_be_bytes());
    out.extend_from_slice(&[0, 1]);
    out.extend_from_slice(&(records.len() as u16).to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(b"\x07example\0");
    out.extend_from_slice(&qtype.to_be_bytes());
    out.extend_from_slice(&[0, 1]);
    let mut writer = Writer::new(&mut out);
    for record in records {
        writer.record(record).expect("data as its type says");
    }
    out
}

const USUAL: [u32; 3] = [3600, 600, 86_400];

fn zone(serial: u32) -> Vec<Record> {
    vec![
        soa(serial, USUAL),
        record("example", rtype::NS, b"\x02ns\x07example\0"),
        record("ns.example", rtype::A, &[192, 0, 2, 53]),
        record("www.example", rtype::A, &[192, 0, 2, (serial % 256) as u8]),
        record("odd.example", 65_280, b"anything"),
    ]
}

/// Primary server of `example`, with a version by its serial.
struct Primary {
    at: std::net::SocketAddr,
    serial: Arc<AtomicU32>,
    task: JoinHandle<()>,
}

impl Drop for Primary {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Primary {
    async fn new(serial: u32) -> Primary {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (at, serial) = (listener.local_addr().unwrap(), Arc::new(AtomicU32::new(serial)));
        let version = serial.clone();
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                while let Ok(length) = stream.read_u16().await {
                    let mut question = vec![0; usize::from(length)];
                    stream.read_exact(&mut question).await.unwrap();
                    let (id, end) =
                        (u16::from_be_bytes([question[0], question[1]]), skip(&question, HEADER).unwrap());
                    let qtype = u16::from_be_bytes([question[end], question[end + 1]]);
                    let mut records = zone(version.load(Ordering::SeqCst));
                    let pieces = match qtype {
                        rtype::SOA => vec![vec![records.remove(0)]],
                        _ => {
                            let end = records[0].clone();
                            let rest = records.split_off(2);
                            vec![records, rest, vec![end]]
                        }
                    };
                    for piece in pieces {
                        let message = message(id, qtype, &piece);
                        stream.write_u16(message.len() as u16).await.unwrap();
                        stream.write_all(&message).await.unwrap();
                    }
                }
            }
        });
        Primary { at, serial, task }
    }

    fn secondary(&self) -> Secondary {
        secondary(self.at)
    }
}

fn secondary(at: std::net::SocketAddr) -> Secondary {
    let server = Server {
        shown: at.to_string().into(),
        protocol: DnsProtocol::Tcp,
        place: ServerAddress::Address(at),
        certificate: None,
        path: String::new(),
        bootstrap: Vec::new(),
    };
    Secondary { id: Id::from_u128(7), zone: name("example"), servers: vec![server] }
}

/// Delivered zones and errors.
struct Recorder(mpsc::UnboundedSender<Result<Option<Copy>, Error>>);

impl Deliver for Recorder {
    fn deliver(&self, _: Id, copy: Option<Copy>) {
        // The test may have ended.
        let _ = self.0.send(Ok(copy));
    }

    fn failed(&self, _: &Name, error: &Error) {
        let _ = self.0.send(Err(error.clone()));
    }
}

struct World {
    secondaries: Secondaries,
    seen: mpsc::UnboundedReceiver<Result<Option<Copy>, Error>>,
}

impl World {
    fn new(folder: &std::path::Path) -> World {
        let (seen, listening) = mpsc::unbounded_channel();
        let context = Arc::new(Context::new(Resolver::default(), || Err("no TLS here".to_owned()), |_| {}));
        let secondaries =
            Secondaries::new(folder.to_owned(), KEY, context, Recorder(seen), Arc::new(Unsupervised));
        World { secondaries, seen: listening }
    }

    async fn next(&mut self) -> Result<Option<Copy>, Error> {
        tokio::time::timeout(TIMEOUT, self.seen.recv()).await.expect("in time").expect("it is there")
    }

    async fn copy(&mut self) -> Copy {
        self.next().await.expect("no failure").expect("a copy")
    }
}

#[test]
fn rfc_1982_section_3_2() {
    for (serial, than) in [(1, 0), (0, u32::MAX), (0x7fff_ffff, 0), (100, 0xffff_ff00)] {
        assert!(is_newer(serial, than) && !is_newer(than, serial), "{serial} {than}");
    }
    assert!(!is_newer(5, 5));
    // The order of two serials that are so far apart is undefined (RFC 1982).
    assert!(!is_newer(0x8000_0000, 0) && !is_newer(0, 0x8000_0000));
}

#[tokio::test]
async fn a_secondary_zone_is_transferred_stored_and_present_after_a_restart() {
    let (folder, primary) = (tempfile::tempdir().unwrap(), Primary::new(41).await);
    let mut world = World::new(folder.path());
    world.secondaries.set(&[primary.secondary()]);
    let copy = world.copy().await;
    assert_eq!((copy.serial, copy.records), (41, 5));
    let status = world.secondaries.status(Id::from_u128(7));
    assert_eq!((status.serial, status.records, status.error.as_deref()), (Some(41), 5, None));
    assert!(status.expires > status.checked && status.last_updated.is_some());
    drop(world);

    let mut world = World::new(folder.path());
    world.secondaries.load(&[primary.secondary()]);
    assert_eq!(world.copy().await.serial, 41);
    drop(world);
    // The cache of another primary may be used, that of another zone not.
    let mut others = primary.secondary();
    others.zone = name("example.org");
    for other in [others, secondary("127.0.0.1:1".parse().unwrap())] {
        let mut world = World::new(folder.path());
        world.secondaries.load(&[other]);
        assert!(world.seen.try_recv().is_err());
    }

    let file = folder.path().join(format!("{}.zone", Id::from_u128(7)));
    let mut bytes = std::fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let mut world = World::new(folder.path());
    world.secondaries.load(&[primary.secondary()]);
    assert!(world.seen.try_recv().is_err(), "a disk that gives back something else");
    world.secondaries.set(&[primary.secondary()]);
    assert_eq!(world.copy().await.serial, 41);
    world.secondaries.set(&[]);
    assert!(matches!(world.next().await, Ok(None)), "nobody sees to it any more");
    assert!(!file.exists());
}

#[tokio::test]
async fn a_server_of_the_zone_says_that_it_has_changed() {
    let (folder, primary) = (tempfile::tempdir().unwrap(), Primary::new(7).await);
    let mut world = World::new(folder.path());
    world.secondaries.set(&[primary.secondary()]);
    assert_eq!(world.copy().await.serial, 7);
    let zone = name("example");
    assert!(!world.secondaries.notified(zone.as_ref(), "192.0.2.1".parse().unwrap()));
    assert!(!world.secondaries.notified(name("example.org").as_ref(), primary.at.ip()));
    primary.serial.store(8, Ordering::SeqCst);
    assert!(world.secondaries.notified(zone.as_ref(), primary.at.ip()));
    assert_eq!(world.copy().await.serial, 8);
    primary.serial.store(6, Ordering::SeqCst);
    assert!(world.secondaries.notified(zone.as_ref(), primary.at.ip()));
    assert!(matches!(world.next().await, Err(Error::Older(_, 6))), "it does not go back");
    assert_eq!(world.secondaries.status(Id::from_u128(7)).serial, Some(8));
}

fn held(times: [u32; 3], age: Duration) -> DownloadState<ZoneCopy> {
    let records = vec![soa(1, times)];
    let body = disk::body(&records);
    let head = disk::ZoneHeader::new(&name("example"), "127.0.0.1:1", Timestamp::UNIX_EPOCH, &body);
    let times = gateway_core::dns::zones::numbers(&records[0].rdata).unwrap();
    let copy = Copy::new(&name("example"), records, KEY).unwrap();
    let copy = ZoneCopy::of(&disk::CompleteZone { head, copy, times });
    let held = Some(HeldCopy::new(copy, Timestamp::UNIX_EPOCH, age));
    DownloadState { held, ..DownloadState::default() }
}

fn is_expired(zone: &DownloadState<ZoneCopy>) -> bool {
    ZoneTransfer::is_expired(zone.held.as_ref().expect("a copy"))
}

#[tokio::test(start_paused = true)]
async fn rfc_1034_section_4_3_5_times() {
    let mut known = held([3600, 600, 7200], Duration::ZERO);
    let within = |wait: Duration, seconds: u64| {
        wait <= Duration::from_secs(seconds) && wait >= Duration::from_secs(seconds * 9 / 10)
    };
    assert!(within(wait(&known), 3600));
    known.failures = 1;
    assert!(within(wait(&known), 600));
    tokio::time::advance(Duration::from_secs(7000)).await;
    assert!(wait(&known) <= Duration::from_secs(200), "it is given up in time");
    assert!(!is_expired(&known));
    tokio::time::advance(Duration::from_secs(200)).await;
    assert!(is_expired(&known));
    let hasty = held([0, 0, 0], Duration::ZERO).held.unwrap().copy.times;
    assert_eq!((hasty.refresh, hasty.retry, hasty.expire).0, Duration::from_secs(30));
    assert_eq!(hasty.expire, Duration::from_secs(60), "it is looked at before it is given up");
    let nothing = DownloadState { failures: 40, ..DownloadState::default() };
    assert!(within(wait(&nothing), 600) && wait(&DownloadState::default()).is_zero());
}

#[tokio::test]
async fn an_unconfirmed_secondary_zone_expires() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path());
    // Closed port.
    let zone = secondary("127.0.0.1:1".parse().unwrap());
    let known = held(USUAL, Duration::from_secs(86_401));
    world.secondaries.0.set_state(zone.id, known);
    world.secondaries.set(&[zone]);
    assert!(matches!(world.next().await, Ok(None)));
    assert!(matches!(world.next().await, Err(Error::Unreachable(..))));
    let status = world.secondaries.status(Id::from_u128(7));
    assert_eq!(status.serial, None);
    assert!(status.error.is_some());
}

/// Any zone that was read can be answered from.
fn answered(copy: Copy) -> Zones {
    let now = "2026-11-22T12:00:00Z".parse().unwrap();
    let mut state = gateway_model::State::new(now).begin(now);
    let zone = gateway_model::kinds::DnsZone {
        name: "example".parse().unwrap(),
        r#type: gateway_model::kinds::dns_zone::ZoneType::Secondary,
        upstreams: vec!["192.0.2.53".to_owned()],
        ..Default::default()
    };
    let (zone, _) = state.create(zone).unwrap();
    let options = gateway_core::dns::zones::Options {
        key: KEY,
        domain: "lan".parse().unwrap(),
        hosts: Vec::new(),
        host_ttl: 10,
        mesh: None,
        copies: BTreeMap::from([(zone.meta.id, copy)]),
        signer: None,
    };
    Zones::new(&state, &options)
}
