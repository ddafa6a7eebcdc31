//! Trusted certificates in PEM, instead of the system's.

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use super::client::Client;

/// Returns the client that trusts these certificates in PEM; the same client if the text is empty.
pub fn with_authorities(client: &Client, pem: &str) -> Result<Client, String> {
    if pem.is_empty() {
        return Ok(client.clone());
    }
    let authorities: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match authorities {
        Ok(authorities) if !authorities.is_empty() => Ok(client.clone().with_authorities(authorities)),
        Ok(_) | Err(_) => Err("ca_certificate holds no certificate in PEM".to_owned()),
    }
}
