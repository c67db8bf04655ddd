//! Documents of a directory tree, a JSON file or a JSON Lines file, in a fixed order.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;

use super::LoadError;
use super::document::{Content, Document, json_problem};

/// The longest line of a JSON Lines file, and the largest file, that is read: above
/// it, Postgres could not hold the value either.
const MAX_DOCUMENT_LEN: u64 = 256 << 20;

/// Documents, one after the other.
pub(crate) struct Sources {
    kind: Kind,
    /// Bytes of all files, for a progress bar.
    total_bytes: u64,
}

enum Kind {
    Tree {
        root: PathBuf,
        files: std::vec::IntoIter<PathBuf>,
    },
    Lines {
        path: PathBuf,
        reader: BufReader<File>,
        line: u64,
    },
    Elements(std::vec::IntoIter<Document>),
}

impl Sources {
    /// Opens a source by what it is: a directory, or a file named `.jsonl`, `.ndjson`
    /// or `.json`. A `.json` file that holds an array gives one document an element.
    ///
    /// # Errors
    /// `Read`, `UnknownSource`, or `JsonFile`.
    pub(crate) fn open(path: &Path) -> Result<Sources, LoadError> {
        let metadata = fs::metadata(path).map_err(read_error(path))?;
        if metadata.is_dir() {
            return Sources::open_tree(path);
        }
        let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
        let kind = match extension.to_str() {
            Some("jsonl" | "ndjson") => Kind::Lines {
                path: path.to_path_buf(),
                reader: BufReader::new(File::open(path).map_err(read_error(path))?),
                line: 0,
            },
            Some("json") => Kind::Elements(elements(path)?.into_iter()),
            _ => {
                return Err(LoadError::UnknownSource {
                    path: path.to_path_buf(),
                });
            }
        };
        Ok(Sources {
            kind,
            total_bytes: metadata.len(),
        })
    }

    fn open_tree(root: &Path) -> Result<Sources, LoadError> {
        let mut files = Vec::new();
        let mut total_bytes = 0;
        walk(root, &mut files, &mut total_bytes)?;
        Ok(Sources {
            kind: Kind::Tree {
                root: root.to_path_buf(),
                files: files.into_iter(),
            },
            total_bytes,
        })
    }

    /// Bytes of all files together.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.total_bytes
    }
}

impl Iterator for Sources {
    type Item = Result<Document, LoadError>;

    fn next(&mut self) -> Option<Result<Document, LoadError>> {
        match &mut self.kind {
            Kind::Tree { root, files } => files.next().map(|file| file_document(root, &file)),
            Kind::Lines { path, reader, line } => next_line(path, reader, line),
            Kind::Elements(documents) => documents.next().map(Ok),
        }
    }
}

/// Collects regular files, sorted by name at each level. Symbolic links are not followed.
fn walk(directory: &Path, files: &mut Vec<PathBuf>, bytes: &mut u64) -> Result<(), LoadError> {
    let mut entries = fs::read_dir(directory)
        .and_then(|entries| entries.collect::<io::Result<Vec<_>>>())
        .map_err(read_error(directory))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let metadata = entry.metadata().map_err(read_error(&path))?;
        if metadata.is_dir() {
            walk(&path, files, bytes)?;
        } else if metadata.is_file() {
            *bytes += metadata.len();
            files.push(path);
        }
    }
    Ok(())
}

fn file_document(root: &Path, file: &Path) -> Result<Document, LoadError> {
    let bytes = read_bounded(file)?;
    let json = file
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let relative = file.strip_prefix(root).unwrap_or(file);
    Ok(Document {
        path: relative.to_string_lossy().into_owned(),
        content: Content::of_file(bytes, json),
    })
}

fn next_line(
    path: &Path,
    reader: &mut BufReader<File>,
    line: &mut u64,
) -> Option<Result<Document, LoadError>> {
    loop {
        let mut bytes = Vec::new();
        let limit = MAX_DOCUMENT_LEN + 1;
        match reader.by_ref().take(limit).read_until(b'\n', &mut bytes) {
            Ok(0) => return None,
            Ok(_) => *line += 1,
            Err(error) => return Some(Err(read_error(path)(error))),
        }
        let problem = |problem: String| {
            Some(Err(LoadError::JsonLine {
                path: path.to_path_buf(),
                line: *line,
                problem,
            }))
        };
        if bytes.len() as u64 > MAX_DOCUMENT_LEN {
            return problem(format!("longer than {MAX_DOCUMENT_LEN} bytes"));
        }
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => return problem(error.to_string()),
        };
        let text = text.trim();
        if text.is_empty() {
            continue;
        }
        if let Some(found) = json_problem(text) {
            return problem(found);
        }
        return Some(Ok(Document {
            path: format!("{}:{line}", file_name(path)),
            content: Content::Json(text.to_owned()),
        }));
    }
}

fn elements(path: &Path) -> Result<Vec<Document>, LoadError> {
    let wrong = |problem: String| LoadError::JsonFile {
        path: path.to_path_buf(),
        problem,
    };
    let text = String::from_utf8(read_bounded(path)?).map_err(|error| wrong(error.to_string()))?;
    if let Some(problem) = json_problem(&text) {
        return Err(wrong(problem));
    }
    let name = file_name(path);
    if !text.trim_start().starts_with('[') {
        let content = Content::Json(text);
        return Ok(vec![Document {
            path: name,
            content,
        }]);
    }
    let elements: Vec<&RawValue> =
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let documents = elements
        .iter()
        .enumerate()
        .map(|(index, element)| Document {
            path: format!("{name}:{}", index + 1),
            content: Content::Json(element.get().to_owned()),
        });
    Ok(documents.collect())
}

fn read_bounded(path: &Path) -> Result<Vec<u8>, LoadError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_DOCUMENT_LEN + 1).read_to_end(&mut bytes))
        .and_then(|len| {
            if len as u64 > MAX_DOCUMENT_LEN {
                return Err(io::Error::other(format!(
                    "larger than {MAX_DOCUMENT_LEN} bytes"
                )));
            }
            Ok(())
        })
        .map_err(read_error(path))?;
    Ok(bytes)
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

fn read_error(path: &Path) -> impl FnOnce(io::Error) -> LoadError {
    let path = path.to_path_buf();
    move |source| LoadError::Read { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(name: &str, bytes: &[u8]) -> Result<Vec<Document>, LoadError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        fs::write(&path, bytes).unwrap();
        Sources::open(&path)?.collect()
    }

    fn json(path: &str, text: &str) -> Document {
        Document {
            path: path.to_owned(),
            content: Content::Json(text.to_owned()),
        }
    }

    /// A tree gives its regular files in order of their names, links left out.
    #[test]
    fn tree() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir(root.join("b")).unwrap();
        fs::write(root.join("b/one.json"), "[1]").unwrap();
        fs::write(root.join("c.bin"), b"\xff").unwrap();
        fs::write(root.join("a.txt"), "hello").unwrap();
        std::os::unix::fs::symlink(root, root.join("loop")).unwrap();
        let sources = Sources::open(root).unwrap();
        assert_eq!(sources.total_bytes(), 3 + 1 + 5);
        let found: Vec<(String, &str)> = sources
            .map(|document| document.unwrap())
            .map(|document| (document.path, document.content.kind()))
            .collect();
        let expected = [
            ("a.txt", "text"),
            ("b/one.json", "json"),
            ("c.bin", "binary"),
        ];
        let expected = expected.map(|(path, kind)| (path.to_owned(), kind));
        assert_eq!(found, expected);
    }

    /// Lines are numbered from 1, blank ones passed over, the last may lack its end.
    #[test]
    fn lines() {
        let found = open("x.jsonl", b"{\"a\": 1}\n\n  [2] \r\n3").unwrap();
        let expected = [
            json("x.jsonl:1", "{\"a\": 1}"),
            json("x.jsonl:3", "[2]"),
            json("x.jsonl:4", "3"),
        ];
        assert_eq!(found, expected);
    }

    /// A line that jsonb would not take is reported with its number.
    #[test]
    fn bad_line_is_numbered() {
        for bad in [&b"{\"a\":}"[..], b"\"\\u0000\"", b"\"\xff\"", b"{} {}"] {
            let bytes = [b"1\n\n", bad, b"\n4\n"].concat();
            let error = open("x.jsonl", &bytes).unwrap_err();
            assert!(error.to_string().contains("x.jsonl: line 3: "), "{error}");
        }
    }

    /// An array gives its elements as they stand, anything else is one document.
    #[test]
    fn json_file() {
        let found = open("x.json", b" [{\"b\": 1, \"a\":  2.50}, null]\n").unwrap();
        let expected = [
            json("x.json:1", "{\"b\": 1, \"a\":  2.50}"),
            json("x.json:2", "null"),
        ];
        assert_eq!(found, expected);
        assert_eq!(open("x.json", b"{}").unwrap(), [json("x.json", "{}")]);
        assert!(
            open("x.json", b"[1")
                .unwrap_err()
                .to_string()
                .contains("line 1")
        );
        assert!(matches!(
            open("x.csv", b"1").unwrap_err(),
            LoadError::UnknownSource { .. }
        ));
    }
}
