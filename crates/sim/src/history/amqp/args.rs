//! Arguments of declarations and bindings, as tables of AMQP.

use tanda_wire::amqp::{ShortStr, TableWriter, Value};

use super::draw::alternate_of;
use super::{BindingDraw, Overflow, QueueDraw};

/// The arguments of an exchange's declaration.
pub(crate) fn args_of_exchange(name: &str) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(alternate) = alternate_of(name) {
        let mut writer = TableWriter::new(&mut out);
        let key = ShortStr::clip("alternate-exchange");
        writer.value(key, &Value::text(alternate));
    }
    out
}

impl QueueDraw {
    /// The arguments of its declaration.
    pub(crate) fn args(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = TableWriter::new(&mut out);
        let mut put = |key, value| {
            writer.value(ShortStr::clip(key), &value);
        };
        let long = |ms: u64| Value::I64(i64::try_from(ms).unwrap_or(i64::MAX));
        if let Some(ms) = self.ttl_ms {
            put("x-message-ttl", long(ms));
        }
        if let Some((most, _)) = self.max_length {
            put("x-max-length", long(most));
        }
        if let Some((most, _)) = self.max_bytes {
            put("x-max-length-bytes", long(most));
        }
        match self.overflow() {
            None | Some(Overflow::DropHead) => {}
            Some(Overflow::Reject) => put("x-overflow", Value::text("reject-publish")),
            Some(Overflow::RejectDead) => put("x-overflow", Value::text("reject-publish-dlx")),
        }
        if let Some(key) = &self.dead_key {
            put("x-dead-letter-exchange", Value::text(""));
            put("x-dead-letter-routing-key", Value::text(key));
        }
        if let Some(limit) = self.delivery_limit {
            put("x-delivery-limit", long(u64::from(limit)));
        }
        if let Some(most) = self.max_priority {
            put("x-max-priority", Value::U8(most));
        }
        if self.single_active {
            put("x-single-active-consumer", Value::Bool(true));
        }
        if let Some(ms) = self.ack_timeout_ms {
            put("x-consumer-timeout", long(ms));
        }
        if let Some(ms) = self.expires_ms {
            put("x-expires", long(ms));
        }
        out
    }
}

impl BindingDraw {
    /// Its arguments.
    pub(crate) fn args(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(asks) = &self.asks {
            let mut writer = TableWriter::new(&mut out);
            // By name, as the broker shows them.
            for (name, value) in asks.pairs {
                let value = value.map_or(Value::Void, Value::text);
                writer.value(ShortStr::clip(name), &value);
            }
            writer.value(ShortStr::clip("x-match"), &Value::text(asks.mode));
        }
        out
    }
}
