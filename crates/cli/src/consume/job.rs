//! One run of a command for one message.

use std::{
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};
use tanda_client::{Delivery, RequestError};
use tokio::{
    io::AsyncWriteExt,
    process::{Child, Command},
    time::sleep,
};

use super::print::headers_json;

/// `EX_TEMPFAIL` of sysexits.h.
const EXIT_TRY_LATER: i32 = 75;
/// A lease is extended when this part of it is over.
const EXTEND_DIVISOR: u64 = 3;
/// Between two extensions at least, whatever the queue's timeout is.
const EXTEND_MS_MIN: u64 = 20;

/// What to run.
#[derive(Clone, Debug)]
pub(super) struct Job {
    command: Arc<str>,
    retry_delay: Duration,
}

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Acknowledged.
    Done,
    /// Given back as failed, for this reason.
    Failed(String),
    /// Given back, to be retried after the delay.
    Later,
    /// The lease was lost while the command ran; the command was stopped.
    Lost,
    /// The command ended, but the broker did not take the settlement.
    Unsettled(RequestError),
}

impl Job {
    pub(super) fn new(command: String, retry_delay: Duration) -> Self {
        Self {
            command: Arc::from(command),
            retry_delay,
        }
    }

    /// Runs the command for a message and settles the message.
    pub(super) async fn run(self, delivery: Delivery) -> Outcome {
        let ended = match self.start(&delivery) {
            Ok(child) => tokio::select! {
                ended = finish(child, &delivery) => ended,
                () = keep_lease(&delivery) => return Outcome::Lost,
            },
            Err(error) => Err(format!("cannot start sh: {error}")),
        };
        let verdict = match ended {
            Ok(status) => self.judge(status),
            Err(reason) => Outcome::Failed(reason),
        };
        let settled = match &verdict {
            Outcome::Done => delivery.ack().await,
            Outcome::Failed(reason) => delivery.nack(reason).await,
            Outcome::Later => delivery.retry_after(self.retry_delay, "exit code 75").await,
            Outcome::Lost | Outcome::Unsettled(_) => Ok(()),
        };
        settled.map_or_else(Outcome::Unsettled, |()| verdict)
    }

    fn start(&self, delivery: &Delivery) -> std::io::Result<Running> {
        let mut command = Command::new("sh");
        command.arg("-c").arg(&*self.command);
        for (name, value) in environment(delivery) {
            command.env(name, value);
        }
        command
            .stdin(Stdio::piped())
            // In a group of its own a Ctrl-C at the terminal does not reach the command, so that it
            // can finish.
            .process_group(0)
            .spawn()
            .map(Running)
    }

    fn judge(&self, status: ExitStatus) -> Outcome {
        match status.code() {
            Some(0) => Outcome::Done,
            Some(EXIT_TRY_LATER) => Outcome::Later,
            Some(code) => Outcome::Failed(format!("exit code {code}")),
            None => Outcome::Failed(format!("ended by {status}")),
        }
    }
}

/// A command that leads a process group. What still runs of it when this is dropped before its end
/// is killed, with all it has started.
#[derive(Debug)]
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // There is no ID any more once the end was seen, so no later process is hit.
        let id = self.0.id().and_then(|id| i32::try_from(id).ok());
        if let Some(group) = id.and_then(Pid::from_raw) {
            // An error says that it ended just now.
            let _killed = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Feeds the payload and waits for the end. A command need not read its input.
async fn finish(mut running: Running, delivery: &Delivery) -> Result<ExitStatus, String> {
    let child = &mut running.0;
    let stdin = child.stdin.take();
    let feed = async {
        if let Some(mut stdin) = stdin {
            // A command that ends early closes the pipe; its exit code says whether that is bad.
            drop(stdin.write_all(delivery.payload()).await);
        }
        // The pipe is closed here: the command sees the end of its input.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        status = child.wait() => status.map_err(|error| format!("cannot wait for sh: {error}")),
        () = feed => Err("the payload was fed twice".to_owned()),
    }
}

/// Extends the lease again and again; resolves when it is lost.
async fn keep_lease(delivery: &Delivery) {
    let lease_ms = delivery
        .lease_expires_at_ms()
        .saturating_sub(delivery.leased_at_ms())
        .max(1);
    let pause = Duration::from_millis((lease_ms / EXTEND_DIVISOR).max(EXTEND_MS_MIN));
    loop {
        sleep(pause).await;
        match delivery.extend_lease(Duration::from_millis(lease_ms)).await {
            Err(RequestError::Rejected(refusal)) if !refusal.retryable() => return,
            // While the connection is lost the lease may still stand: try again.
            Ok(_) | Err(_) => {}
        }
    }
}

/// What the command learns about the message besides its payload. The system allows no zero byte in
/// a variable: one that would have it is left out.
fn environment(delivery: &Delivery) -> Vec<(String, String)> {
    let fixed = [
        ("TANDA_MESSAGE_ID", delivery.id().to_string()),
        ("TANDA_QUEUE", delivery.queue().to_owned()),
        ("TANDA_FAIRNESS_KEY", delivery.fairness_key().to_owned()),
        ("TANDA_WEIGHT", delivery.weight().to_string()),
        ("TANDA_ATTEMPT", delivery.attempt().to_string()),
        ("TANDA_REDRIVES", delivery.redrives().to_string()),
        (
            "TANDA_ENQUEUED_AT_MS",
            delivery.enqueued_at_ms().to_string(),
        ),
        ("TANDA_HEADERS", headers_json(delivery).to_string()),
    ];
    let fixed = fixed
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    let headers = delivery.headers();
    let headers = headers
        .iter()
        .map(|(name, value)| (header_variable(name), value.to_owned()));
    fixed
        .chain(headers)
        .filter(|(_, value)| !value.contains('\0'))
        .collect()
}

/// `content-type` is `TANDA_HEADER_CONTENT_TYPE`.
fn header_variable(name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    let name: String = name.chars().map(plain).collect();
    format!("TANDA_HEADER_{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_names_become_variables() {
        assert_eq!(header_variable("content-type"), "TANDA_HEADER_CONTENT_TYPE");
        assert_eq!(header_variable("ü=x"), "TANDA_HEADER___X");
    }
}
