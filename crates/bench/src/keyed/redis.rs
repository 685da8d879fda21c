//! The same on Redis, with every write on disk before its answer.

use std::env;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{Dialect, Op, VALUE_BYTES};
use crate::error::BenchError;
use crate::process::Process;

/// See the module.
pub(crate) enum Redis {}

const START_TIMEOUT: Duration = Duration::from_secs(10);

impl Dialect for Redis {
    fn request(op: Op, key: &str, _id: u64, out: &mut Vec<u8>) {
        let value = "x".repeat(VALUE_BYTES);
        let words: &[&str] = match op {
            Op::Set => &["SET", key, &value],
            Op::Get => &["GET", key],
            Op::Count => &["INCR", key],
            Op::Push => &["RPUSH", key, &value],
            Op::Publish => &["PUBLISH", "all", &value],
        };
        write(words, out);
    }

    fn scan(bytes: &[u8]) -> Result<(usize, usize), BenchError> {
        let (mut taken, mut answers) = (0, 0);
        loop {
            let rest = bytes.get(taken..).unwrap_or_default();
            let Some(line) = rest.windows(2).position(|pair| pair == b"\r\n") else {
                return Ok((taken, answers));
            };
            let text = rest.get(..line).unwrap_or_default();
            let length = match text.split_first() {
                Some((b'+' | b':', _)) => line + 2,
                Some((b'$', digits)) => {
                    let digits = str::from_utf8(digits).unwrap_or_default();
                    let count: Result<usize, _> = digits.parse();
                    let count = count.map_err(|_no_number| unexpected(text))?;
                    line + 2 + count + 2
                }
                _ => return Err(unexpected(text)),
            };
            if rest.len() < length {
                return Ok((taken, answers));
            }
            taken += length;
            answers += 1;
        }
    }

    fn subscribe() -> Vec<u8> {
        let mut out = Vec::new();
        write(&["SUBSCRIBE", "all"], &mut out);
        out
    }
}

fn unexpected(line: &[u8]) -> BenchError {
    BenchError::Protocol(format!("Redis answered {}", line.escape_ascii()))
}

fn write(words: &[&str], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
}

/// The program, when it is installed.
pub(crate) fn find() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let mut found = env::split_paths(&path).map(|dir| dir.join("redis-server"));
    found.find(|it| it.is_file())
}

/// A running server. Killed, and its data removed, when dropped.
pub(crate) struct RedisServer {
    child: Child,
    dir: PathBuf,
    pub(crate) addr: SocketAddr,
}

impl RedisServer {
    /// Starts one on an empty directory, with `appendfsync always`.
    pub(crate) fn start(binary: &PathBuf, dir: PathBuf) -> Result<Self, BenchError> {
        fs::create_dir_all(&dir).map_err(BenchError::io("making the data directory"))?;
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let addr = free
            .and_then(|it| it.local_addr())
            .map_err(BenchError::io("finding a free port"))?;
        let child = Command::new(binary)
            .args(["--bind", "127.0.0.1", "--port"])
            .arg(addr.port().to_string())
            .args(["--appendonly", "yes", "--appendfsync", "always"])
            .args(["--save", "", "--dir"])
            .arg(&dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(BenchError::io("starting redis-server"))?;
        let server = Self { child, dir, addr };
        server.wait_until_ready()?;
        Ok(server)
    }

    /// Its process.
    pub(crate) fn process(&self) -> Process {
        Process::new(self.child.id())
    }

    fn wait_until_ready(&self) -> Result<(), BenchError> {
        let deadline = Instant::now() + START_TIMEOUT;
        while Instant::now() < deadline {
            if ping(self.addr).is_ok_and(|pong| pong) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(10));
        }
        Err(BenchError::Server(
            "redis-server does not answer".to_owned(),
        ))
    }
}

fn ping(addr: SocketAddr) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(addr)?;
    stream.write_all(b"PING\r\n")?;
    let mut answer = [0; 7];
    stream.read_exact(&mut answer)?;
    Ok(&answer == b"+PONG\r\n")
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // It may be gone already, and a directory that stays behind harms no measurement.
        drop(self.child.kill());
        drop(self.child.wait());
        drop(fs::remove_dir_all(&self.dir));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_answers_are_counted() {
        let bytes = b"+OK\r\n:12\r\n$3\r\na\r\n\r\n$5\r\nab";
        assert_eq!(Redis::scan(bytes).unwrap(), (19, 3));
        assert_eq!(Redis::scan(b"+O").unwrap(), (0, 0));
        for bad in [&b"-ERR no\r\n"[..], b"$-1\r\n", b"*1\r\n"] {
            Redis::scan(bad).unwrap_err();
        }
    }
}
