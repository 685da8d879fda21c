//! `--vhost` of the commands on queues.

use clap::Args;

/// The virtual host that Fila serves.
const ROOT: &str = "/";

#[derive(Args, Debug)]
pub(super) struct VhostArgs {
    /// The queue's virtual host
    #[arg(long, value_name = "VHOST", default_value = ROOT)]
    vhost: String,
}

impl VhostArgs {
    pub(super) fn name(&self) -> &str {
        &self.vhost
    }

    /// Whether Fila can name the queue.
    pub(super) fn is_root(&self) -> bool {
        self.vhost == ROOT
    }
}
