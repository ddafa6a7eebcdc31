//! Target: what a hub sends, from its bytes to the changes that a publication makes.

use std::collections::BTreeSet;

use gateway_core::federation::bus::inbox::{Arrival, Inbox};
use gateway_core::federation::bus::publication::Publication;
use gateway_core::federation::bus::wire::{Incoming, parse};
use gateway_core::federation::message::Envelope;
use gateway_core::federation::replica::Replica;
use gateway_model::kinds::SyncKind;
use jiff::Timestamp;

const MAX_MESSAGE: usize = 1 << 16;
const FOLLOWED: [SyncKind; 2] = [SyncKind::Devices, SyncKind::Dns];

/// Reads the bytes as a server's. An operation is the same in pieces, and a publication changes only kinds that are followed.
pub fn federation_bus(data: &[u8]) {
    let mut inbox = Inbox::default();
    let mut rest = data;
    while let Ok(Some((incoming, length))) = parse(rest, MAX_MESSAGE) {
        assert!((2..=rest.len()).contains(&length), "an operation ends within the bytes");
        assert_eq!(parse(&rest[..length - 1], MAX_MESSAGE), Ok(None), "a piece of an operation is none");
        if let Incoming::Message(message) = incoming {
            publication(&mut inbox, &message.payload);
        }
        rest = &rest[length..];
    }
    publication(&mut inbox, data);
}

fn publication(inbox: &mut Inbox, payload: &[u8]) {
    let text = Envelope::parse(payload).map(|envelope| envelope.payload);
    let text = text.unwrap_or_else(|_| String::from_utf8_lossy(payload).into_owned());
    let Ok(publication) = Publication::parse(&text) else { return };
    inbox.take(publication);
    let Arrival::Complete { kinds, version } = inbox.arrival(&FOLLOWED, &[]) else { return };
    assert!(kinds.keys().all(|kind| FOLLOWED.contains(kind)), "a kind that is not followed");
    let taken = Replica::default().publication(kinds, &version, |_| BTreeSet::new(), Timestamp::UNIX_EPOCH);
    for change in taken.into_iter().flatten() {
        let kind = change.received.kind;
        assert!(change.objects.keys().all(|name| kind.collections().contains(&name.as_str())), "{kind}");
        assert!(change.deleted.is_empty(), "nothing was held");
    }
}
