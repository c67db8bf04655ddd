//! TLS to the server.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::files::{authorities, certificates, content, private_key};
use super::verify::{AnyServer, KnownServer};
use super::{ALPN, TlsError, provider};

/// How the proxy speaks TLS with the server, as libpq's `sslmode`, `sslrootcert`, `sslcert` and
/// `sslkey` have it. Over a Unix socket there is never any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerTls {
    /// `sslmode`.
    pub mode: ServerTlsMode,
    /// `sslrootcert`: PEM file of the authorities. The two modes that verify need it; with it
    /// `require` is `verify-ca`.
    pub ca: Option<PathBuf>,
    /// `sslcert`: PEM file of the certificate that the server is shown.
    pub certificate: Option<PathBuf>,
    /// `sslkey`: PEM file of its private key.
    pub key: Option<PathBuf>,
}

impl ServerTls {
    /// Reads the files, and forgets them.
    ///
    /// # Errors
    /// When one cannot be used, or one that is needed is missing.
    pub fn check(&self) -> Result<(), TlsError> {
        Connector::load(self).map(drop)
    }
}

/// What a connection to the server has to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerTlsMode {
    /// Without TLS.
    #[default]
    Disable,
    /// With TLS where the server has it, without where it fails.
    Prefer,
    /// With TLS, whoever answers.
    Require,
    /// With TLS, and a certificate of a known authority.
    VerifyCa,
    /// The same, in the name of the host that was connected to.
    VerifyFull,
}

/// Makes TLS connections to the server; its certificates can be read again.
pub(crate) struct Connector {
    options: ServerTls,
    current: RwLock<Arc<ClientConfig>>,
}

impl Connector {
    /// None where there is to be no TLS.
    pub(crate) fn load(options: &ServerTls) -> Result<Option<Connector>, TlsError> {
        if options.mode == ServerTlsMode::Disable {
            return Ok(None);
        }
        Ok(Some(Connector {
            current: RwLock::new(Arc::new(client_config(options)?)),
            options: options.clone(),
        }))
    }

    /// Reads the files again, for connections from now on.
    pub(crate) fn reload(&self) -> Result<(), TlsError> {
        *self.current.write() = Arc::new(client_config(&self.options)?);
        Ok(())
    }

    /// Whether a connection without TLS will do.
    pub(crate) fn is_optional(&self) -> bool {
        self.options.mode == ServerTlsMode::Prefer
    }

    /// Does the handshake, after the server has said that it is ready for it.
    pub(crate) async fn connect(
        &self,
        stream: TcpStream,
        host: &str,
    ) -> io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let config = Arc::clone(&self.current.read());
        TlsConnector::from(config).connect(name, stream).await
    }
}

fn client_config(options: &ServerTls) -> Result<ClientConfig, TlsError> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|_| TlsError::Settings("no TLS version is supported"))?
        .dangerous();
    let verifies = match options.mode {
        ServerTlsMode::Disable | ServerTlsMode::Prefer => false,
        ServerTlsMode::Require => options.ca.is_some(),
        ServerTlsMode::VerifyCa | ServerTlsMode::VerifyFull => true,
    };
    let builder = if verifies {
        let Some(path) = &options.ca else {
            let message = "verify-ca and verify-full need the certificates of an authority";
            return Err(TlsError::Settings(message));
        };
        let (roots, certificates) = authorities(path)?;
        builder.with_custom_certificate_verifier(Arc::new(KnownServer {
            roots,
            certificates,
            by_name: options.mode == ServerTlsMode::VerifyFull,
            provider: provider(),
        }))
    } else {
        builder.with_custom_certificate_verifier(Arc::new(AnyServer(provider())))
    };
    let mut config = match (&options.certificate, &options.key) {
        (None, None) => builder.with_no_client_auth(),
        (Some(certificate), Some(key)) => builder
            .with_client_auth_cert(certificates(certificate)?, private_key(key)?)
            .map_err(|error| content(certificate, error))?,
        _ => {
            let message = "a certificate needs its key, and a key its certificate";
            return Err(TlsError::Settings(message));
        }
    };
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(config)
}
