//! Target: messages between gateways, and the changes that a reply makes.

use std::collections::BTreeSet;

use gateway_core::federation::message::{Acceptance, Envelope, Notice, PullReply, PullRequest, Signature};
use gateway_core::federation::replica::Replica;
use gateway_core::federation::rotation::{Succession, TrustedKeys};
use gateway_model::kinds::SyncKind;
use gateway_model::validated::PublicKey;
use jiff::Timestamp;

/// Reads the bytes as each message. What is read is written as it was; a reply changes only kinds that were asked for.
pub fn federation(data: &[u8]) {
    if let Ok(envelope) = Envelope::parse(data) {
        let written = serde_json::to_vec(&envelope).expect("string keys");
        assert_eq!(Envelope::parse(&written), Ok(envelope.clone()), "an envelope is written as it was");
        if let Some(signature) = Signature::parse(&envelope.signature) {
            assert_eq!(Signature::parse(&signature.to_text()), Some(signature));
        }
        payload(&envelope.payload);
    }
    if let Ok(acceptance) = Acceptance::parse(data) {
        assert!(!acceptance.signed_bytes(PublicKey([0; 32])).is_empty());
    }
    if let Ok(text) = std::str::from_utf8(data) {
        payload(text);
    }
}

fn payload(text: &str) {
    if let Ok(request) = PullRequest::parse(text) {
        assert!(request.kinds().count() <= request.have.len());
    }
    if let Ok(notice) = Notice::parse(text) {
        assert!(notice.nonce.len() <= 2048, "a limited nonce");
    }
    if let Ok(declared) = Succession::parse(text) {
        let trusted = TrustedKeys { current: declared.old, previous: None };
        if let Ok(Some(followed)) = trusted.follow(&declared, declared.at) {
            assert_eq!(followed.current, declared.new);
            let is_over = declared.new == declared.old || !followed.accepts(declared.old, declared.until);
            assert!(is_over, "the old key counts for no longer than the overlap");
        }
    }
    let Ok(mut reply) = PullReply::parse(text) else { return };
    let asked = [SyncKind::Devices, SyncKind::Dns];
    let mut replica = Replica::default();
    let request = replica.request(&asked, PublicKey([1; 32]), "nonce".to_owned(), Timestamp::UNIX_EPOCH);
    reply.nonce = request.nonce;
    let Ok(changes) = replica.reply(reply, |_| BTreeSet::new(), Timestamp::UNIX_EPOCH) else { return };
    for change in changes {
        let kind = change.received.kind;
        assert!(asked.contains(&kind), "{kind} was not asked for");
        assert!(change.objects.keys().all(|name| kind.collections().contains(&name.as_str())), "{kind}");
        assert!(change.deleted.is_empty(), "nothing was held");
    }
}
