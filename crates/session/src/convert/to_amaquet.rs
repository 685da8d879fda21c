//! Messages of every door as Amaquet shows them: a payload whose type the content type tells, and
//! headers as texts.
//!
//! | `content_type` | `payload.type` |
//! |---|---|
//! | `application/json`, `.../...+json` | `json`, when the body is valid JSON |
//! | `text/...` | `text`, when the body is valid UTF-8 |
//! | others, none | `bytes` |
//!
//! Properties of AMQP and FireMQ are headers named `amqp.content_type` ..., as Fila's consumers see
//! them. What every message of Amaquet says of itself is left out: that it is persistent, and a
//! content type that `payload.type` tells.

use std::borrow::Cow;
use std::collections::BTreeSet;

use tanda_engine::{Content, Form};
use tanda_wire::amaquet::{Json, Payload};
use tanda_wire::amqp::{Properties, PropertyKind};
use tanda_wire::mapping::FireMessage;

/// The content type of messages whose payload is of type json.
pub(crate) const JSON: &str = "application/json";
/// The content type of messages whose payload is of type text.
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";
/// The content type of messages whose payload is of type bytes.
pub(crate) const BYTES: &str = "application/octet-stream";

/// The headers of a message, in their order.
pub(crate) type TextHeaders<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

/// The content type of a payload.
pub(crate) const fn content_type(payload: &Payload<'_>) -> &'static str {
    match payload {
        Payload::Json(_) => JSON,
        Payload::Text(_) => TEXT,
        Payload::Bytes(_) => BYTES,
    }
}

/// The payload of a message.
pub(crate) fn payload(form: Form, content: &[u8]) -> Payload<'_> {
    let body = Content::new(form, content).payload().unwrap_or_default();
    let said = said_type(form, content);
    let media = said.split(';').next().unwrap_or_default().trim();
    let starts = |prefix: &str| {
        let start = media.get(..prefix.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    let ends = |suffix: &str| {
        let end = media.len().checked_sub(suffix.len());
        let end = end.and_then(|at| media.get(at..));
        end.is_some_and(|end| end.eq_ignore_ascii_case(suffix))
    };
    if media.eq_ignore_ascii_case(JSON) || ends("+json") {
        if let Ok(json) = Json::parse(body) {
            return Payload::Json(Cow::Borrowed(json.text()));
        }
    } else if starts("text/")
        && let Ok(text) = core::str::from_utf8(body)
    {
        return Payload::Text(Cow::Borrowed(text));
    }
    Payload::Bytes(Cow::Borrowed(body))
}

/// What a message says of its body.
fn said_type(form: Form, content: &[u8]) -> &str {
    let properties = Content::new(form, content).properties();
    match form {
        Form::Fila => "",
        Form::Amqp => {
            let properties = Properties::decode(properties).ok();
            // A short string with its length before it.
            let raw = properties.and_then(|it| it.raw_value(PropertyKind::ContentType));
            let text = raw.and_then(|raw| raw.get(1..)).unwrap_or_default();
            core::str::from_utf8(text).unwrap_or_default()
        }
        Form::Fire => FireMessage::decode(properties).props.fields().content_type,
    }
}

/// The headers of a message whose payload is shown as this. Of several with one name the first
/// counts, as at the other doors: they become an object.
pub(crate) fn headers<'a>(form: Form, content: &'a [u8], payload: &Payload<'_>) -> TextHeaders<'a> {
    let is_own = |name: &str, value: &str| match name {
        "amqp.content_type" => value == content_type(payload),
        "amqp.delivery_mode" => value == "2",
        _ => false,
    };
    let headers = Content::new(form, content).headers();
    let headers = headers.map(|(name, value)| (text(name), text(value)));
    let mut headers: TextHeaders<'a> = headers
        .filter(|(name, value)| form == Form::Fila || !is_own(name, value))
        .collect();
    if headers.len() > 1 {
        let mut names = BTreeSet::new();
        headers.retain(|(name, _)| names.insert(name.clone()));
    }
    headers
}

fn text(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    match bytes {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => match String::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(error) => String::from_utf8_lossy(error.as_bytes())
                .into_owned()
                .into(),
        },
    }
}
