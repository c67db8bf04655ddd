//! Certificates and keys from PEM files.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::TlsError;

/// No file of certificates is larger: those of all public authorities have about 200 KiB.
const MOST_BYTES: u64 = 4 << 20;

/// The certificates of a file, at least one.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read(path, &open(path)?)?;
    let certificates = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
    match certificates {
        Ok(certificates) if certificates.is_empty() => Err(content(path, "holds no certificate")),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(content(path, error)),
    }
}

/// The private key of a file, under Postgres' own rules for who may have access to it.
pub(super) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let file = open(path)?;
    let metadata = file.metadata().map_err(failed(path))?;
    let ours = rustix::process::geteuid().as_raw();
    let exposed = match metadata.uid() {
        owner if owner == ours && owner != 0 => 0o077,
        0 => 0o037,
        _ => return Err(content(path, "belongs neither to this user nor to root")),
    };
    if metadata.mode() & exposed != 0 {
        return Err(TlsError::KeyExposed {
            path: path.to_path_buf(),
        });
    }
    PrivateKeyDer::from_pem_slice(&read(path, &file)?).map_err(|error| match error {
        pem::Error::NoItemsFound => content(path, "holds no private key that is not encrypted"),
        error => content(path, error),
    })
}

/// The authorities of a file, and the same certificates one by one.
pub(super) fn authorities(
    path: &Path,
) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), TlsError> {
    let certificates = certificates(path)?;
    let mut roots = RootCertStore::empty();
    for certificate in &certificates {
        roots
            .add(certificate.clone())
            .map_err(|error| content(path, error))?;
    }
    Ok((roots, certificates))
}

/// An error about what is in a file.
pub(super) fn content(path: &Path, reason: impl ToString) -> TlsError {
    TlsError::Content {
        path: path.to_path_buf(),
        reason: reason.to_string(),
    }
}

fn open(path: &Path) -> Result<File, TlsError> {
    let file = File::open(path).map_err(failed(path))?;
    if file.metadata().map_err(failed(path))?.is_file() {
        Ok(file)
    } else {
        Err(content(path, "is not a regular file"))
    }
}

fn read(path: &Path, file: &File) -> Result<Vec<u8>, TlsError> {
    let mut text = Vec::new();
    file.take(MOST_BYTES)
        .read_to_end(&mut text)
        .map_err(failed(path))?;
    Ok(text)
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> TlsError {
    let path = path.to_path_buf();
    move |source| TlsError::File { path, source }
}
