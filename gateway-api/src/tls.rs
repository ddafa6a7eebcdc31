//! TLS of the API. The mode of the factory follows the store. The certificate follows its files and the addresses of
//! the gateway. `/observer` shows the status of both.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use gateway_core::facts::Facts;
use gateway_ctl::clock::SystemClock;
use gateway_ctl::services::mesh::TlsServer;
use gateway_ctl::store::Store;
use gateway_ctl::tls::{CertificateNames, CertificateStatus, Certificates, Factory, Origin, PqMode, Server};
use gateway_ctl::world::Worlds;
use gateway_model::settings::bootstrap::Bootstrap;
use parking_lot::Mutex;
use tokio::signal::unix::Signal;
use tokio::task::JoinError;

/// Poll interval of the certificate files.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// TLS configuration of the gateway.
#[derive(Debug)]
pub struct Tls {
    pub factory: Arc<Factory>,
    /// Set once, if TLS is used for any listener.
    certificates: OnceLock<Arc<Certificates>>,
    /// Held from reading the mode to setting it.
    turn: Mutex<()>,
}

impl Default for Tls {
    fn default() -> Self {
        Self { factory: Factory::new(PqMode::Default), certificates: OnceLock::new(), turn: Mutex::new(()) }
    }
}

impl Tls {
    /// Applies the stored mode.
    pub fn adopt(&self, store: &Store) {
        let _turn = self.turn.lock();
        self.factory.set_mode(PqMode::of_setting(store.current().settings.get(PqMode::KEY)));
    }

    /// Returns a TLS server for the API with this certificate.
    pub fn serve(&self, certificates: Arc<Certificates>) -> Arc<Server> {
        let certificates = self.certificates.get_or_init(|| certificates);
        Arc::new(self.factory.server(certificates.clone(), &[b"h2", b"http/1.1"]))
    }

    /// Returns a TLS server for DNS queries with this certificate.
    pub fn serve_names(&self, certificates: Arc<Certificates>) -> Arc<Server> {
        let certificates = self.certificates.get_or_init(|| certificates);
        Arc::new(self.factory.server(certificates.clone(), gateway_dns::serve::tls::PROTOCOLS))
    }

    /// Returns a TLS server for the clients of the mesh, with the certificate that other listeners have, else the one of
    /// this configuration.
    async fn serve_mesh(&self, config: &Bootstrap, facts: &Facts) -> Result<Arc<Server>, JoinError> {
        let certificates = match self.certificates.get() {
            Some(certificates) => certificates.clone(),
            None => open(config, facts).await?,
        };
        let certificates = self.certificates.get_or_init(|| certificates);
        // Sessions of the mesh are upgrades of HTTP/1.1.
        Ok(Arc::new(self.factory.server(certificates.clone(), &[b"http/1.1"])))
    }

    /// Returns the status of the certificate, if there is one.
    pub fn certificate(&self) -> Option<CertificateStatus> {
        self.certificates.get().map(|certificates| certificates.status())
    }
}

/// Returns the function that opens the TLS server of the mesh.
pub fn mesh_server(tls: &Arc<Tls>, worlds: &Arc<Worlds>) -> TlsServer {
    let (tls, worlds) = (tls.clone(), worlds.clone());
    Arc::new(move || {
        let (tls, worlds) = (tls.clone(), worlds.clone());
        Box::pin(async move {
            let (config, facts) = (worlds.in_force().config, worlds.last().facts.clone());
            let server = tls.serve_mesh(&config, &facts).await;
            server.map_err(|error| format!("cannot prepare the TLS certificate: {error}"))
        })
    })
}

/// Applies the stored mode at each revision. The API, an import or a rollback may have changed it.
pub async fn follow_store(tls: Arc<Tls>, store: Arc<Store>) {
    let mut revisions = store.watch();
    loop {
        tls.adopt(&store);
        if revisions.changed().await.is_err() {
            return;
        }
    }
}

/// Returns the source of the certificate: the configured files, else a directory of the daemon.
pub fn origin(config: &Bootstrap) -> Origin {
    match (&config.tls.cert, &config.tls.key) {
        (Some(certificate), Some(key)) => {
            Origin::Files { certificate: certificate.clone(), key: key.clone() }
        }
        _ => Origin::SelfSigned { folder: config.state_dir.join("tls") },
    }
}

/// Returns the names and addresses of the API, the resolver and the coordinator of the mesh.
pub fn names(config: &Bootstrap, facts: &Facts) -> CertificateNames {
    let mesh = Some(&config.mesh.coordinator).filter(|mesh| mesh.enabled);
    let listen_addrs = [&config.listen.api_addr].into_iter().chain(&config.dns.tls_listen_addrs);
    let listen_addrs = listen_addrs.chain(mesh.map(|mesh| &mesh.listen_addr));
    let listen_addrs: Vec<IpAddr> = listen_addrs.map(SocketAddr::ip).collect();
    let listens =
        |address: &IpAddr| listen_addrs.iter().any(|place| place.is_unspecified() || place == address);
    let lans = config.all_lans();
    let lan = lans.iter().filter_map(|name| facts.addresses.get(name.as_str())).flatten();
    let reached = lan.map(|network| network.addr()).filter(listens);
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let names = CertificateNames::new(&host, reached.chain(listen_addrs.iter().copied()));
    mesh.map_or(names.clone(), |mesh| names.with_host(&mesh.host))
}

/// Reads or creates the certificate of this configuration.
pub async fn open(config: &Bootstrap, facts: &Facts) -> Result<Arc<Certificates>, JoinError> {
    let (origin, names) = (origin(config), names(config, facts));
    tokio::task::spawn_blocking(move || Certificates::open(origin, &names, SystemClock::shared())).await
}

/// Follows the certificate files and the addresses of the gateway. `known` returns them with the configuration in
/// force. SIGHUP triggers an immediate check and makes clients reload the CA certificates of the system.
pub async fn follow_files(
    known: impl Fn() -> (Arc<Bootstrap>, Arc<Facts>),
    tls: Arc<Tls>,
    mut hangup: Signal,
) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(POLL_INTERVAL) => {}
            _ = hangup.recv() => {
                tracing::info!("SIGHUP: looking for new certificates");
                tls.factory.renew();
            }
        }
        let Some(certificates) = tls.certificates.get().cloned() else { continue };
        let (config, facts) = known();
        let names = names(&config, &facts);
        if let Err(error) = tokio::task::spawn_blocking(move || certificates.refresh(&names)).await {
            tracing::error!(%error, "failed to check the TLS certificate");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_certificate_is_for_the_addresses_by_which_clients_come() {
        let mut facts = Facts::default();
        let networks = |list: &[&str]| list.iter().map(|text| text.parse().expect("a network")).collect();
        facts.addresses.insert("eth1".to_owned(), networks(&["192.168.7.1/24", "fd00::1/64"]));
        facts.addresses.insert("eth0".to_owned(), networks(&["198.51.100.9/24"]));
        let of = |listen: &str| {
            let mut config = Bootstrap::default();
            config.listen.api_addr = listen.parse().expect("an address");
            names(&config, &facts).addresses.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(of("0.0.0.0:1"), ["127.0.0.1", "192.168.7.1", "::1", "fd00::1"]);
        assert_eq!(of("192.168.7.1:1"), ["127.0.0.1", "192.168.7.1", "::1"]);
        assert_eq!(of("127.0.0.1:1"), ["127.0.0.1", "::1"]);
        let mut config = Bootstrap::default();
        config.dns.tls_listen_addrs = vec!["192.168.7.1:853".parse().expect("an address")];
        let names = names(&config, &facts).addresses;
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["127.0.0.1", "192.168.7.1", "::1"], "the resolver's too");
    }

    #[test]
    fn the_certificate_is_for_the_host_of_the_mesh_while_it_is_on() {
        let mut config = Bootstrap::default();
        config.mesh.coordinator.host = "gw.example.net".to_owned();
        let hosts = |config: &Bootstrap| names(config, &Facts::default()).more_hosts;
        assert!(hosts(&config).is_empty());
        config.mesh.coordinator.enabled = true;
        assert!(hosts(&config).contains("gw.example.net"));
        config.mesh.coordinator.host = "192.0.2.7".to_owned();
        let names = names(&config, &Facts::default());
        assert!(names.more_hosts.is_empty() && names.addresses.contains(&IpAddr::from([192, 0, 2, 7])));
    }
}
