//! Exchanges and bindings.

use clap::{Args, ValueEnum};
use serde_json::json;
use tanda_client::fire::{Binding, Exchange, ExchangeKind, Fields};

use super::{Door, DoorArgs, refused};
use crate::{
    failure::Failure,
    output::{done, printable},
    target::TargetArgs,
};

/// How an exchange chooses among its bindings.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    /// Those whose key is the routing key.
    Direct,
    /// All.
    Fanout,
    /// Those whose pattern matches the routing key: * is one word, # any number of them.
    Topic,
    /// Those whose arguments match the headers.
    Headers,
}

#[derive(Args, Debug)]
pub(crate) struct DeclareArgs {
    /// Its name
    name: String,
    /// How it chooses among its bindings
    #[arg(long = "type", value_enum, default_value = "direct")]
    kind: Kind,
    /// Let it be gone after a restart of the broker
    #[arg(long)]
    transient: bool,
    /// Let it be gone with its last binding
    #[arg(long)]
    auto_delete: bool,
    /// Take messages from other exchanges only
    #[arg(long)]
    internal: bool,
    /// Where messages go that match no binding
    #[arg(long, value_name = "EXCHANGE")]
    alternate: Option<String>,
    #[command(flatten)]
    door: DoorArgs,
}

#[derive(Args, Debug)]
pub(crate) struct DeleteArgs {
    /// Its name
    name: String,
    /// Only when nothing is bound to it
    #[arg(long)]
    if_unused: bool,
    #[command(flatten)]
    door: DoorArgs,
}

#[derive(Args, Debug)]
pub(crate) struct BindArgs {
    /// The exchange that gives
    exchange: String,
    /// The queue that takes; with --to-exchange the exchange
    destination: String,
    /// The binding's key, a pattern for a topic exchange
    #[arg(long = "routing-key", value_name = "KEY", default_value = "")]
    key: String,
    /// The destination is an exchange
    #[arg(long)]
    to_exchange: bool,
    /// An argument, such as a header for a headers exchange; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = crate::send::parse_header)]
    argument: Vec<(String, String)>,
    #[command(flatten)]
    door: DoorArgs,
}

pub(super) async fn declare(args: DeclareArgs, before: TargetArgs) -> Result<(), Failure> {
    let door = args.door.open(before).await?;
    let kind = match args.kind {
        Kind::Direct => ExchangeKind::Direct,
        Kind::Fanout => ExchangeKind::Fanout,
        Kind::Topic => ExchangeKind::Topic,
        Kind::Headers => ExchangeKind::Headers,
    };
    let mut exchange = Exchange::new(args.name.as_str(), kind);
    if !args.transient {
        exchange = exchange.durable();
    }
    if args.auto_delete {
        exchange = exchange.auto_delete();
    }
    if args.internal {
        exchange = exchange.internal();
    }
    if let Some(alternate) = &args.alternate {
        let arguments = Fields::new().set("alternate-exchange", alternate.as_str());
        exchange = exchange.arguments(arguments);
    }
    let declared = door.fire.declare_exchange(exchange).await;
    declared.map_err(|error| refused(&format!("declare exchange {:?}", args.name), &error))?;
    let name = printable(args.name.as_bytes());
    let sentence = format!("exchange {name} is there: {}", kind.name());
    end(door, &json!({ "exchange": args.name }), &sentence).await
}

pub(super) async fn delete(args: DeleteArgs, before: TargetArgs) -> Result<(), Failure> {
    let door = args.door.open(before).await?;
    let name = args.name.as_str();
    let deleted = if args.if_unused {
        door.fire.delete_unused_exchange(name).await
    } else {
        door.fire.delete_exchange(name).await
    };
    deleted.map_err(|error| refused(&format!("delete exchange {name:?}"), &error))?;
    let sentence = format!("exchange {} is gone", printable(name.as_bytes()));
    end(door, &json!({ "exchange": name }), &sentence).await
}

pub(super) async fn bind(args: BindArgs, before: TargetArgs) -> Result<(), Failure> {
    let binding = args.binding();
    let (text, facts) = (args.text(), args.facts());
    let door = args.door.open(before).await?;
    let bound = door.fire.bind(binding).await;
    bound.map_err(|error| refused(&format!("bind {text}"), &error))?;
    end(door, &facts, &format!("bound {text}")).await
}

pub(super) async fn unbind(args: BindArgs, before: TargetArgs) -> Result<(), Failure> {
    let binding = args.binding();
    let (text, facts) = (args.text(), args.facts());
    let door = args.door.open(before).await?;
    let unbound = door.fire.unbind(binding).await;
    unbound.map_err(|error| refused(&format!("unbind {text}"), &error))?;
    end(door, &facts, &format!("no longer bound: {text}")).await
}

impl BindArgs {
    fn binding(&self) -> Binding {
        let (from, to) = (self.exchange.as_str(), self.destination.as_str());
        let binding = if self.to_exchange {
            Binding::to_exchange(from, to)
        } else {
            Binding::to_queue(from, to)
        };
        let arguments = self.argument.iter();
        let arguments = arguments.fold(Fields::new(), |fields, (name, value)| {
            fields.set(name.as_str(), value.as_str())
        });
        binding.key(self.key.as_str()).arguments(arguments)
    }

    fn text(&self) -> String {
        let kind = if self.to_exchange {
            "exchange"
        } else {
            "queue"
        };
        format!(
            "{kind} {} to exchange {} with key {:?}",
            printable(self.destination.as_bytes()),
            printable(self.exchange.as_bytes()),
            self.key
        )
    }

    fn facts(&self) -> serde_json::Value {
        json!({
            "exchange": self.exchange,
            "destination": self.destination,
            "to_exchange": self.to_exchange,
            "key": self.key,
        })
    }
}

async fn end(door: Door, facts: &serde_json::Value, sentence: &str) -> Result<(), Failure> {
    let Door { fire, json } = door;
    fire.close().await;
    done(json, facts, sentence)
}
