//! The policies of a queue that can be given at creation and changed later.

use std::time::Duration;

use clap::{Args, ValueEnum};
use tanda_client::admin::{Backoff, DeliveryDurability, QueueChanges, QueueSettings};

use crate::durations;

/// A duration or count of zero means the broker's default.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PolicyArgs {
    /// How long a consumer may hold a message before it counts as failed [broker's default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = durations::parse)]
    visibility_timeout: Option<Duration>,
    /// How long a deduplication key is remembered after its message left [broker's default: 10m]
    #[arg(long, value_name = "DURATION", value_parser = durations::parse)]
    dedup_window: Option<Duration>,
    /// Deliveries before a failing message goes to the dead-letter queue [broker's default: 3]
    #[arg(long, value_name = "N")]
    max_attempts: Option<u32>,
    /// How the delay before a retry grows [broker's default: exponential]
    #[arg(long, value_enum)]
    backoff: Option<BackoffShape>,
    /// The first, or fixed, delay before a retry [broker's default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = durations::parse)]
    backoff_initial: Option<Duration>,
    /// The longest delay before a retry [broker's default: 60s]
    #[arg(long, value_name = "DURATION", value_parser = durations::parse)]
    backoff_max: Option<Duration>,
    /// What a crash of the broker may undo [broker's default: committed]
    #[arg(long, value_enum)]
    durability: Option<Durability>,
    /// How long a fast queue waits after a crash for those who held messages [broker's default: 5s]
    #[arg(long, value_name = "DURATION", value_parser = durations::parse)]
    reclaim_grace: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BackoffShape {
    /// Retry at once.
    None,
    /// The same delay each time.
    Fixed,
    /// Doubling up to the maximum.
    Exponential,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Durability {
    /// Leases and acknowledgements are on disk before they count: attempts are counted exactly,
    /// and an acknowledged message never comes again.
    Committed,
    /// They are not waited for: after a crash a message may come again.
    Fast,
}

impl BackoffShape {
    const fn to_client(self) -> Backoff {
        match self {
            Self::None => Backoff::None,
            Self::Fixed => Backoff::Fixed,
            Self::Exponential => Backoff::Exponential,
        }
    }
}

impl Durability {
    const fn to_client(self) -> DeliveryDurability {
        match self {
            Self::Committed => DeliveryDurability::Committed,
            Self::Fast => DeliveryDurability::Fast,
        }
    }
}

/// Calls a builder's setter for each value that was given.
macro_rules! set {
    ($builder:ident, $args:ident: $($field:ident => $setter:ident),+ $(,)?) => {
        $(
            if let Some(value) = $args.$field {
                $builder = $builder.$setter(value);
            }
        )+
    };
}

impl PolicyArgs {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn put_into(&self, mut settings: QueueSettings) -> QueueSettings {
        set!(settings, self:
            visibility_timeout => visibility_timeout,
            dedup_window => dedup_window,
            max_attempts => max_attempts,
            backoff_initial => backoff_initial,
            backoff_max => backoff_max,
            reclaim_grace => reclaim_grace,
        );
        if let Some(shape) = self.backoff {
            settings = settings.backoff(shape.to_client());
        }
        if let Some(durability) = self.durability {
            settings = settings.delivery_durability(durability.to_client());
        }
        settings
    }

    pub(super) fn changes(&self) -> QueueChanges {
        let mut changes = QueueChanges::new();
        set!(changes, self:
            visibility_timeout => visibility_timeout,
            dedup_window => dedup_window,
            max_attempts => max_attempts,
            backoff_initial => backoff_initial,
            backoff_max => backoff_max,
            reclaim_grace => reclaim_grace,
        );
        if let Some(shape) = self.backoff {
            changes = changes.backoff(shape.to_client());
        }
        if let Some(durability) = self.durability {
            changes = changes.delivery_durability(durability.to_client());
        }
        changes
    }
}
