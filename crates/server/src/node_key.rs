//! What a node proves itself with: an Ed25519 key pair.
//!
//! Owns its text form, its checks, and signing. Refuses to know where the file lies, and what is
//! signed.

use std::fmt::{self, Write};

use ring::signature::{Ed25519KeyPair, KeyPair};
use sha2::{Digest, Sha256};

use crate::random;

/// First line of the file.
const HEADER: &str = "tanda node key, version 1";
/// Before the two values, each 32 bytes as hexadecimal digits.
const SEED: &str = "ed25519 seed ";
const PUBLIC: &str = "ed25519 public ";
/// Bytes of the hash of the public key that name the node.
const ID_BYTES: usize = 16;

/// The key pair of a node, and the name that follows from it.
pub(crate) struct NodeKey {
    pair: Ed25519KeyPair,
    public: [u8; 32],
    id: String,
}

/// Why there is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKeyProblem {
    /// The file is not as one was written, in this respect.
    Damaged(&'static str),
    /// The system draws no random bits.
    NoEntropy,
}

impl NodeKey {
    /// A new one, and the text to keep it by.
    pub(crate) fn draw() -> Result<(Self, String), NodeKeyProblem> {
        let seed = random::secret().ok_or(NodeKeyProblem::NoEntropy)?;
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed);
        let pair = pair.map_err(|_rejected| NodeKeyProblem::NoEntropy)?;
        let key = Self::of(pair)?;
        let (seed, public) = (hex(&seed), hex(&key.public));
        let text = format!("{HEADER}\n{SEED}{seed}\n{PUBLIC}{public}\n");
        Ok((key, text))
    }

    /// The one that a file holds.
    ///
    /// # Errors
    /// When anything in it is not as it was written: a node must not become another one unnoticed.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, NodeKeyProblem> {
        let text =
            str::from_utf8(bytes).map_err(|_other| NodeKeyProblem::Damaged("it is no text"))?;
        let mut lines = text.lines();
        if lines.next() != Some(HEADER) {
            let why = "its first line is not \"tanda node key, version 1\"";
            return Err(NodeKeyProblem::Damaged(why));
        }
        let mut value = |name, why| {
            let line = lines.next().and_then(|line| line.strip_prefix(name));
            line.and_then(unhex).ok_or(NodeKeyProblem::Damaged(why))
        };
        let seed: [u8; 32] = value(SEED, "its second line is no seed of 64 hex digits")?;
        let public: [u8; 32] = value(PUBLIC, "its third line is no public key of 64 hex digits")?;
        if lines.next().is_some() {
            return Err(NodeKeyProblem::Damaged("something follows its third line"));
        }
        let pair = Ed25519KeyPair::from_seed_and_public_key(&seed, &public);
        let why = "its public key does not belong to its seed";
        Self::of(pair.map_err(|_rejected| NodeKeyProblem::Damaged(why))?)
    }

    fn of(pair: Ed25519KeyPair) -> Result<Self, NodeKeyProblem> {
        let public = pair.public_key().as_ref().try_into();
        let public: [u8; 32] =
            public.map_err(|_length| NodeKeyProblem::Damaged("its public key has not 32 bytes"))?;
        let digest = Sha256::digest(public);
        let id = hex(digest.get(..ID_BYTES).unwrap_or_default());
        Ok(Self { pair, public, id })
    }

    /// What the node is called: 32 hex digits.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// By which others check what it signs.
    pub(crate) const fn public(&self) -> [u8; 32] {
        self.public
    }

    /// The signature of these bytes.
    pub(crate) fn sign(&self, bytes: &[u8]) -> [u8; 64] {
        let signature = self.pair.sign(bytes);
        let mut out = [0; 64];
        for (to, from) in out.iter_mut().zip(signature.as_ref()) {
            *to = *from;
        }
        out
    }
}

/// Without the secret.
impl fmt::Debug for NodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeKey")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let written = write!(text, "{byte:02x}");
        debug_assert!(written.is_ok(), "writing to a String does not fail");
    }
    text
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let is_hex = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    if text.len() != 64 || !text.as_bytes().iter().all(is_hex) {
        return None;
    }
    let mut bytes = [0; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok()?;
    }
    Some(bytes)
}

impl fmt::Display for NodeKeyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged(what) => write!(
                f,
                "{what}, so the key of this node cannot be read; bring the file back, or remove it \
                 if clients may see another node from now on"
            ),
            Self::NoEntropy => f.write_str("the system draws no random bits for the node's key"),
        }
    }
}

impl std::error::Error for NodeKeyProblem {}

#[cfg(test)]
mod tests {
    use ring::signature::{ED25519, UnparsedPublicKey};

    use super::*;

    /// RFC 8032, 7.1, test 2.
    const KNOWN: &str = "tanda node key, version 1\n\
        ed25519 seed 4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb\n\
        ed25519 public 3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c\n";

    #[test]
    fn signatures_are_those_of_rfc_8032() {
        let key = NodeKey::parse(KNOWN.as_bytes()).unwrap();
        let expected = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
                        085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";
        assert_eq!(hex(&key.sign(&[0x72])), expected);
        assert_eq!(key.id().len(), 32);
    }

    #[test]
    fn a_new_one_is_read_back_as_itself() {
        let (key, text) = NodeKey::draw().unwrap();
        let again = NodeKey::parse(text.as_bytes()).unwrap();
        assert_eq!(again.id(), key.id());
        let public = UnparsedPublicKey::new(&ED25519, key.public());
        public.verify(b"bytes", &again.sign(b"bytes")).unwrap();
        assert_ne!(NodeKey::draw().unwrap().0.id(), key.id());
    }

    #[test]
    fn whatever_is_damaged_is_refused_and_the_seed_is_not_shown() {
        for at in 0..KNOWN.len() {
            let mut bytes = KNOWN.as_bytes().to_vec();
            bytes[at] ^= 1;
            let damaged = NodeKey::parse(&bytes);
            assert!(damaged.is_err(), "byte {at}");
            let cut = NodeKey::parse(&KNOWN.as_bytes()[..at]);
            assert!(cut.is_err() || at == KNOWN.len() - 1, "cut at {at}");
        }
        assert!(NodeKey::parse(format!("{KNOWN}more\n").as_bytes()).is_err());
        let shown = format!("{:?}", NodeKey::parse(KNOWN.as_bytes()).unwrap());
        assert!(!shown.contains("4ccd089b"), "{shown}");
    }
}
