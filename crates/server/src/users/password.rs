//! Passwords, and what they are checked against.
//!
//! A hash is text: a PHC string of argon2id (and `~` and a mark of the hash before), or what
//! RabbitMQ makes, with a prefix: `rabbit-sha256:` or `rabbit-sha512:` and the base64 of four bytes
//! of salt and the hash of salt and password.

use argon2::{
    Algorithm, Argon2, Params, PasswordHasher, PasswordVerifier, Version,
    password_hash::{PasswordHash as Phc, SaltString},
};
use sha2::{Digest, Sha256, Sha512};
use tanda_wire::base64;

use crate::random;

/// Longest password, in bytes: checking one takes memory and time.
pub(crate) const PASSWORD_BYTES_MAX: usize = 4096;

/// 19 MiB and two passes: the second of the settings that OWASP names equal (2026). About 25 ms on
/// one core here.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// What a hash from elsewhere may cost, so that nobody's login takes the machine.
const MEMORY_KIB_MAX: u32 = 256 * 1024;
const PASSES_MAX: u32 = 16;
const LANES_MAX: u32 = 16;

/// Of no password, at the cost of any other.
const NOBODYS: &str = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA\
                       $AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

const RABBIT_SHA256: &str = "rabbit-sha256:";
const RABBIT_SHA512: &str = "rabbit-sha512:";
const RABBIT_SALT_BYTES: usize = 4;

/// What became of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Wrong,
    Right,
    /// Right, and it should be hashed anew: the hash is an older one.
    RightByOldHash,
}

/// Hashes a password. `None` when it is too long.
pub(crate) fn hash(password: &[u8]) -> Option<String> {
    if password.len() > PASSWORD_BYTES_MAX {
        return None;
    }
    let salt = SaltString::encode_b64(&random::u128().to_ne_bytes()).ok()?;
    let hash = hasher().hash_password(password, &salt).ok()?;
    Some(hash.to_string())
}

fn hasher() -> Argon2<'static> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).unwrap_or_default();
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

/// Checks a password against a hash; without one it takes as long as with one.
pub(crate) fn verify(hash: Option<&str>, password: &[u8]) -> Verdict {
    let Some(hash) = hash.filter(|_| password.len() <= PASSWORD_BYTES_MAX) else {
        // Whatever it says, nobody has this password.
        let _: Verdict = verify_argon2(NOBODYS, password);
        return Verdict::Wrong;
    };
    let Some(is_right) = verify_rabbit(hash, password) else {
        return verify_argon2(hash, password);
    };
    // It takes as long as any other check, or users with such hashes could be told apart.
    let unknown = verify_argon2(NOBODYS, password);
    if is_right && unknown == Verdict::Wrong {
        Verdict::RightByOldHash
    } else {
        Verdict::Wrong
    }
}

fn verify_argon2(stored: &str, password: &[u8]) -> Verdict {
    let (hash, _) = split(stored);
    let Some((phc, params)) = read_argon2(hash) else {
        return Verdict::Wrong;
    };
    if Argon2::default().verify_password(password, &phc).is_err() {
        return Verdict::Wrong;
    }
    let ours = (MEMORY_KIB, PASSES, LANES);
    if (params.m_cost(), params.t_cost(), params.p_cost()) == ours {
        Verdict::Right
    } else {
        Verdict::RightByOldHash
    }
}

/// A hash of argon2id whose check costs no more than it may.
fn read_argon2(hash: &str) -> Option<(Phc<'_>, Params)> {
    let phc = Phc::new(hash).ok()?;
    let params = Params::try_from(&phc).ok()?;
    let fits = params.m_cost() <= MEMORY_KIB_MAX
        && params.t_cost() <= PASSES_MAX
        && params.p_cost() <= LANES_MAX;
    let is_ours = phc.algorithm == Algorithm::Argon2id.ident();
    (fits && is_ours && phc.hash.is_some() && phc.salt.is_some()).then_some((phc, params))
}

/// `None` when it is no hash of RabbitMQ's.
fn verify_rabbit(hash: &str, password: &[u8]) -> Option<bool> {
    if let Some(text) = hash.strip_prefix(RABBIT_SHA256) {
        return Some(verify_salted::<Sha256>(text, password));
    }
    let text = hash.strip_prefix(RABBIT_SHA512)?;
    Some(verify_salted::<Sha512>(text, password))
}

fn verify_salted<D: Digest>(text: &str, password: &[u8]) -> bool {
    let Some(bytes) = base64::decode_leniently(text) else {
        return false;
    };
    let Some((salt, expected)) = bytes.split_at_checked(RABBIT_SALT_BYTES) else {
        return false;
    };
    let found = D::new()
        .chain_update(salt)
        .chain_update(password)
        .finalize();
    let is_long = found.len() == expected.len();
    let differences = found.iter().zip(expected).map(|(a, b)| a ^ b);
    is_long && differences.fold(0, |all, bits| all | bits) == 0
}

/// Takes a hash that somebody else made: RabbitMQ's by the name of its algorithm, or one of
/// argon2id as it is exported here.
///
/// # Errors
/// What is wrong with it. The hash is not in it.
pub(crate) fn import(algorithm: &str, hash: &str) -> Result<String, String> {
    let salted = |prefix: &str, bytes: usize| {
        let decoded = base64::decode_leniently(hash).map(|bytes| bytes.len());
        if decoded == Some(RABBIT_SALT_BYTES + bytes) {
            return Ok(format!("{prefix}{hash}"));
        }
        let expected = RABBIT_SALT_BYTES + bytes;
        Err(format!(
            "password_hash is not the base64 of {expected} bytes, as {algorithm} makes it"
        ))
    };
    match algorithm {
        "rabbit_password_hashing_sha256" => salted(RABBIT_SHA256, 32),
        "rabbit_password_hashing_sha512" => salted(RABBIT_SHA512, 64),
        "argon2id" if read_argon2(hash).is_some() => Ok(hash.to_owned()),
        "argon2id" => Err(format!(
            "password_hash is no PHC string of argon2id with at most {MEMORY_KIB_MAX} KiB, \
             {PASSES_MAX} passes and {LANES_MAX} lanes"
        )),
        other => Err(format!(
            "hashing_algorithm {other:?} is not supported: those that are are \
             rabbit_password_hashing_sha256, rabbit_password_hashing_sha512 and argon2id"
        )),
    }
}

/// The name of a hash's algorithm and the hash, as [`import`] takes them.
pub(crate) fn export(hash: &str) -> (&'static str, &str) {
    if let Some(text) = hash.strip_prefix(RABBIT_SHA256) {
        return ("rabbit_password_hashing_sha256", text);
    }
    if let Some(text) = hash.strip_prefix(RABBIT_SHA512) {
        return ("rabbit_password_hashing_sha512", text);
    }
    let (hash, _) = split(hash);
    ("argon2id", hash)
}

/// Hashes a password whose hash is an older one. The new hash remembers which: a document with the
/// old one says nothing new then. What it remembers are 32 bits; with the salt unknown, every
/// password fits them as well as any other.
pub(super) fn hash_anew(password: &[u8], old: &str) -> Option<String> {
    let hash = hash(password)?;
    Some(format!("{hash}~{}", mark(old)))
}

/// Whether a user's hash is this one, or took its place.
pub(super) fn was_made_of(stored: &str, other: &str) -> bool {
    stored == other || split(stored).1.is_some_and(|marked| marked == mark(other))
}

fn mark(hash: &str) -> String {
    let digest = Sha256::digest(hash.as_bytes());
    let bytes = digest.iter().take(4);
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

/// The hash itself, and what it remembers.
fn split(stored: &str) -> (&str, Option<&str>) {
    match stored.split_once('~') {
        Some((hash, mark)) => (hash, Some(mark)),
        None => (stored, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From RabbitMQ's documentation: `test12`, with the salt 908D C60A.
    const TEST12: &str = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR";

    #[test]
    fn a_password_is_right_by_its_own_hash_only() {
        let first = hash(b"secret").unwrap();
        assert!(
            first.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
            "{first}"
        );
        assert_ne!(first, hash(b"secret").unwrap());
        assert_eq!(verify(Some(&first), b"secret"), Verdict::Right);
        assert_eq!(verify(Some(&first), b"Secret"), Verdict::Wrong);
        assert_eq!(verify(None, b"secret"), Verdict::Wrong);
        assert_eq!(verify(Some("nonsense"), b"secret"), Verdict::Wrong);
        assert_eq!(hash(&[b'x'; PASSWORD_BYTES_MAX + 1]), None);
    }

    #[test]
    fn nobodys_hash_can_be_checked_against() {
        assert!(read_argon2(NOBODYS).is_some());
    }

    #[test]
    fn rabbitmqs_hashes_are_known_and_old() {
        let stored = import("rabbit_password_hashing_sha256", TEST12).unwrap();
        assert_eq!(verify(Some(&stored), b"test12"), Verdict::RightByOldHash);
        assert_eq!(verify(Some(&stored), b"test13"), Verdict::Wrong);
        assert_eq!(export(&stored), ("rabbit_password_hashing_sha256", TEST12));
        // The new hash knows the old one.
        let anew = hash_anew(b"test12", &stored).unwrap();
        assert_eq!(verify(Some(&anew), b"test12"), Verdict::Right);
        assert!(was_made_of(&anew, &stored) && was_made_of(&stored, &stored));
        assert!(!was_made_of(&anew, &stored[1..]) && !was_made_of(&stored, &anew));
        let (algorithm, exported) = export(&anew);
        assert_eq!(algorithm, "argon2id");
        assert!(import(algorithm, exported).is_ok());
        let salted = [&[1, 2, 3, 4], &Sha512::digest(b"\x01\x02\x03\x04pw")[..]].concat();
        let mut text = Vec::new();
        base64::encode(&mut text, &salted);
        let text = String::from_utf8(text).unwrap();
        let stored = import("rabbit_password_hashing_sha512", &text).unwrap();
        assert_eq!(verify(Some(&stored), b"pw"), Verdict::RightByOldHash);
        assert_eq!(verify(Some(&stored), b""), Verdict::Wrong);
    }

    #[test]
    fn hashes_that_cannot_be_checked_are_refused_without_being_said() {
        for (algorithm, hash) in [
            ("rabbit_password_hashing_md5", TEST12),
            ("rabbit_password_hashing_sha512", TEST12),
            ("rabbit_password_hashing_sha256", "kI3GCqW5"),
            ("rabbit_password_hashing_sha256", "!!"),
            ("argon2id", TEST12),
            (
                "argon2id",
                "$argon2i$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAA",
            ),
            (
                "argon2id",
                "$argon2id$v=19$m=4194304,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAA",
            ),
        ] {
            let error = import(algorithm, hash).unwrap_err();
            assert!(!error.contains(hash), "{error}");
        }
        let ours = hash(b"x").unwrap();
        assert_eq!(import("argon2id", &ours).as_deref(), Ok(ours.as_str()));
        let cheap = "$argon2id$v=19$m=8,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA";
        assert!(import("argon2id", cheap).is_ok());
    }
}
