//! `server.info`: what the engine counted, and what the server knows of itself.

use tanda_engine::AdminReply;

use super::active::Entry;
use super::link::Link;
use super::outbound::Asked;

impl Link {
    /// Answers `server.info`.
    pub(super) fn say_info(&mut self, entry: &Entry, reply: &AdminReply) {
        let AdminReply::VhostCounts(counts) = reply else {
            return self.say_confused(entry);
        };
        let asked = Asked::command(entry.request_id);
        let facts = std::sync::Arc::clone(&self.config.facts);
        self.say_object(asked, |out| {
            out.key("version").str(facts.version());
            out.key("uptime_ms").u64(facts.uptime_ms());
            out.key("keys").u64(counts.keys);
            out.key("connections").u64(facts.connections());
            out.key("memory_bytes").u64(facts.memory_bytes());
            out.key("queues").u64(counts.queues);
        });
    }
}
