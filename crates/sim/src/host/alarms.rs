//! What runs short, as FireMQ's sessions hear of it.
//!
//! They hear whenever they are looked at, not at once: connections of the server are tasks of their
//! own. Runs of AMQP clients alone are without alarms.

use tanda_engine::Millis;

use super::Host;

impl Host {
    /// What is short, in words for peers.
    fn shortage(&self) -> Option<&'static str> {
        let node = self.node.as_ref()?;
        match (node.memory_short(), node.storage_full()) {
            (true, true) => Some("memory & disk"),
            (true, false) => Some("memory"),
            (false, true) => Some("disk"),
            (false, false) => None,
        }
    }

    /// Tells a session what it does not know yet.
    pub(super) fn heed_alarm(&mut self, number: u64, now: Millis) {
        let reason = self.shortage();
        let Some(conn) = self.conns.get_mut(&number) else {
            return;
        };
        if !conn.hears_alarms || conn.alarm == reason {
            return;
        }
        conn.alarm = reason;
        conn.session.on_alarm(now, reason);
        conn.decode_rest(now);
        self.pump(number);
    }
}
