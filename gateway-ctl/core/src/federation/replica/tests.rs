//! Replicas over random histories, and the refusals one by one.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::federation::offer::hash_of;

const KIND: SyncKind = SyncKind::Devices;
const KEY: PublicKey = PublicKey([7; 32]);

fn id(n: u8) -> Id {
    Id::from_u128(0x0193_f3a8 << 96 | u128::from(n))
}

fn objects(content: &BTreeMap<u8, u32>) -> Map<String, Value> {
    let list: Vec<Value> = content
        .iter()
        .map(|(n, value)| json!({"id": id(*n).to_string(), "name": value.to_string()}))
        .collect();
    json!({"devices": list}).as_object().unwrap().clone()
}

/// The node: its objects, and the revision of its store.
#[derive(Clone, Default)]
struct Node {
    content: BTreeMap<u8, u32>,
    revision: u64,
}

impl Node {
    fn answer(&self, request: &PullRequest) -> PullReply {
        let objects = objects(&self.content);
        let hash = hash_of(&objects);
        let is_held = request.have.get(KIND.as_str()).is_some_and(|held| *held == hash);
        let objects = (!is_held).then_some(objects);
        let kinds = BTreeMap::from([(KIND, KindOffer { revision: self.revision, hash, objects })]);
        let (nonce, node_id) = (request.nonce.clone(), "node".to_owned());
        PullReply { schema: SCHEMA, to: KEY, nonce, node_id, version: "1".into(), kinds }
    }
}

/// The receiver: the objects and the replica are one transaction.
#[derive(Default)]
struct Receiver {
    content: BTreeMap<Id, String>,
    replica: Replica,
    requests: u32,
}

impl Receiver {
    fn request(&mut self) -> PullRequest {
        self.requests += 1;
        self.replica.request(&[KIND], KEY, format!("nonce {}", self.requests), Timestamp::UNIX_EPOCH)
    }

    fn take(&mut self, reply: PullReply) -> Result<(), Refusal> {
        let held: BTreeSet<Id> = self.content.keys().copied().collect();
        let changes = self.replica.reply(reply, |_| held.clone(), Timestamp::UNIX_EPOCH)?;
        self.write(&changes);
        Ok(())
    }

    /// Takes the objects of a reply as a publication, which answers no request.
    fn take_published(&mut self, publication: PullReply) -> Result<(), Refusal> {
        let held: BTreeSet<Id> = self.content.keys().copied().collect();
        let PullReply { kinds, version, .. } = publication;
        let changes = self.replica.publication(kinds, &version, |_| held.clone(), Timestamp::UNIX_EPOCH)?;
        self.write(&changes);
        Ok(())
    }

    fn write(&mut self, changes: &[Change]) {
        for change in changes {
            for id in &change.deleted {
                self.content.remove(id);
            }
            for object in change.objects["devices"].as_array().unwrap() {
                let id = object["id"].as_str().unwrap().parse().unwrap();
                self.content.insert(id, object["name"].as_str().unwrap().to_owned());
            }
        }
        self.replica.written(changes);
    }

    /// Loses what is not durable.
    fn restart(&mut self) {
        self.replica = Replica::new(&self.replica.received());
    }
}

fn as_received(content: &BTreeMap<u8, u32>) -> BTreeMap<Id, String> {
    content.iter().map(|(n, value)| (id(*n), value.to_string())).collect()
}

#[derive(Clone, Debug)]
enum Step {
    Edit(u8, u32),
    Delete(u8),
    /// A request goes out. Its reply is under way until it arrives or is lost.
    Ask,
    /// One of the replies under way arrives, and may arrive again.
    Arrive(usize),
    Lose(usize),
    RestartReceiver,
    /// The node answers all requests so far from a copy of its earlier state, as one restored from a backup.
    AnswerFromBackup,
    /// The node publishes its state over the hub.
    Publish,
    /// A publication arrives, and may arrive late and again.
    ArrivePublished(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u8..8, any::<u32>()).prop_map(|(n, value)| Step::Edit(n, value)),
        3 => (0u8..8).prop_map(Step::Delete),
        5 => Just(Step::Ask),
        5 => (0usize..8).prop_map(Step::Arrive),
        2 => (0usize..8).prop_map(Step::Lose),
        1 => Just(Step::RestartReceiver),
        1 => Just(Step::AnswerFromBackup),
        4 => Just(Step::Publish),
        4 => (0usize..16).prop_map(Step::ArrivePublished),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Random histories of edits, deletions, lost, late, repeated and reordered replies and publications, restarts and
    /// restored backups. A receiver holds only states that the node had, never an older one after a newer one, and in the end the last one.
    #[test]
    fn no_object_is_lost_or_resurrected(steps in proptest::collection::vec(step(), 1..120)) {
        let (mut node, mut receiver) = (Node::default(), Receiver::default());
        let (mut history, mut under_way) = (vec![node.clone()], Vec::<PullReply>::new());
        let mut published = Vec::<PullReply>::new();
        let mut held_revision = 0;
        for step in steps {
            match step {
                Step::Edit(n, value) => drop(node.content.insert(n, value)),
                Step::Delete(n) => drop(node.content.remove(&n)),
                Step::Ask => under_way.push(node.answer(&receiver.request())),
                Step::Arrive(index) if index < under_way.len() => {
                    drop(receiver.take(under_way[index].clone()));
                }
                Step::Lose(index) if index < under_way.len() => drop(under_way.remove(index)),
                Step::AnswerFromBackup => {
                    let backup = &history[history.len() / 2];
                    under_way.push(backup.answer(&receiver.request()));
                }
                Step::RestartReceiver => receiver.restart(),
                Step::Publish => {
                    let all = PullRequest { have: BTreeMap::new(), ..Replica::default().request(&[KIND], KEY, String::new(), Timestamp::UNIX_EPOCH) };
                    published.push(node.answer(&all));
                }
                Step::ArrivePublished(index) if index < published.len() => {
                    drop(receiver.take_published(published[index].clone()));
                }
                Step::Arrive(_) | Step::Lose(_) | Step::ArrivePublished(_) => {}
            }
            if history.last().unwrap().content != node.content {
                node.revision += 1;
                history.push(node.clone());
            }
            let known = receiver.replica.received().first().map_or(0, |held| held.revision);
            prop_assert!(known >= held_revision, "an older state after a newer one");
            held_revision = known;
            let state = history.iter().find(|state| state.revision == known).unwrap();
            prop_assert_eq!(&receiver.content, &as_received(&state.content));
        }
        let request = receiver.request();
        prop_assert_eq!(receiver.take(node.answer(&request)), Ok(()));
        prop_assert_eq!(receiver.content, as_received(&node.content));
    }
}

fn synced() -> (Node, Receiver) {
    let (node, mut receiver) =
        (Node { content: BTreeMap::from([(1, 10), (2, 20)]), revision: 5 }, Receiver::default());
    let request = receiver.request();
    receiver.take(node.answer(&request)).unwrap();
    (node, receiver)
}

#[test]
fn a_reply_is_taken_once_and_only_for_its_request() {
    let (node, mut receiver) = synced();
    let reply = node.answer(&receiver.request());
    let other = PullReply { nonce: "another".into(), ..reply.clone() };
    assert_eq!(receiver.take(other), Err(Refusal::Unasked));
    assert_eq!(receiver.take(reply.clone()), Ok(()));
    assert_eq!(receiver.take(reply), Err(Refusal::Unasked));
}

#[test]
fn kinds_that_were_not_asked_for_are_refused_as_a_whole() {
    let (mut node, mut receiver) = synced();
    (node.content, node.revision) = (BTreeMap::from([(3, 30)]), 6);
    let mut reply = node.answer(&receiver.request());
    reply.kinds.insert(SyncKind::Tunnels, reply.kinds[&KIND].clone());
    assert_eq!(receiver.take(reply), Err(Refusal::NotAllowed(SyncKind::Tunnels)));
    assert_eq!(receiver.content.len(), 2);
}

#[test]
fn damaged_older_and_forked_states_are_refused() {
    let (node, mut receiver) = synced();
    let with = |revision: u64, value: u32| Node { content: BTreeMap::from([(1, value)]), revision };
    let mut damaged = with(6, 11).answer(&receiver.request());
    damaged.kinds.get_mut(&KIND).unwrap().hash = "00".into();
    assert_eq!(receiver.take(damaged), Err(Refusal::Damaged(KIND)));
    let mut other = with(6, 11).answer(&receiver.request());
    let offer = other.kinds.get_mut(&KIND).unwrap();
    let objects = json!({"devices": [], "users": []}).as_object().unwrap().clone();
    (offer.hash, offer.objects) = (hash_of(&objects), Some(objects));
    assert_eq!(receiver.take(other), Err(Refusal::Collections(KIND)));
    let older = with(4, 11).answer(&receiver.request());
    assert_eq!(receiver.take(older), Err(Refusal::Older { kind: KIND, sent: 4, held: 5 }));
    let forked = with(5, 11).answer(&receiver.request());
    let refusal = receiver.take(forked).unwrap_err();
    assert!(refusal.is_conflict(), "{refusal}");
    // A newer version of the daemon may write the same objects in another form.
    let mut upgraded = with(5, 11).answer(&receiver.request());
    upgraded.version = "2".into();
    assert_eq!(receiver.take(upgraded), Ok(()));
    assert_ne!(receiver.content, as_received(&node.content));
}

#[test]
fn a_deletion_leaves_a_tombstone_until_the_object_is_back() {
    let (mut node, mut receiver) = synced();
    let removed = node.content.remove(&2).unwrap();
    node.revision = 6;
    let request = receiver.request();
    receiver.take(node.answer(&request)).unwrap();
    assert_eq!(receiver.replica.received()[0].tombstones, BTreeMap::from([(id(2), 6)]));
    node.content.insert(2, removed);
    node.revision = 7;
    let request = receiver.request();
    receiver.take(node.answer(&request)).unwrap();
    assert!(receiver.replica.received()[0].tombstones.is_empty());
    assert_eq!(receiver.content.len(), 2);
}
