//! Runtime configuration: keys and values that scripts read.

use tanda_wire::fila::ErrorCode;
use tanda_wire::fila::config::{
    GetConfig, GetConfigResult, ListConfig, ListConfigResult, SetConfig, SetConfigResult,
};

use super::{Admin, check, read};
use crate::error::RequestError;
use crate::shell::handle::Repeat;

impl Admin {
    /// Sets a key, which scripts read with `fila.get`. Keys hold at most 1 KiB, values 64 KiB.
    ///
    /// # Errors
    /// `InvalidConfigValue`, `Forbidden`.
    pub async fn set_config(&self, key: &str, value: &str) -> Result<(), RequestError> {
        let body = self
            .handle
            .call(&SetConfig { key, value }, Repeat::Harmful)
            .await?;
        check(read(SetConfigResult::decode(&body))?.error_code)
    }

    /// The value of a key; `None` when it is not set.
    ///
    /// # Errors
    /// `Forbidden`.
    pub async fn config(&self, key: &str) -> Result<Option<String>, RequestError> {
        let body = self
            .handle
            .call(&GetConfig { key }, Repeat::Harmless)
            .await?;
        let answer = read(GetConfigResult::decode(&body))?;
        // The protocol has no other way to say that a key is not set.
        if answer.error_code == ErrorCode::InvalidConfigValue {
            return Ok(None);
        }
        check(answer.error_code)?;
        Ok(Some(answer.value.to_owned()))
    }

    /// The keys that start with a prefix, with their values; an empty prefix lists all.
    ///
    /// # Errors
    /// `Forbidden`.
    pub async fn list_config(&self, prefix: &str) -> Result<Vec<(String, String)>, RequestError> {
        let body = self
            .handle
            .call(&ListConfig { prefix }, Repeat::Harmless)
            .await?;
        let answer = read(ListConfigResult::decode(&body))?;
        check(answer.error_code)?;
        let entries = answer.entries.iter();
        Ok(entries
            .map(|entry| (entry.key.to_owned(), entry.value.to_owned()))
            .collect())
    }
}
