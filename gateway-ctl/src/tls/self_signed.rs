//! Self-signed certificate of the daemon.
//!
//! It is valid for two years. The daemon replaces it a month before its expiry, or when it lacks a name or address of
//! the gateway. The key stays, so that clients that trust the key keep trusting it. Obsolete names are no reason for
//! a replacement: needless changes teach users to ignore warnings. Global IPv6 addresses are left out, because providers
//! change them.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use rcgen::string::Ia5String;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
    SanType, SerialNumber,
};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

pub(super) const CERTIFICATE: &str = "cert.pem";
pub(super) const KEY: &str = "key.pem";

const DAY: SignedDuration = SignedDuration::from_hours(24);
const LIFETIME: i32 = 730;
const RENEW_BEFORE: i32 = 30;

#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("cannot {action} {path}")]
    File {
        action: &'static str,
        path: String,
        #[source]
        source: io::Error,
    },
    #[error("cannot make a certificate")]
    Make(#[from] rcgen::Error),
    #[error("getrandom failed")]
    Random,
}

fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.display().to_string();
    move |source| Error::File { action, path, source }
}

/// Names and addresses of the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateNames {
    pub host: String,
    /// Other names under which clients reach the gateway.
    pub more_hosts: BTreeSet<String>,
    pub addresses: BTreeSet<IpAddr>,
}

impl CertificateNames {
    /// Collects the names of a host with these addresses, and adds `localhost`.
    ///
    /// The function skips link-local addresses, because no URL can contain them. It also skips global IPv6 addresses:
    /// they change with the provider, and the LAN can use a private address instead.
    pub fn new(host: &str, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        let mut names =
            Self { host: host.to_owned(), more_hosts: BTreeSet::new(), addresses: BTreeSet::new() };
        names.addresses.extend([Ipv4Addr::LOCALHOST.into(), IpAddr::from(Ipv6Addr::LOCALHOST)]);
        let lasting = |address: &IpAddr| match address {
            IpAddr::V4(v4) => !v4.is_unspecified() && !v4.is_link_local() && !v4.is_multicast(),
            IpAddr::V6(v6) => v6.is_unique_local(),
        };
        names.addresses.extend(addresses.into_iter().filter(lasting));
        names
    }

    /// Adds a name or an address.
    #[must_use]
    pub fn with_host(mut self, host: &str) -> Self {
        if let Ok(address) = host.parse() {
            self.addresses.insert(address);
        } else if gateway_model::validated::is_host_name(host) {
            self.more_hosts.insert(host.to_ascii_lowercase());
        }
        self
    }

    fn hosts(&self) -> BTreeSet<String> {
        let mut hosts = BTreeSet::from(["localhost".to_owned()]);
        hosts.extend(self.more_hosts.iter().cloned());
        if gateway_model::validated::is_host_name(&self.host) {
            hosts.insert(self.host.to_ascii_lowercase());
        }
        hosts
    }

    /// Reports whether the certificate covers all names.
    fn are_covered(&self, certificate: &X509Certificate<'_>) -> bool {
        let names = certificate.subject_alternative_name().ok().flatten();
        let names = names.map(|extension| extension.value.general_names.as_slice()).unwrap_or_default();
        let has_host = |host: &String| {
            names
                .iter()
                .any(|name| matches!(name, GeneralName::DNSName(dns) if dns.eq_ignore_ascii_case(host)))
        };
        let has_address = |address: &IpAddr| {
            let octets = match address {
                IpAddr::V4(v4) => v4.octets().to_vec(),
                IpAddr::V6(v6) => v6.octets().to_vec(),
            };
            names.iter().any(|name| matches!(name, GeneralName::IPAddress(bytes) if *bytes == octets))
        };
        self.hosts().iter().all(has_host) && self.addresses.iter().all(has_address)
    }
}

/// Ensures that the folder holds a key and a certificate for these names. Returns the reason if it made a new
/// certificate.
pub(super) fn ensure(
    folder: &Path,
    names: &CertificateNames,
    now: Timestamp,
) -> Result<Option<&'static str>, Error> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(file("make", folder))?;
    let (key, fresh) = ensure_key(&folder.join(KEY))?;
    let path = folder.join(CERTIFICATE);
    let present = match fs::read(&path) {
        Ok(pem) => Some(pem),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(file("read", &path)(error)),
    };
    let reason = match present {
        _ if fresh => "there was no key",
        None => "there was none",
        Some(pem) => match unsuitability(&pem, &key, names, now) {
            None => return Ok(None),
            Some(reason) => reason,
        },
    };
    let certificate = params(names, now)?.self_signed(&key)?;
    write(&path, 0o644, certificate.pem().as_bytes())?;
    Ok(Some(reason))
}

/// Returns the key, and `true` if it was just made.
fn ensure_key(path: &Path) -> Result<(KeyPair, bool), Error> {
    match fs::read_to_string(path) {
        Ok(pem) => match KeyPair::from_pem(&pem) {
            Ok(key) => {
                // The key may have been copied with unsafe permissions.
                fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(file("protect", path))?;
                return Ok((key, false));
            }
            Err(error) => {
                tracing::error!(%error, path = %path.display(), "TLS key is unreadable: generating a new one")
            }
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        // The file is not UTF-8.
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            tracing::error!(path = %path.display(), "TLS key is unreadable: generating a new one");
        }
        Err(error) => return Err(file("read", path)(error)),
    }
    let key = KeyPair::generate()?;
    write(path, 0o600, key.serialize_pem().as_bytes())?;
    Ok((key, true))
}

/// Returns the reason why this certificate is unsuitable.
fn unsuitability(
    pem: &[u8],
    key: &KeyPair,
    names: &CertificateNames,
    now: Timestamp,
) -> Option<&'static str> {
    let Ok((_, pem)) = x509_parser::pem::parse_x509_pem(pem) else { return Some("it was broken") };
    let Ok((_, certificate)) = X509Certificate::from_der(&pem.contents) else { return Some("it was broken") };
    use rcgen::PublicKeyData;
    if certificate.public_key().raw != key.subject_public_key_info() {
        return Some("it was of another key");
    }
    let end = certificate.validity().not_after.timestamp();
    if now.as_second() > end - i64::from(RENEW_BEFORE) * DAY.as_secs() {
        return Some("it was about to expire");
    }
    (!names.are_covered(&certificate)).then_some("it lacked a name or an address of the gateway")
}

fn params(names: &CertificateNames, now: Timestamp) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::default();
    let day = |offset: i32| {
        let date = (now.saturating_add(DAY * offset).unwrap_or(now)).to_zoned(TimeZone::UTC).date();
        rcgen::date_time_ymd(date.year().into(), date.month().unsigned_abs(), date.day().unsigned_abs())
    };
    // Tolerates clients with a slow clock.
    params.not_before = day(-1);
    params.not_after = day(LIFETIME);
    // Browsers reject a certificate whose serial number repeats under the same issuer.
    let mut serial = [0; 16];
    getrandom::fill(&mut serial).map_err(|_| Error::Random)?;
    serial[0] = serial[0] & 0x7f | 0x40;
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    let mut subject = DistinguishedName::new();
    subject
        .push(DnType::CommonName, format!("gatewayd on {}", names.host).chars().take(64).collect::<String>());
    params.distinguished_name = subject;
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    for host in names.hosts() {
        params.subject_alt_names.push(SanType::DnsName(Ia5String::try_from(host)?));
    }
    params.subject_alt_names.extend(names.addresses.iter().copied().map(SanType::IpAddress));
    Ok(params)
}

/// Writes a file atomically. Others can never read it before its mode is set.
fn write(path: &Path, mode: u32, bytes: &[u8]) -> Result<(), Error> {
    let draft = path.with_extension("new");
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(file("remove", &draft)(error)),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let mut open =
        options.write(true).create_new(true).mode(mode).open(&draft).map_err(file("write", &draft))?;
    open.write_all(bytes).and_then(|()| open.sync_all()).map_err(file("write", &draft))?;
    fs::rename(&draft, path).map_err(file("write", path))?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(file("write", folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(addresses: &[&str]) -> CertificateNames {
        CertificateNames::new("gw.home.arpa", addresses.iter().map(|text| text.parse().unwrap()))
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn it_is_made_once_and_kept_while_it_does() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("tls");
        let now = at("2026-11-21T12:00:00Z");
        assert_eq!(ensure(&folder, &names(&["192.168.7.1"]), now).unwrap(), Some("there was no key"));
        let read = |name: &str| fs::read(folder.join(name)).unwrap();
        let (certificate, key) = (read(CERTIFICATE), read(KEY));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join(KEY))), (0o700, 0o600));
        // Neither an obsolete address nor a reset clock is a reason for a new certificate.
        for (wanted, when) in [(names(&[]), now), (names(&["192.168.7.1"]), at("1970-01-01T00:00:10Z"))] {
            assert_eq!(ensure(&folder, &wanted, when).unwrap(), None);
        }
        assert_eq!((read(CERTIFICATE), read(KEY)), (certificate, key));
    }

    #[test]
    fn a_new_address_the_end_or_damage_make_a_new_one_with_the_same_key() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let now = at("2026-11-21T12:00:00Z");
        ensure(folder, &names(&[]), now).unwrap();
        let key = fs::read(folder.join(KEY)).unwrap();
        let again = |names: &CertificateNames, now: &str| ensure(folder, names, at(now)).unwrap();
        let more = names(&["192.168.7.1", "fd00::1"]);
        assert!(again(&more, "2026-11-21T12:00:00Z").unwrap().contains("lacked"));
        assert_eq!(again(&more, "2028-10-20T00:00:00Z"), None);
        assert!(again(&more, "2028-10-24T00:00:00Z").unwrap().contains("expire"));
        fs::write(folder.join(CERTIFICATE), "nonsense").unwrap();
        assert!(again(&more, "2028-10-24T00:00:00Z").unwrap().contains("broken"));
        assert_eq!(fs::read(folder.join(KEY)).unwrap(), key);
        fs::set_permissions(folder.join(KEY), Permissions::from_mode(0o644)).unwrap();
        assert_eq!(again(&more, "2028-10-24T00:00:00Z"), None);
        assert_eq!(fs::metadata(folder.join(KEY)).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_broken_key_is_replaced_together_with_its_certificate() {
        let folder = tempfile::tempdir().unwrap();
        let now = at("2026-11-21T12:00:00Z");
        ensure(folder.path(), &names(&[]), now).unwrap();
        for broken in [b"nonsense".as_slice(), b"\xff\xfe", b""] {
            fs::write(folder.path().join(KEY), broken).unwrap();
            assert!(ensure(folder.path(), &names(&[]), now).unwrap().is_some());
            assert_eq!(ensure(folder.path(), &names(&[]), now).unwrap(), None);
        }
    }

    #[test]
    fn addresses_that_do_not_last_are_left_out() {
        let names = names(&["0.0.0.0", "169.254.1.1", "2001:db8::1", "fe80::1", "fd00::1", "10.0.0.1"]);
        let kept: Vec<String> = names.addresses.iter().map(ToString::to_string).collect();
        assert_eq!(kept, ["10.0.0.1", "127.0.0.1", "::1", "fd00::1"]);
        let odd = CertificateNames::new("not a host name!", []);
        assert_eq!(odd.hosts().into_iter().collect::<Vec<_>>(), ["localhost"]);
    }
}
