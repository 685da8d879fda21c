//! `tanda queue ...`.

mod create;
mod delete;
mod explain;
mod inspect;
mod list;
mod policies;
mod purge;
mod scripts;
mod sentences;
mod update;
mod vhost;

use clap::Subcommand;

use crate::{failure::Failure, target::TargetArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// Make a queue and its dead-letter queue.
    Create(Box<create::CreateArgs>),
    /// Change policies of a queue; what is not named stays as it is.
    Update(Box<update::UpdateArgs>),
    /// List the queues with their counts.
    List(list::ListArgs),
    /// Show a queue's policies, counts and fairness keys.
    Inspect(inspect::InspectArgs),
    /// Remove a queue, its dead-letter queue and all their messages.
    Delete(delete::DeleteArgs),
    /// Remove all waiting messages of a queue; leased ones stay.
    Purge(purge::PurgeArgs),
    /// Say why a queue, or one message, is not being delivered now.
    Explain(explain::ExplainArgs),
}

pub(crate) async fn run(command: QueueCommand, before: TargetArgs) -> Result<(), Failure> {
    match command {
        QueueCommand::Create(args) => create::run(*args, before).await,
        QueueCommand::Update(args) => update::run(*args, before).await,
        QueueCommand::List(args) => list::run(args, before).await,
        QueueCommand::Inspect(args) => inspect::run(args, before).await,
        QueueCommand::Delete(args) => delete::run(args, before).await,
        QueueCommand::Purge(args) => purge::run(args, before).await,
        QueueCommand::Explain(args) => explain::run(args, before).await,
    }
}
