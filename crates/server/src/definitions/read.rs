//! A document as what is to be made.

use serde_json::{Map, Value};
use tanda_engine::{
    BindingSpec, DeclareQueue, Destination, ExchangeSpec, NewTopicPermissions, NewUser,
    NewVhostPermissions, PasswordChange, PasswordHash, TopicPermissions, VhostPermissions,
};

use super::{Definitions, Mistakes, ReadUser, arguments};
use crate::users::{Pattern, password};

/// Mistakes that are told of one document.
const MISTAKES_MAX: usize = 20;
/// Where RabbitMQ has what is not supported here.
const UNSUPPORTED: [&str; 4] = [
    "policies",
    "operator_policies",
    "parameters",
    "global_parameters",
];
/// The algorithm of documents that name none.
const DEFAULT_ALGORITHM: &str = "rabbit_password_hashing_sha256";

type Object = Map<String, Value>;

/// Reads a document.
///
/// # Errors
/// All its mistakes, each with the object it is in: then nothing is made.
pub(crate) fn read(text: &[u8]) -> Result<Definitions, Mistakes> {
    let document = match serde_json::from_slice(text) {
        Ok(Value::Object(document)) => document,
        Ok(_) => return Err(Mistakes(vec!["the document is no JSON object".to_owned()])),
        Err(error) => {
            let (line, column) = (error.line(), error.column());
            let mistake = format!("the document is no JSON (line {line}, column {column})");
            return Err(Mistakes(vec![mistake]));
        }
    };
    let mut mistakes = Vec::new();
    let definitions = Definitions {
        vhosts: all(&document, "vhosts", &mut mistakes, |it| text_of(it, "name")),
        users: all(&document, "users", &mut mistakes, user),
        permissions: all(&document, "permissions", &mut mistakes, permissions),
        topic_permissions: all(&document, "topic_permissions", &mut mistakes, topics),
        exchanges: all(&document, "exchanges", &mut mistakes, exchange),
        queues: all(&document, "queues", &mut mistakes, queue),
        bindings: all(&document, "bindings", &mut mistakes, binding),
        skipped: unsupported(&document),
    };
    if mistakes.is_empty() {
        return Ok(definitions);
    }
    let more = mistakes.len().saturating_sub(MISTAKES_MAX);
    mistakes.truncate(MISTAKES_MAX);
    if more > 0 {
        mistakes.push(format!("and {more} more mistakes"));
    }
    Err(Mistakes(mistakes))
}

/// The objects of one list; a list that is not there is empty.
fn all<T>(
    document: &Object,
    list: &str,
    mistakes: &mut Vec<String>,
    read: impl Fn(&Object) -> Result<T, String>,
) -> Vec<T> {
    let items = match document.get(list) {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::Array(items)) => items,
        Some(_) => {
            mistakes.push(format!("{list} is no array"));
            return Vec::new();
        }
    };
    let mut found = Vec::new();
    for (number, item) in items.iter().enumerate() {
        let Some(object) = item.as_object() else {
            mistakes.push(format!("{list}[{number}] is no object"));
            continue;
        };
        match read(object) {
            Ok(it) => found.push(it),
            Err(problem) => {
                let name = object.get("name").and_then(Value::as_str);
                let name = name.map_or_else(String::new, |name| format!(" {name:?}"));
                mistakes.push(format!("{list}[{number}]{name}: {problem}"));
            }
        }
    }
    found
}

fn unsupported(document: &Object) -> Vec<String> {
    let mut skipped = Vec::new();
    for list in UNSUPPORTED {
        let items = document.get(list).and_then(Value::as_array);
        for item in items.into_iter().flatten() {
            let name = item.get("name").and_then(Value::as_str).unwrap_or_default();
            // What RabbitMQ writes into every export, and says nothing of what is kept.
            if list == "global_parameters" {
                continue;
            }
            skipped.push(format!(
                "{list} {name:?} is not supported, and not made: give the arguments it sets to \
                 the queues and exchanges themselves"
            ));
        }
    }
    skipped
}

fn text_of(object: &Object, key: &str) -> Result<String, String> {
    let text = object.get(key).and_then(Value::as_str);
    let text = text.ok_or_else(|| format!("it has no text {key:?}"))?;
    Ok(text.to_owned())
}

fn text_or(object: &Object, key: &str, default: &str) -> Result<String, String> {
    if object.contains_key(key) {
        text_of(object, key)
    } else {
        Ok(default.to_owned())
    }
}

fn flag(object: &Object, key: &str, default: bool) -> Result<bool, String> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(default),
        Some(Value::Bool(is)) => Ok(*is),
        Some(_) => Err(format!("{key:?} is neither true nor false")),
    }
}

fn args(object: &Object) -> Result<bytes::Bytes, String> {
    match object.get("arguments") {
        None | Some(Value::Null) => Ok(bytes::Bytes::new()),
        Some(Value::Object(object)) => arguments::encode(object),
        // Erlang's JSON writes an empty object so.
        Some(Value::Array(items)) if items.is_empty() => Ok(bytes::Bytes::new()),
        Some(_) => Err("\"arguments\" is no object".to_owned()),
    }
}

fn user(object: &Object) -> Result<ReadUser, String> {
    let tags = match object.get("tags") {
        None => None,
        Some(Value::String(text)) => {
            let tags = text.split(',').map(str::trim).filter(|tag| !tag.is_empty());
            Some(tags.map(str::to_owned).collect())
        }
        Some(Value::Array(tags)) => {
            let tags: Option<Vec<_>> = tags
                .iter()
                .map(|tag| tag.as_str().map(str::to_owned))
                .collect();
            Some(tags.ok_or("\"tags\" has something that is no text")?)
        }
        Some(_) => return Err("\"tags\" is neither a text nor an array".to_owned()),
    };
    let mut password = None;
    let change = if let Some(hash) = object.get("password_hash").and_then(Value::as_str) {
        let algorithm = text_or(object, "hashing_algorithm", DEFAULT_ALGORITHM)?;
        if hash.is_empty() {
            PasswordChange::Remove
        } else {
            let hash = password::import(&algorithm, hash)?;
            PasswordChange::Set(PasswordHash::new(&hash))
        }
    } else {
        let text = text_of(object, "password")
            .map_err(|_none| "it has neither \"password_hash\" nor \"password\"")?;
        if text.is_empty() || text.len() > password::PASSWORD_BYTES_MAX {
            let max = password::PASSWORD_BYTES_MAX;
            return Err(format!("a password has 1 to {max} bytes"));
        }
        password = Some(text);
        PasswordChange::Keep
    };
    let new = NewUser {
        name: text_of(object, "name")?,
        password: change,
        tags,
    };
    Ok(ReadUser { new, password })
}

fn pattern(object: &Object, key: &str) -> Result<std::sync::Arc<str>, String> {
    let text = text_of(object, key)?;
    Pattern::compile(&text).map_err(|problem| format!("{key}: {problem}"))?;
    Ok(text.into())
}

fn permissions(object: &Object) -> Result<NewVhostPermissions, String> {
    Ok(NewVhostPermissions {
        user: text_of(object, "user")?,
        vhost: text_of(object, "vhost")?,
        permissions: VhostPermissions {
            configure: pattern(object, "configure")?,
            write: pattern(object, "write")?,
            read: pattern(object, "read")?,
        },
    })
}

fn topics(object: &Object) -> Result<NewTopicPermissions, String> {
    Ok(NewTopicPermissions {
        user: text_of(object, "user")?,
        vhost: text_of(object, "vhost")?,
        exchange: text_of(object, "exchange")?,
        permissions: TopicPermissions {
            write: pattern(object, "write")?,
            read: pattern(object, "read")?,
        },
    })
}

fn exchange(object: &Object) -> Result<(String, ExchangeSpec), String> {
    let spec = ExchangeSpec {
        name: text_of(object, "name")?,
        kind: text_of(object, "type")?,
        durable: flag(object, "durable", true)?,
        auto_delete: flag(object, "auto_delete", false)?,
        internal: flag(object, "internal", false)?,
        args: args(object)?,
        ..ExchangeSpec::default()
    };
    Ok((text_or(object, "vhost", "/")?, spec))
}

fn queue(object: &Object) -> Result<(String, DeclareQueue), String> {
    let name = text_of(object, "name")?;
    if name.is_empty() {
        return Err("a queue of a document has a name".to_owned());
    }
    let declare = DeclareQueue {
        name,
        durable: flag(object, "durable", true)?,
        auto_delete: flag(object, "auto_delete", false)?,
        args: args(object)?,
        ..DeclareQueue::default()
    };
    Ok((text_or(object, "vhost", "/")?, declare))
}

fn binding(object: &Object) -> Result<(String, BindingSpec), String> {
    let destination = text_of(object, "destination")?;
    let destination = match text_or(object, "destination_type", "queue")?.as_str() {
        "queue" => Destination::Queue(destination),
        "exchange" => Destination::Exchange(destination),
        other => return Err(format!("the destination type {other:?} is unknown")),
    };
    let spec = BindingSpec {
        vhost: tanda_engine::VhostId::DEFAULT,
        source: text_of(object, "source")?,
        destination,
        key: text_or(object, "routing_key", "")?,
        args: args(object)?,
    };
    Ok((text_or(object, "vhost", "/")?, spec))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mistake_is_told_with_its_object() {
        let text = br#"{
            "users": [
                {"name": "anna", "password_hash": "x", "tags": []},
                {"name": "berta", "password_hash": "x", "hashing_algorithm": "md5"},
                {"name": "carla"},
                7
            ],
            "permissions": [
                {"user": "a", "vhost": "/", "configure": "(", "write": "", "read": ""}
            ],
            "queues": {"name": "q"},
            "bindings": [{"source": "", "destination": "q", "destination_type": "shelf"}]
        }"#;
        let Err(Mistakes(mistakes)) = read(text) else {
            panic!("no mistakes")
        };
        let starts = [
            "users[0] \"anna\": password_hash is not the base64",
            "users[1] \"berta\": hashing_algorithm \"md5\" is not supported",
            "users[2] \"carla\": it has neither",
            "users[3] is no object",
            "permissions[0]: configure: cannot use the regular expression \"(\"",
            "queues is no array",
            "bindings[0]: the destination type \"shelf\" is unknown",
        ];
        assert_eq!(mistakes.len(), starts.len(), "{mistakes:?}");
        for start in starts {
            let told = mistakes.iter().any(|mistake| mistake.starts_with(start));
            assert!(told, "{start} in {mistakes:?}");
        }
        for text in ["", "[]", "{"] {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_not_supported_is_named_and_the_rest_is_read() {
        let text = br#"{
            "rabbit_version": "4.1.0",
            "vhosts": [{"name": "shop"}],
            "policies": [{"name": "ha", "vhost": "/", "pattern": ".*", "definition": {}}],
            "global_parameters": [{"name": "cluster_name", "value": "x"}],
            "exchanges": [{"name": "e", "type": "topic", "vhost": "shop"}],
            "queues": [{"name": "q", "vhost": "shop", "arguments": []}]
        }"#;
        let read = read(text).unwrap();
        assert_eq!(read.vhosts, ["shop"]);
        assert_eq!((read.exchanges.len(), read.queues.len()), (1, 1));
        assert_eq!(read.skipped.len(), 1);
        assert!(read.skipped[0].starts_with("policies \"ha\" is not supported"));
    }
}
