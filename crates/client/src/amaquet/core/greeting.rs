//! What the server says of itself and of the caller, and the proof that it is who it says.

use std::fmt;

use ring::signature::{ED25519, UnparsedPublicKey};
use tanda_wire::amaquet::frame::PAYLOAD_BYTES_HARD_MAX;
use tanda_wire::amaquet::json::{Json, Writer};
use tanda_wire::base64;

/// What stands before the nonce in what the server signs.
const SIGNED_PREFIX: &[u8] = b"amaquet-hello-v1";
/// Bytes of a nonce of this client.
pub(crate) const NONCE_BYTES: usize = 32;

/// What the server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hello {
    /// The program that answers.
    pub server: String,
    /// Its version.
    pub version: String,
    /// The name of the node.
    pub node_id: String,
    /// Whether it wants an API key.
    pub auth_required: bool,
    /// The largest payload it takes, in bytes.
    pub payload_bytes_max: u32,
    /// What it can do beyond the protocol.
    pub features: Vec<String>,
    /// The node's public key (Ed25519). It has signed a nonce of this client with it.
    pub public_key: [u8; 32],
}

/// Who the server takes this client for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Login {
    /// The id of the API key; `None` where no key is asked for.
    pub key_id: Option<String>,
    /// The name of the API key.
    pub name: String,
    /// Whether it may do everything.
    pub is_superadmin: bool,
}

/// What is wrong with a greeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GreetingProblem {
    /// A field is missing or of another type.
    Field(&'static str),
    /// The signature is not of this nonce by this key.
    Signature,
    /// The node has another key than the caller expects.
    OtherKey,
}

impl fmt::Display for GreetingProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, "its greeting has no usable {name:?}"),
            Self::Signature => f.write_str("its signature of the greeting is wrong"),
            Self::OtherKey => f.write_str("its public key is not the expected one"),
        }
    }
}

impl Hello {
    /// The public key in base64, as [`server_key_of`] reads it.
    #[must_use]
    pub fn public_key_text(&self) -> String {
        encoded(&self.public_key)
    }
}

/// Reads a public key in base64; `None` when it is none.
#[must_use]
pub fn server_key_of(text: &str) -> Option<[u8; 32]> {
    base64::decode(text).ok()?.try_into().ok()
}

fn encoded(bytes: &[u8]) -> String {
    let mut text = Vec::new();
    base64::encode(&mut text, bytes);
    // Base64 is ASCII.
    String::from_utf8(text).unwrap_or_default()
}

/// Writes the payload of HELLO.
pub(super) fn write_hello(out: &mut Vec<u8>, nonce: &[u8; NONCE_BYTES]) {
    Writer::new(out).object(|out| out.key("nonce").str(&encoded(nonce)));
}

/// Writes the payload of AUTH.
pub(super) fn write_auth(out: &mut Vec<u8>, api_key: &str) {
    Writer::new(out).object(|out| out.key("api_key").str(api_key));
}

impl Hello {
    /// Reads a greeting and checks its signature.
    pub(super) fn read(
        result: &[u8],
        nonce: &[u8; NONCE_BYTES],
        expected: Option<&[u8; 32]>,
    ) -> Result<Self, GreetingProblem> {
        let fields = Fields::of(result);
        let bytes = |name| {
            let text = fields.text(name)?;
            base64::decode(&text).map_err(|_invalid| GreetingProblem::Field(name))
        };
        let public_key: [u8; 32] = bytes("public_key")?
            .try_into()
            .map_err(|_length| GreetingProblem::Field("public_key"))?;
        if expected.is_some_and(|expected| *expected != public_key) {
            return Err(GreetingProblem::OtherKey);
        }
        let signed = [SIGNED_PREFIX, nonce].concat();
        UnparsedPublicKey::new(&ED25519, public_key)
            .verify(&signed, &bytes("signature")?)
            .map_err(|_unspecified| GreetingProblem::Signature)?;
        let max = fields.get("max_payload").and_then(Json::as_u64);
        let max = max.ok_or(GreetingProblem::Field("max_payload"))?;
        let texts = |value: Json<'_>| {
            let texts = value.as_array()?.filter_map(Json::as_str);
            Some(texts.map(String::from).collect())
        };
        Ok(Self {
            server: fields.text("server")?,
            version: fields.text("version")?,
            node_id: fields.text("node_id")?,
            auth_required: fields.flag("auth_required")?,
            payload_bytes_max: u32::try_from(max)
                .unwrap_or(u32::MAX)
                .min(PAYLOAD_BYTES_HARD_MAX),
            features: fields.get("features").and_then(texts).unwrap_or_default(),
            public_key,
        })
    }
}

impl Login {
    pub(super) fn read(result: &[u8]) -> Result<Self, GreetingProblem> {
        let fields = Fields::of(result);
        Ok(Self {
            key_id: fields.text("key_id").ok(),
            name: fields.text("name")?,
            is_superadmin: fields.flag("superadmin")?,
        })
    }
}

/// The fields of a result.
struct Fields<'a>(Vec<(String, Json<'a>)>);

impl<'a> Fields<'a> {
    fn of(result: &'a [u8]) -> Self {
        let object = Json::parse(result).ok().and_then(Json::as_object);
        let fields = object.into_iter().flatten();
        Self(fields.map(|(key, it)| (key.into_owned(), it)).collect())
    }

    fn get(&self, name: &str) -> Option<Json<'a>> {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| *value)
    }

    fn text(&self, name: &'static str) -> Result<String, GreetingProblem> {
        let text = self.get(name).and_then(Json::as_str);
        let text = text.ok_or(GreetingProblem::Field(name))?;
        Ok(text.into_owned())
    }

    fn flag(&self, name: &'static str) -> Result<bool, GreetingProblem> {
        let flag = self.get(name).and_then(Json::as_bool);
        flag.ok_or(GreetingProblem::Field(name))
    }
}
