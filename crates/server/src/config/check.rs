//! Options that are each allowed but not together.

use std::net::SocketAddr;

use super::Config;

impl Config {
    /// What contradicts itself, each with what to do.
    pub(super) fn contradictions(&self) -> Vec<String> {
        let mut problems = Vec::new();
        problems.extend(self.exposed("fila", self.no_fila, self.fila));
        problems.extend(self.exposed("http", self.no_http, self.http));
        if self.no_fila && self.no_http {
            problems.push("no_fila and no_http are both set: no door would be open".to_owned());
        }
        if !self.no_fila && !self.no_http && self.fila == self.http && self.fila.port() != 0 {
            problems.push(format!(
                "fila and http are both {}: give one of them another port",
                self.fila
            ));
        }
        if self.limits_max_message > self.limits_max_body {
            problems.push(format!(
                "limits.max_message ({}) is above limits.max_body ({}): such a message could never \
                 arrive",
                self.limits_max_message, self.limits_max_body
            ));
        }
        if self.limits_max_frame > self.limits_max_body {
            problems.push(format!(
                "limits.max_frame ({}) is above limits.max_body ({}): a frame is the smallest body",
                self.limits_max_frame, self.limits_max_body
            ));
        }
        if self.queue_backoff_initial > self.queue_backoff_max {
            problems.push(format!(
                "queue.backoff_initial ({:?}) is above queue.backoff_max ({:?})",
                self.queue_backoff_initial, self.queue_backoff_max
            ));
        }
        problems
    }

    fn exposed(&self, door: &str, closed: bool, addr: SocketAddr) -> Option<String> {
        if closed || addr.ip().is_loopback() || self.allow_unauthenticated {
            return None;
        }
        Some(format!(
            "{door} = \"{addr}\" can be reached from other machines, and nobody has to prove who \
             they are: use a loopback address, or say --allow-unauthenticated"
        ))
    }
}
