//! TLS from clients.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::files::{authorities, certificates, content, private_key};
use super::{ALPN, TlsError, provider};

/// How the proxy speaks TLS with clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenTls {
    /// Whether clients have to.
    pub mode: ListenTlsMode,
    /// PEM file of the certificate and what leads from it to an authority.
    pub certificate: PathBuf,
    /// PEM file of its private key.
    pub key: PathBuf,
    /// PEM file of the authorities of client certificates. With it a session needs one.
    pub client_ca: Option<PathBuf>,
}

impl ListenTls {
    /// Reads the files, and forgets them.
    ///
    /// # Errors
    /// When one cannot be used.
    pub fn check(&self) -> Result<(), TlsError> {
        Identity::load(self).map(drop)
    }
}

/// Whether a session has to be encrypted. One over a Unix socket never is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenTlsMode {
    /// As the client wishes.
    Allow,
    /// A session over TCP without TLS is refused with 28000.
    Require,
}

/// Takes TLS connections; its certificates can be read again.
pub(crate) struct Acceptor {
    options: ListenTls,
    current: RwLock<Identity>,
}

/// What a client that connects now is shown.
#[derive(Clone)]
struct Identity {
    config: Arc<ServerConfig>,
    certificate: CertificateDer<'static>,
}

/// A connection after the handshake.
pub(crate) struct Accepted {
    pub(crate) stream: TlsStream<TcpStream>,
    /// The certificate that the client was shown.
    pub(crate) shown: CertificateDer<'static>,
    /// The client has shown a certificate of its own, or needs none.
    pub(crate) trusted: bool,
}

impl Acceptor {
    pub(crate) fn load(options: &ListenTls) -> Result<Acceptor, TlsError> {
        Ok(Acceptor {
            current: RwLock::new(Identity::load(options)?),
            options: options.clone(),
        })
    }

    /// Reads the files again, for connections from now on.
    pub(crate) fn reload(&self) -> Result<(), TlsError> {
        *self.current.write() = Identity::load(&self.options)?;
        Ok(())
    }

    pub(crate) fn is_required(&self) -> bool {
        self.options.mode == ListenTlsMode::Require
    }

    /// Does the handshake. `direct` is without an SSLRequest before it, where the client has to name
    /// the protocol, so that nobody can be led to speak another one with a server of this.
    pub(crate) async fn accept(&self, stream: TcpStream, direct: bool) -> io::Result<Accepted> {
        let Identity {
            config,
            certificate,
        } = self.current.read().clone();
        let stream = TlsAcceptor::from(config).accept(stream).await?;
        let (_, session) = stream.get_ref();
        if direct && session.alpn_protocol() != Some(ALPN) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "direct TLS connection without ALPN",
            ));
        }
        let trusted = self.options.client_ca.is_none() || session.peer_certificates().is_some();
        Ok(Accepted {
            stream,
            shown: certificate,
            trusted,
        })
    }
}

impl Identity {
    fn load(options: &ListenTls) -> Result<Identity, TlsError> {
        let chain = certificates(&options.certificate)?;
        let key = private_key(&options.key)?;
        let certificate = chain[0].clone();
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| content(&options.certificate, error))?;
        let builder = match &options.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let (roots, _) = authorities(path)?;
                // One without a certificate is refused after its start-up packet, as Postgres does it:
                // cancel requests need none, and an error message says more than an alert.
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
                        .allow_unauthenticated()
                        .build()
                        .map_err(|error| content(path, error))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|error| content(&options.certificate, error))?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        // Sessions are long: like Postgres, none is resumed.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Identity {
            config: Arc::new(config),
            certificate,
        })
    }
}
