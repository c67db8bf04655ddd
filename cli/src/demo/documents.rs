//! Real documents for the demo, from a given place or from this machine.

use std::path::{Path, PathBuf};

use crate::error::CommandError;
use crate::load::document::Document;
use crate::load::sources::Sources;
use crate::output::say;

/// Where `scripts/documents.sh` puts what it fetches.
const FETCHED: &str = ".cache/documents";
/// What Debian and its relatives install.
const INSTALLED: [&str; 3] = [
    "/usr/share/common-licenses",
    "/usr/share/perl",
    "/usr/share/doc",
];
/// Most bytes that are held and loaded.
const MAX_BYTES: usize = 256 << 20;
/// Larger values stay in the row for now, and would only blur the picture.
const MAX_DOCUMENT_LEN: usize = 1 << 20;

/// Reads at most `rows` documents, spread evenly over what is there.
///
/// # Errors
/// `Load` when a file cannot be read, `Failed` when nothing is there.
pub(crate) fn collect(from: Option<&Path>, rows: usize) -> Result<Vec<Document>, CommandError> {
    let mut documents = Vec::new();
    let mut bytes = 0;
    for place in places(from) {
        for document in Sources::open(&place)? {
            // Files that only root may read are nobody's loss in a demo.
            let Ok(document) = document else { continue };
            let len = document.content.len();
            if len == 0 || len > MAX_DOCUMENT_LEN || bytes + len > MAX_BYTES {
                continue;
            }
            bytes += len;
            documents.push(document);
        }
    }
    if documents.is_empty() {
        let message = "no documents found: name a directory with --from".to_owned();
        return Err(CommandError::Failed(message));
    }
    Ok(spread(documents, rows))
}

fn places(from: Option<&Path>) -> Vec<PathBuf> {
    if let Some(from) = from {
        return vec![from.to_path_buf()];
    }
    let fetched = PathBuf::from(FETCHED);
    if fetched.is_dir() {
        return vec![fetched];
    }
    say(format!(
        "no {FETCHED} here (`make demo` or scripts/documents.sh fetches it): using files of this machine"
    ));
    let installed = INSTALLED.iter().map(PathBuf::from);
    installed.filter(|place| place.is_dir()).collect()
}

/// Every so-many-th, so that each kind keeps its share.
fn spread(documents: Vec<Document>, rows: usize) -> Vec<Document> {
    let total = documents.len();
    if total <= rows {
        return documents;
    }
    let kept = |index: usize| (index + 1) * rows / total != index * rows / total;
    let documents = documents.into_iter().enumerate();
    documents
        .filter(|(index, _)| kept(*index))
        .map(|(_, document)| document)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::document::Content;

    /// Exactly as many as asked for, from all over.
    #[test]
    fn spread_is_even() {
        let all: Vec<Document> = (0..1000)
            .map(|n| Document {
                path: n.to_string(),
                content: Content::Text(String::new()),
            })
            .collect();
        for rows in [1, 7, 333, 999, 1000, 5000] {
            let kept = spread(all.clone(), rows);
            assert_eq!(kept.len(), rows.min(1000));
            let first: usize = kept[0].path.parse().unwrap();
            assert!(first <= 1000 / rows.min(1000), "{rows}: {first}");
        }
    }

    /// Of what a directory holds, empty and oversized files are left out.
    #[test]
    fn collected_from_a_directory() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a.txt"), "a").unwrap();
        std::fs::write(directory.path().join("empty"), "").unwrap();
        std::fs::write(
            directory.path().join("large"),
            vec![b'x'; MAX_DOCUMENT_LEN + 1],
        )
        .unwrap();
        let found = collect(Some(directory.path()), 10).unwrap();
        assert_eq!(found.len(), 1);
        let nothing = tempfile::tempdir().unwrap();
        assert!(collect(Some(nothing.path()), 10).is_err());
    }
}
