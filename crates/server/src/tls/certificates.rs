//! The certificates in use, and how they are replaced.

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use rustls::ServerConfig;
use tokio::{sync::Notify, task::spawn_blocking, time::timeout};

use super::{
    error::TlsFileError,
    files::{Stamps, TlsFiles},
};

/// What new connections are greeted with.
#[derive(Debug)]
pub(crate) struct Certificates {
    files: TlsFiles,
    current: RwLock<Arc<ServerConfig>>,
    asked: Notify,
}

impl Certificates {
    /// Reads the files for the first time; logs what is suspicious about them.
    ///
    /// # Errors
    /// The first file that cannot be used.
    pub(crate) fn load(files: TlsFiles) -> Result<Arc<Self>, TlsFileError> {
        let loaded = files.load()?;
        warn(&loaded.warnings);
        Ok(Arc::new(Self {
            files,
            current: RwLock::new(loaded.config),
            asked: Notify::new(),
        }))
    }

    /// For the next handshake.
    pub(crate) fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the files again soon, whether they look changed or not.
    pub(crate) fn reload(&self) {
        self.asked.notify_one();
    }

    /// Looks at the files every `interval`, and reads them again when they have changed and rest:
    /// of a certificate and key that are written one after the other, half is worth nothing.
    pub(crate) async fn watch(self: Arc<Self>, interval: Duration) {
        let mut used = self.stamps().await;
        let mut seen = used.clone();
        loop {
            let asked = timeout(interval, self.asked.notified()).await.is_ok();
            let now = self.stamps().await;
            let rests = now == seen;
            if asked || (rests && now != used) {
                self.replace().await;
                used = now.clone();
            }
            seen = now;
        }
    }

    async fn stamps(self: &Arc<Self>) -> Option<Stamps> {
        let this = Arc::clone(self);
        spawn_blocking(move || this.files.stamps()).await.ok()
    }

    async fn replace(self: &Arc<Self>) {
        let this = Arc::clone(self);
        match spawn_blocking(move || this.files.load()).await {
            Ok(Ok(loaded)) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = loaded.config;
                tracing::info!("new TLS connections use the certificate that was read again");
                warn(&loaded.warnings);
            }
            Ok(Err(error)) => tracing::error!(
                %error,
                "the files of TLS changed and cannot be used; the certificate of before stays"
            ),
            Err(error) => tracing::error!(%error, "a bug: reading the files of TLS panicked"),
        }
    }
}

fn warn(warnings: &[String]) {
    for warning in warnings {
        tracing::warn!("{warning}");
    }
}
