//! File in the MaxMind DB format, in memory.

use std::io;
use std::net::IpAddr;
use std::path::Path;

use gateway_core::countries::CountryCode;
use maxminddb::{PathElement, Reader};

/// Maximum size of the file, in bytes. Databases of countries have some 10 MB, those of cities 130 MB.
const MAX_BYTES: u64 = 64 << 20;

/// Fields in which databases have the code: those of MaxMind and DB-IP, of ip-location-db, and of IPinfo.
const FIELDS: [&[PathElement<'static>]; 3] = [
    &[PathElement::Key("country"), PathElement::Key("iso_code")],
    &[PathElement::Key("country_code")],
    &[PathElement::Key("country")],
];

/// Error: a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    #[error("the file cannot be read: {0}")]
    Read(#[from] io::Error),
    #[error("the file has more than {} MiB", MAX_BYTES >> 20)]
    TooLarge,
    #[error("the file is no MaxMind DB: {0}")]
    Format(#[from] maxminddb::MaxMindDbError),
    #[error("no network of the database has a country")]
    NoCountries,
}

/// Database that is open.
#[derive(Debug)]
pub(super) struct Database(Reader<Vec<u8>>);

impl Database {
    /// Reads a file. Blocks.
    pub(super) fn open(path: &Path) -> Result<Database, DatabaseError> {
        if std::fs::metadata(path)?.len() > MAX_BYTES {
            return Err(DatabaseError::TooLarge);
        }
        let database = Database(Reader::from_source(std::fs::read(path)?)?);
        let networks = database.0.networks(maxminddb::WithinOptions::default())?;
        let has_country = |found: maxminddb::LookupResult<'_, Vec<u8>>| country_of(&found).is_some();
        if !networks.take(1000).flatten().any(has_country) {
            return Err(DatabaseError::NoCountries);
        }
        Ok(database)
    }

    /// Returns the type that the database names.
    pub(super) fn kind(&self) -> &str {
        &self.0.metadata().database_type
    }

    pub(super) fn country(&self, address: IpAddr) -> Option<CountryCode> {
        let address = address.to_canonical();
        // Some databases have countries for these.
        if is_local(address) {
            return None;
        }
        country_of(&self.0.lookup(address).ok()?)
    }
}

/// Reports whether an address is of a private network, of a link, or of the host itself.
fn is_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => four.is_private() || four.is_link_local() || four.is_loopback(),
        IpAddr::V6(six) => six.is_unique_local() || six.is_unicast_link_local() || six.is_loopback(),
    }
}

fn country_of(found: &maxminddb::LookupResult<'_, Vec<u8>>) -> Option<CountryCode> {
    FIELDS.iter().find_map(|path| {
        let text: Option<&str> = found.decode_path(path).ok()?;
        text?.parse().ok()
    })
}
