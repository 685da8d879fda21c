//! Where messages to send come from, in batches.

use std::{
    fs,
    io::{self, BufRead, BufReader, IsTerminal, Read},
    path::PathBuf,
    thread,
    vec::IntoIter,
};

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::{failure::Failure, note::note};

/// A batch is closed at so many messages or bytes.
const BATCH_MESSAGES: usize = 500;
const BATCH_BYTES: usize = 256 << 10;
/// Batches read ahead of the connection.
const BATCHES_AHEAD: usize = 4;
/// The longest line that is read. Brokers take less by default.
const LINE_BYTES_MAX: u64 = 256 << 20;

/// Payloads to send together.
pub(super) type Batch = Vec<Bytes>;

/// See the module.
#[derive(Debug)]
pub(super) enum Input {
    /// Messages of the command line, then files.
    Given(IntoIter<Bytes>, IntoIter<PathBuf>),
    /// Standard input, read by a thread of its own, which ends with the process.
    Lines(mpsc::Receiver<Result<Batch, Failure>>),
}

impl Input {
    pub(super) fn of(messages: Vec<String>, files: Vec<PathBuf>) -> Self {
        let messages: Vec<Bytes> = messages.into_iter().map(Bytes::from).collect();
        Self::Given(messages.into_iter(), files.into_iter())
    }

    pub(super) fn lines() -> Self {
        if io::stdin().is_terminal() {
            note("reads messages from the terminal, one per line; Ctrl-D ends it");
        }
        let (sender, batches) = mpsc::channel(BATCHES_AHEAD);
        thread::spawn(move || {
            let mut lines = Lines::new(BufReader::with_capacity(64 << 10, io::stdin()));
            while let Some(batch) = lines.next_batch().transpose() {
                let ends = batch.is_err();
                if sender.blocking_send(batch).is_err() || ends {
                    break;
                }
            }
        });
        Self::Lines(batches)
    }

    /// The next messages; `None` at the end.
    pub(super) async fn next(&mut self) -> Option<Result<Batch, Failure>> {
        match self {
            Self::Lines(batches) => batches.recv().await,
            Self::Given(messages, files) => {
                let batch: Batch = messages.by_ref().take(BATCH_MESSAGES).collect();
                if !batch.is_empty() {
                    return Some(Ok(batch));
                }
                // A file may be large: it is a batch of its own.
                let path = files.next()?;
                let content = fs::read(&path)
                    .map_err(|source| Failure::io(format!("read {}", path.display()), source));
                Some(content.map(|content| vec![Bytes::from(content)]))
            }
        }
    }
}

/// Lines of a reader in batches: as many as have arrived, so that what is typed goes at once.
struct Lines<R> {
    reader: BufReader<R>,
}

impl<R: Read> Lines<R> {
    const fn new(reader: BufReader<R>) -> Self {
        Self { reader }
    }

    fn next_batch(&mut self) -> Result<Option<Batch>, Failure> {
        let mut batch = Batch::new();
        let mut bytes = 0;
        while batch.len() < BATCH_MESSAGES && bytes < BATCH_BYTES {
            let Some(line) = self.next_line()? else {
                break;
            };
            bytes += line.len();
            batch.push(Bytes::from(line));
            // The rest of a partial line would be waited for.
            if !self.reader.buffer().contains(&b'\n') {
                break;
            }
        }
        Ok((!batch.is_empty()).then_some(batch))
    }

    /// A line without its end; `None` at the end of the input.
    fn next_line(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let mut line = Vec::new();
        let read = self
            .reader
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)
            .map_err(|source| Failure::io("read standard input", source))?;
        if read == 0 {
            return Ok(None);
        }
        if line.pop_if(|last| *last == b'\n').is_some() {
            line.pop_if(|last| *last == b'\r');
        } else if read as u64 == LINE_BYTES_MAX {
            return Err(Failure::Refused(format!(
                "a line of standard input is longer than {LINE_BYTES_MAX} bytes; send it by --file"
            )));
        }
        Ok(Some(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches(text: &[u8]) -> Vec<Vec<Vec<u8>>> {
        let mut lines = Lines::new(BufReader::new(text));
        let next = || lines.next_batch().unwrap();
        std::iter::from_fn(next)
            .map(|batch| batch.iter().map(|line| line.to_vec()).collect())
            .collect()
    }

    #[test]
    fn lines_lose_their_end_and_nothing_else() {
        let lines = batches(b"a\r\n\n b \nlast").concat();
        assert_eq!(lines, [&b"a"[..], b"", b" b ", b"last"]);
        assert!(batches(b"").is_empty());
        assert_eq!(batches(b"\r\n").concat(), [b""]);
    }

    #[test]
    fn batches_are_bounded() {
        let text = b"x\n".repeat(BATCH_MESSAGES + 1);
        let sizes: Vec<usize> = batches(&text).iter().map(Vec::len).collect();
        assert_eq!(sizes, [BATCH_MESSAGES, 1]);
    }
}
