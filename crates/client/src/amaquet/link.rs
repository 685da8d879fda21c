//! Whether there is a connection, for who wants to know before asking for something.

use std::sync::Arc;

use tokio::sync::watch;

/// The state of a client's connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Link {
    /// There is one.
    #[default]
    Up,
    /// It was lost; the client opens another.
    Lost {
        /// What ended it.
        reason: Arc<str>,
    },
    /// The client has ended.
    Ended {
        /// Why there is no connection any more.
        reason: Arc<str>,
    },
}

/// Tells when the state of a connection changes.
#[derive(Debug)]
pub struct LinkWatch {
    link: watch::Receiver<Link>,
    /// The end was told.
    is_over: bool,
}

impl LinkWatch {
    pub(crate) const fn new(link: watch::Receiver<Link>) -> Self {
        Self {
            link,
            is_over: false,
        }
    }

    /// The state now.
    #[must_use]
    pub fn now(&self) -> Link {
        self.link.borrow().clone()
    }

    /// Waits until the state is another one than was last told here; `None` when it will not change
    /// any more. States that were left meanwhile are passed over.
    pub async fn changed(&mut self) -> Option<Link> {
        if self.is_over {
            return None;
        }
        self.link.changed().await.ok()?;
        let link = self.link.borrow_and_update().clone();
        self.is_over = matches!(link, Link::Ended { .. });
        Some(link)
    }
}
