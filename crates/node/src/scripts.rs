//! Jobs for the host of scripts, on their way out.
//!
//! Owns putting the contents that lie in the log into them. It refuses to know what is run.

use tanda_engine::{CallContent, ScriptJob, ScriptTask};
use tanda_wal::{Disk, Log};

use crate::node::Node;

impl<D: Disk> Node<D> {
    /// Moves the jobs that the host of scripts is to run to the end of `out`; each must come back
    /// in a [`tanda_engine::Request::ScriptDone`]. Ask after [`Self::handle`] and [`Self::run`].
    pub fn take_script_jobs(&mut self, out: &mut Vec<ScriptJob>) {
        let first = out.len();
        self.engine.take_script_jobs(out);
        if self.failed().is_some() {
            // Nothing that follows from them could be confirmed.
            out.truncate(first);
        }
        for job in out.iter_mut().skip(first) {
            for content in contents_of(&mut job.task) {
                self.put_in(content);
            }
        }
    }

    fn put_in(&mut self, content: &mut CallContent) {
        let CallContent::Log { at, len } = *content else {
            return;
        };
        *content = match read(&mut self.log, (at, len)) {
            Ok(bytes) => CallContent::Here(bytes),
            Err(error) => {
                self.counters.read_errors += 1;
                self.counters.last_read_error = Some(error.to_string());
                CallContent::Unreadable
            }
        };
    }
}

/// Small contents are copied: they may stay out for long, and must not keep a large buffer.
fn read<D: Disk>(
    log: &mut Log<D>,
    (at, len): (tanda_engine::Lsn, u32),
) -> Result<bytes::Bytes, tanda_wal::ReadError> {
    const COPIED_MAX: usize = 64 << 10;
    let bytes = log.read(tanda_wal::Lsn(at.0), len)?;
    let is_small = bytes.len() <= COPIED_MAX;
    Ok(if is_small {
        bytes::Bytes::copy_from_slice(&bytes)
    } else {
        bytes
    })
}

fn contents_of(task: &mut ScriptTask) -> Vec<&mut CallContent> {
    match task {
        ScriptTask::Check => Vec::new(),
        ScriptTask::Enqueue(calls) => calls.iter_mut().map(|call| &mut call.content).collect(),
        ScriptTask::Failure(calls) => calls.iter_mut().map(|call| &mut call.content).collect(),
    }
}
