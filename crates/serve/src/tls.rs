//! TLS with a certificate that is read again when its file changes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// The certificate in force.
#[derive(Debug)]
pub struct Certificate {
    chain: PathBuf,
    key: PathBuf,
    held: RwLock<(Arc<CertifiedKey>, Option<SystemTime>)>,
}

impl Certificate {
    /// Reads chain and key.
    ///
    /// # Errors
    /// In words, when they cannot be read or do not belong together.
    pub fn open(chain: &Path, key: &Path) -> Result<Arc<Self>, String> {
        let held = RwLock::new((read(chain, key)?, changed(chain, key)));
        Ok(Arc::new(Self { chain: chain.to_owned(), key: key.to_owned(), held }))
    }

    /// Reads them again if a file changed. Where they cannot be read the old ones stay.
    ///
    /// # Errors
    /// As [`Certificate::open`].
    pub fn reload(&self) -> Result<bool, String> {
        let now = changed(&self.chain, &self.key);
        if now == self.held.read().unwrap_or_else(PoisonError::into_inner).1 {
            return Ok(false);
        }
        let outcome = read(&self.chain, &self.key);
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        // What is wrong is told once, not at each look.
        held.1 = now;
        held.0 = outcome?;
        Ok(true)
    }

    /// The server's settings.
    ///
    /// # Errors
    /// As rustls.
    pub fn settings(self: &Arc<Self>) -> Result<rustls::ServerConfig, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
        let mut settings = builder.with_no_client_auth().with_cert_resolver(self.clone());
        settings.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(settings)
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.held.read().unwrap_or_else(PoisonError::into_inner).0.clone())
    }
}

#[expect(clippy::disallowed_methods, reason = "on a thread for looking at files, and at the start")]
fn changed(chain: &Path, key: &Path) -> Option<SystemTime> {
    [chain, key].into_iter().filter_map(|path| std::fs::metadata(path).and_then(|found| found.modified()).ok()).max()
}

fn read(chain: &Path, key: &Path) -> Result<Arc<CertifiedKey>, String> {
    let read = |path: &Path| crate::files::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let certificates = CertificateDer::pem_slice_iter(&read(chain)?).collect::<Result<Vec<_>, _>>();
    let certificates = certificates.map_err(|error| format!("{}: {error}", chain.display()))?;
    if certificates.is_empty() {
        return Err(format!("{} holds no certificate", chain.display()));
    }
    let private = PrivateKeyDer::from_pem_slice(&read(key)?);
    let private = private.map_err(|error| format!("{}: {error}", key.display()))?;
    let signing = rustls::crypto::ring::sign::any_supported_type(&private);
    let signing = signing.map_err(|error| format!("{}: {error}", key.display()))?;
    let certified = CertifiedKey::new(certificates, signing);
    match certified.keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => Ok(Arc::new(certified)),
        Err(_) => Err(format!("{} is not the key of {}", key.display(), chain.display())),
    }
}
