//! Key exchange groups of a named client. Each records the negotiated group and refuses what the current mode
//! forbids, even in a configuration from an earlier mode.

use std::sync::Arc;

use parking_lot::Mutex;
use rustls::crypto::{ActiveKeyExchange, CompletedKeyExchange, SharedSecret, SupportedKxGroup};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, ProtocolVersion};
use tokio::sync::watch;

use super::error::FORBIDDEN;
use super::mode::PqMode;
use super::posture::Posture;

/// Record of a named client's key exchanges.
#[derive(Debug)]
pub(super) struct RecordingKxGroup {
    pub name: &'static str,
    posture: watch::Receiver<Posture>,
    last: Mutex<Option<NamedGroup>>,
}

impl RecordingKxGroup {
    pub(super) fn new(name: &'static str, posture: watch::Receiver<Posture>) -> Arc<Self> {
        Arc::new(Self { name, posture, last: Mutex::default() })
    }

    /// Returns the key exchange group last negotiated with a peer.
    pub(super) fn last(&self) -> Option<NamedGroup> {
        *self.last.lock()
    }

    fn agree(&self, group: NamedGroup) -> Result<(), Error> {
        if !self.posture.borrow().mode.allows(group) {
            return Err(Error::General(FORBIDDEN.to_owned()));
        }
        *self.last.lock() = Some(group);
        Ok(())
    }
}

/// Returns the groups of all modes, for one client. The library requires a static lifetime, so each name leaks a few
/// dozen bytes once; the factory keeps one list per name.
pub(super) fn recording_groups(recorder: &Arc<RecordingKxGroup>) -> Vec<&'static dyn SupportedKxGroup> {
    let mut groups = PqMode::Preferred.groups();
    for other in PqMode::Default.groups().into_iter().chain(PqMode::Required.groups()) {
        if !groups.iter().any(|known| known.name() == other.name()) {
            groups.push(other);
        }
    }
    let leak = |inner| -> &'static dyn SupportedKxGroup {
        Box::leak(Box::new(Group { inner, recorder: recorder.clone() }))
    };
    groups.into_iter().map(leak).collect()
}

#[derive(Debug)]
struct Group {
    inner: &'static dyn SupportedKxGroup,
    recorder: Arc<RecordingKxGroup>,
}

impl SupportedKxGroup for Group {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        Ok(Box::new(Exchange { inner: self.inner.start()?, recorder: self.recorder.clone() }))
    }

    fn start_and_complete(&self, peer: &[u8]) -> Result<CompletedKeyExchange, Error> {
        let completed = self.inner.start_and_complete(peer)?;
        self.recorder.agree(completed.group)?;
        Ok(completed)
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        self.inner.ffdhe_group()
    }

    fn name(&self) -> NamedGroup {
        self.inner.name()
    }

    fn fips(&self) -> bool {
        self.inner.fips()
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        self.inner.usable_for_version(version)
    }
}

struct Exchange {
    inner: Box<dyn ActiveKeyExchange>,
    recorder: Arc<RecordingKxGroup>,
}

impl ActiveKeyExchange for Exchange {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let Exchange { inner, recorder } = *self;
        let group = inner.group();
        let secret = inner.complete(peer)?;
        recorder.agree(group)?;
        Ok(secret)
    }

    fn complete_for_tls_version(
        self: Box<Self>,
        peer: &[u8],
        version: &rustls::SupportedProtocolVersion,
    ) -> Result<SharedSecret, Error> {
        let Exchange { inner, recorder } = *self;
        let group = inner.group();
        let secret = inner.complete_for_tls_version(peer, version)?;
        recorder.agree(group)?;
        Ok(secret)
    }

    fn hybrid_component(&self) -> Option<(NamedGroup, &[u8])> {
        self.inner.hybrid_component()
    }

    fn complete_hybrid_component(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let Exchange { inner, recorder } = *self;
        let component = inner.hybrid_component().map(|(group, _)| group);
        let secret = inner.complete_hybrid_component(peer)?;
        // Only the classic part was negotiated.
        component.map_or(Ok(()), |group| recorder.agree(group))?;
        Ok(secret)
    }

    fn pub_key(&self) -> &[u8] {
        self.inner.pub_key()
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        self.inner.ffdhe_group()
    }

    fn group(&self) -> NamedGroup {
        self.inner.group()
    }
}
