//! A private server, and Toastrack in front of it as the built command runs it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use crate::common::toastrack;

const READY: Duration = Duration::from_secs(60);

/// A running `toastrack serve`; killed when dropped.
pub(crate) struct Serving {
    pub(crate) child: Child,
    /// Host and port of the proxy.
    pub(crate) proxy: String,
    /// Host and port of the admin API.
    pub(crate) admin: String,
    log: Arc<Mutex<Vec<String>>>,
}

impl Serving {
    /// Starts it and waits for the line that says it is ready.
    ///
    /// # Panics
    /// When it ends instead, with what it said.
    pub(crate) fn start(config: &Path) -> Serving {
        let mut child = toastrack()
            .args(["serve", "--config"])
            .arg(config)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let stderr = child.stderr.take().expect("it is piped");
        let (sender, lines) = mpsc::channel();
        let log = Arc::<Mutex<Vec<String>>>::default();
        let kept = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                kept.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(line.clone());
                let _ = sender.send(line);
            }
        });
        let mut said = String::new();
        let ready = loop {
            match lines.recv_timeout(READY) {
                Ok(line) if line.contains("toastrack ready on ") => break line,
                Ok(line) => said.push_str(&line),
                Err(_) => panic!("not ready: {said}"),
            }
        };
        let field = |name: &str| {
            let (_, rest) = ready.split_once(name).expect("the line holds it");
            rest.split_whitespace()
                .next()
                .unwrap_or_default()
                .to_owned()
        };
        let (proxy, admin) = (field(" proxy="), field(" admin="));
        Serving {
            child,
            proxy,
            admin,
            log,
        }
    }

    /// The lines it has logged so far.
    pub(crate) fn log(&self) -> Vec<String> {
        let log = self.log.lock();
        log.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends SIGTERM and waits for the end.
    ///
    /// # Panics
    /// When a thread of it did.
    pub(crate) fn stop(mut self) -> ExitStatus {
        signal(&self.child, "TERM");
        let status = wait(&mut self.child);
        let log = self.log();
        assert!(!log.iter().any(|line| line.contains("panicked")), "{log:?}");
        status
    }

    /// A GET request; the answer's status line and body.
    pub(crate) fn get(&self, path: &str, token: Option<&str>) -> (String, String) {
        let mut stream = TcpStream::connect(&self.admin).expect("admin listens");
        let authorization = token
            .map(|token| format!("Authorization: Bearer {token}\r\n"))
            .unwrap_or_default();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {}\r\n{authorization}Connection: close\r\n\r\n",
            self.admin
        )
        .expect("the request is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer comes");
        let (head, body) = answer.split_once("\r\n\r\n").expect("head and body");
        let status = head.lines().next().unwrap_or_default().to_owned();
        (status, body.to_owned())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal by name.
pub(crate) fn signal(child: &Child, name: &str) {
    let status = Command::new("kill")
        .args([format!("-{name}"), child.id().to_string()])
        .status();
    assert!(status.is_ok_and(|status| status.success()));
}

/// Waits for the end, at most a minute.
pub(crate) fn wait(child: &mut Child) -> ExitStatus {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            return status;
        }
        assert!(started.elapsed() < READY, "it does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Writes a configuration on free ports; more sections may follow.
pub(crate) fn write_config(directory: &Path, server: &str, more: &str) -> PathBuf {
    let file = directory.join("toastrack.toml");
    let text = format!(
        "[listen]\naddress = \"127.0.0.1:0\"\n\
         [server]\naddress = \"{server}\"\n\
         [store]\ndirectory = \"{dir}/store\"\nsegment_size = \"4 MiB\"\n\
         [resolver]\nlisten = \"127.0.0.1:0\"\n\
         [admin]\naddress = \"127.0.0.1:0\"\n{more}",
        dir = directory.display()
    );
    std::fs::write(&file, text).expect("the file is written");
    file
}
