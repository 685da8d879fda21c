//! The table of runtime configuration.

use std::sync::Arc;

use crate::engine::{Cx, Engine};
use crate::record::{Kind, begin, put_long, put_short};
use crate::{QueueId, RuntimeConfigError};

impl Engine {
    pub(crate) fn set_config(
        &mut self,
        cx: &mut Cx<'_>,
        key: String,
        value: String,
    ) -> Result<(), RuntimeConfigError> {
        let limits = &self.config.limits;
        let (len, max) = (key.len(), limits.config_key_bytes_max);
        if key.is_empty() || len > max {
            return Err(RuntimeConfigError::BadKey { len, max });
        }
        if self.storage_full {
            return Err(RuntimeConfigError::Storage);
        }
        let max = limits.config_entries_max;
        if self.runtime.len() >= max && !self.runtime.contains_key(&key) {
            return Err(RuntimeConfigError::TooMany { max });
        }
        self.write_config(cx, key, value);
        Ok(())
    }

    pub(crate) fn write_config(&mut self, cx: &mut Cx<'_>, key: String, value: String) {
        begin(&mut self.record, Kind::Config, QueueId(0), cx.now);
        put_short(&mut self.record, key.as_bytes());
        put_long(&mut self.record, value.as_bytes());
        cx.journal.append(&self.record);
        Arc::make_mut(&mut self.runtime).insert(key, value);
    }

    pub(crate) fn list_config(&self, prefix: String) -> Vec<(String, String)> {
        let from = self.runtime.range(prefix.clone()..);
        from.take_while(|(key, _)| key.starts_with(&prefix))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }
}
