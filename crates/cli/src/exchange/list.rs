//! Lists of exchanges and bindings, over the HTTP door.

use clap::Args;
use serde_json::Value;

use crate::{
    failure::Failure,
    http_door::segment,
    output::{Output, printable, text},
    table::Table,
    target::TargetArgs,
};

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Only those in this virtual host
    #[arg(long, value_name = "VHOST")]
    vhost: Option<String>,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Args, Debug)]
pub(crate) struct BindingsArgs {
    /// Only those from or to this exchange
    exchange: Option<String>,
    /// Only those in this virtual host
    #[arg(long, value_name = "VHOST")]
    vhost: Option<String>,
    #[command(flatten)]
    target: TargetArgs,
}

/// The path of a list of RabbitMQ's management, of all virtual hosts or of one.
pub(crate) fn list_path(kind: &str, vhost: Option<&str>) -> String {
    let vhost = vhost.map_or_else(String::new, |vhost| format!("/{}", segment(vhost)));
    format!("/api/{kind}{vhost}")
}

/// What RabbitMQ's management says of the life of an exchange or queue, in words.
pub(crate) fn life(it: &Value) -> String {
    let is = |key: &str| it.get(key).and_then(Value::as_bool) == Some(true);
    let mut words = vec![if is("durable") {
        "durable"
    } else {
        "transient"
    }];
    words.extend(is("auto_delete").then_some("auto-delete"));
    words.extend(is("exclusive").then_some("exclusive"));
    words.extend(is("internal").then_some("internal"));
    words.join(", ")
}

pub(super) async fn list(args: ListArgs, before: TargetArgs) -> Result<(), Failure> {
    let target = args.target.or(before);
    let path = list_path("exchanges", args.vhost.as_deref());
    let exchanges = target.http()?.read(&path).await?;
    let mut out = Output::new();
    if target.json {
        out.document(&exchanges)?;
        return out.flush();
    }
    let mut table = Table::new(&["VHOST", "EXCHANGE", "TYPE", "IS", "ARGUMENTS"], &[]);
    for it in exchanges.as_array().into_iter().flatten() {
        table.row([
            text(it, "vhost"),
            text(it, "name"),
            text(it, "type"),
            life(it),
            arguments(it),
        ]);
    }
    out.line(table)?;
    out.flush()
}

pub(super) async fn bindings(args: BindingsArgs, before: TargetArgs) -> Result<(), Failure> {
    let target = args.target.or(before);
    let path = list_path("bindings", args.vhost.as_deref());
    let bindings = target.http()?.read(&path).await?;
    let is_meant = |it: &&Value| {
        let is = |key: &str, wanted: &str| it.get(key).and_then(Value::as_str) == Some(wanted);
        args.exchange.as_deref().is_none_or(|wanted| {
            let is_to = is("destination_type", "exchange") && is("destination", wanted);
            is("source", wanted) || is_to
        })
    };
    let meant = bindings.as_array().into_iter().flatten().filter(is_meant);
    let mut out = Output::new();
    if target.json {
        out.document(&meant.cloned().collect())?;
        return out.flush();
    }
    let headings = ["VHOST", "EXCHANGE", "TO", "NAME", "KEY", "ARGUMENTS"];
    let mut table = Table::new(&headings, &[]);
    let columns = [
        "vhost",
        "source",
        "destination_type",
        "destination",
        "routing_key",
    ];
    for it in meant {
        let texts = columns.iter().map(|column| text(it, column));
        table.row(texts.chain([arguments(it)]));
    }
    out.line(table)?;
    out.flush()
}

/// `name=value name=value`; values that are no texts as JSON.
fn arguments(it: &Value) -> String {
    let arguments = it.get("arguments").and_then(Value::as_object);
    let words = arguments.into_iter().flatten().map(|(name, value)| {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        printable(format!("{name}={value}").as_bytes())
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_words() {
        let it = serde_json::json!({"arguments": {"x-match": "any", "n": 1, "t": {"a": true}}});
        assert_eq!(arguments(&it), "n=1 t={\"a\":true} x-match=any");
        assert_eq!(list_path("bindings", Some("/")), "/api/bindings/%2F");
        assert_eq!(list_path("bindings", None), "/api/bindings");
    }
}
