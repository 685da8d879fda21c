//! HELLO: what the server says of itself.

use std::borrow::Cow;

use tanda_wire::amaquet::PROTOCOL_VERSION;
use tanda_wire::amaquet::command::{COMMANDS, Spec, ValueType};
use tanda_wire::amaquet::envelope::Failure;
use tanda_wire::amaquet::json::Writer;
use tanda_wire::base64;

use super::config::AmaquetConfig;
use super::fields::{Fields, mistyped, out_of_limits};
use super::link::Link;
use super::outbound::Asked;
use crate::login::Authentication;

/// What stands before the nonce in what is signed.
const SIGNED: &[u8] = b"amaquet-hello-v1";

impl Link {
    /// Answers HELLO.
    ///
    /// # Errors
    /// The payload makes no sense.
    pub(super) fn on_hello(&mut self, asked: Asked, payload: &[u8]) -> Result<(), Failure> {
        let nonce = nonce_of(payload)?;
        let config = &*self.config;
        let signature = nonce.map(|nonce| config.node.sign(&[SIGNED, &nonce].concat()));
        self.outbound.result(asked, |out| {
            out.object(|out| write_hello(out, config, signature));
        });
        Ok(())
    }
}

fn write_hello(out: &mut Writer<'_>, config: &AmaquetConfig, signature: Option<[u8; 64]>) {
    let max_payload = config.limits.max_payload;
    out.key("server").str("tanda");
    out.key("version").str(config.facts.version());
    out.key("protocol").u64(PROTOCOL_VERSION.into());
    out.key("node_id").str(config.node.node_id());
    out.key("auth_required")
        .bool(config.authentication == Authentication::On);
    out.key("max_payload").u64(max_payload.into());
    out.key("features").array(|out| {
        let mut last = "";
        for family in COMMANDS.iter().map(Spec::family) {
            if family != last {
                out.str(family);
            }
            last = family;
        }
    });
    out.key("public_key")
        .str(&text_of(&config.node.public_key()));
    let out = out.key("signature");
    match signature {
        Some(signature) => out.str(&text_of(&signature)),
        None => out.null(),
    }
}

fn text_of(bytes: &[u8]) -> String {
    let mut text = Vec::new();
    base64::encode(&mut text, bytes);
    String::from_utf8(text).unwrap_or_default()
}

/// The decoded nonce of a payload that may be absent.
fn nonce_of(payload: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
    const LIMITS: &str = "base64 of 16 to 64 bytes";
    if payload.is_empty() {
        return Ok(None);
    }
    let Some(nonce) = Fields::read(payload)?.optional("nonce") else {
        return Ok(None);
    };
    let text: Option<Cow<'_, str>> = nonce.as_str();
    let text = text.ok_or_else(|| mistyped("nonce", ValueType::String, nonce))?;
    match base64::decode(&text) {
        Ok(bytes) if (16..=64).contains(&bytes.len()) => Ok(Some(bytes)),
        Ok(bytes) => {
            let found = format!("{} bytes", bytes.len());
            Err(out_of_limits("nonce", found, LIMITS))
        }
        Err(error) => Err(out_of_limits("nonce", format!("({error})"), LIMITS)),
    }
}
