//! The types an option may have, and how each is read from text.
//!
//! Every value arrives as text, whether it was typed, exported or written into the file, so that an
//! option means the same thing in all three places.

use std::{fmt, net::SocketAddr, path::PathBuf, str::FromStr, time::Duration};

/// What an option holds; decides how it is shown and how a bare number in the file is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A path.
    Path,
    /// `IP:PORT`; port 0 picks a free one.
    Address,
    /// True or false.
    Flag,
    /// A number without a unit.
    Count,
    /// A number with `ms`, `s`, `m`, `h` or `d`.
    Duration,
    /// A number with `B`, `KiB`, `MiB`, `GiB` or `TiB`.
    Size,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Free text.
    Text,
    /// Words separated by commas; an array in the file.
    List,
    /// Text that is never shown.
    Secret,
}

impl Kind {
    /// One word for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Address => "address",
            Self::Flag => "flag",
            Self::Count => "count",
            Self::Duration => "duration",
            Self::Size => "size",
            Self::Choice(_) => "choice",
            Self::Text => "text",
            Self::List => "list",
            Self::Secret => "secret",
        }
    }
}

/// A type that an option may have.
pub(super) trait Setting: Sized {
    /// How it is shown.
    const KIND: Kind;

    /// Reads it. The error says what is allowed, without the value.
    fn parse(text: &str) -> Result<Self, String>;

    /// Whether `low <= self <= high`; types without an order have no bounds.
    fn within(&self, _low: &Self, _high: &Self) -> bool {
        true
    }
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (shift, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
            if self.0 != 0 && self.0.is_multiple_of(1 << shift) {
                return write!(f, "{}{unit}", self.0 >> shift);
            }
        }
        write!(f, "{}B", self.0)
    }
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// Failures only.
    Error,
    /// And what an operator should look at.
    Warn,
    /// And the life of the process.
    Info,
    /// And the life of connections.
    Debug,
    /// Everything.
    Trace,
}

/// Shape of a retry delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackoffShape {
    /// Retry at once.
    None,
    /// The same delay each time.
    Fixed,
    /// Doubling up to the maximum.
    Exponential,
}

/// Whether clients must show an API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authenticate {
    /// When a bootstrap key is configured, or was ever made.
    Auto,
    /// Yes.
    True,
    /// No.
    False,
}

/// A secret that is configured. It shows itself only where it is asked to.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfiguredSecret(String);

impl ConfiguredSecret {
    const CHARS_MIN: usize = 32;
    const CHARS_MAX: usize = 1024;

    /// The secret.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Takes a secret from wherever it was read. The error does not repeat it.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let (min, max) = (Self::CHARS_MIN, Self::CHARS_MAX);
        let chars = text.chars().count();
        if !(min..=max).contains(&chars) {
            return Err(format!("expected {min} to {max} characters, not {chars}"));
        }
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err("expected no spaces and no control characters".to_owned());
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for ConfiguredSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

/// What is shown in place of a secret.
pub(super) const HIDDEN: &str = "(hidden)";

impl Setting for ConfiguredSecret {
    const KIND: Kind = Kind::Secret;

    fn parse(text: &str) -> Result<Self, String> {
        Self::new(text)
    }
}

impl Setting for Authenticate {
    const KIND: Kind = Kind::Choice(&["auto", "true", "false"]);

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            _ => match bool::parse(text) {
                Ok(true) => Ok(Self::True),
                Ok(false) => Ok(Self::False),
                Err(_) => Err("expected auto, true or false".to_owned()),
            },
        }
    }
}

/// Whether clients of the doors with TLS must show a certificate, where authorities are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    /// Every client must.
    Required,
    /// A client may; one that is shown must be sound.
    Optional,
}

/// Which name in a client's certificate is the user's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateName {
    /// Its common name alone.
    CommonName,
    /// The whole name, as RFC 4514 writes it.
    DistinguishedName,
}

impl Setting for CertificateName {
    const KIND: Kind = Kind::Choice(&["common_name", "distinguished_name"]);

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "common_name" => Ok(Self::CommonName),
            "distinguished_name" => Ok(Self::DistinguishedName),
            _ => Err("expected common_name or distinguished_name".to_owned()),
        }
    }
}

/// Empty text is no value.
impl<T: Setting> Setting for Option<T> {
    const KIND: Kind = T::KIND;

    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(None);
        }
        T::parse(text).map(Some)
    }
}

impl Setting for ClientAuth {
    const KIND: Kind = Kind::Choice(&["required", "optional"]);

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "required" => Ok(Self::Required),
            "optional" => Ok(Self::Optional),
            _ => Err("expected required or optional".to_owned()),
        }
    }
}

impl Setting for PathBuf {
    const KIND: Kind = Kind::Path;

    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("expected a path".to_owned());
        }
        Ok(Self::from(text))
    }
}

impl Setting for SocketAddr {
    const KIND: Kind = Kind::Address;

    fn parse(text: &str) -> Result<Self, String> {
        let numeric = text
            .strip_prefix("localhost:")
            .map(|port| format!("127.0.0.1:{port}"));
        Self::from_str(numeric.as_deref().unwrap_or(text)).map_err(|_error| {
            "expected an IP address and a port, like \"127.0.0.1:5555\" or \"[::1]:5555\""
                .to_owned()
        })
    }
}

impl Setting for bool {
    const KIND: Kind = Kind::Flag;

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "true" | "1" | "yes" | "on" => Ok(true),
            "false" | "0" | "no" | "off" => Ok(false),
            _ => Err("expected true or false".to_owned()),
        }
    }
}

impl Setting for u32 {
    const KIND: Kind = Kind::Count;

    fn parse(text: &str) -> Result<Self, String> {
        text.parse()
            .map_err(|_error| "expected a whole number without a unit".to_owned())
    }

    fn within(&self, low: &Self, high: &Self) -> bool {
        low <= self && self <= high
    }
}

impl Setting for Duration {
    const KIND: Kind = Kind::Duration;

    fn parse(text: &str) -> Result<Self, String> {
        let ms = scaled(
            text,
            &[
                ("ms", 1),
                ("s", 1_000),
                ("m", 60_000),
                ("h", 3_600_000),
                ("d", 86_400_000),
            ],
        );
        ms.map(Self::from_millis).ok_or_else(|| {
            "expected a number with a unit (ms, s, m, h, d), like \"30s\"".to_owned()
        })
    }

    fn within(&self, low: &Self, high: &Self) -> bool {
        low <= self && self <= high
    }
}

impl Setting for ByteSize {
    const KIND: Kind = Kind::Size;

    fn parse(text: &str) -> Result<Self, String> {
        let bytes = scaled(
            text,
            &[
                ("B", 1),
                ("KiB", 1 << 10),
                ("MiB", 1 << 20),
                ("GiB", 1 << 30),
                ("TiB", 1 << 40),
            ],
        );
        bytes.map(Self).ok_or_else(|| {
            "expected a number with a unit (B, KiB, MiB, GiB, TiB), like \"64MiB\"".to_owned()
        })
    }

    fn within(&self, low: &Self, high: &Self) -> bool {
        low <= self && self <= high
    }
}

/// A whole number followed by one of `units`; `None` when it is not that, or does not fit.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(digits)?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

impl Setting for LogLevel {
    const KIND: Kind = Kind::Choice(&["error", "warn", "info", "debug", "trace"]);

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "error" => Ok(Self::Error),
            "warn" => Ok(Self::Warn),
            "info" => Ok(Self::Info),
            "debug" => Ok(Self::Debug),
            "trace" => Ok(Self::Trace),
            _ => Err("expected error, warn, info, debug or trace".to_owned()),
        }
    }
}

impl Setting for BackoffShape {
    const KIND: Kind = Kind::Choice(&["none", "fixed", "exponential"]);

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "fixed" => Ok(Self::Fixed),
            "exponential" => Ok(Self::Exponential),
            _ => Err("expected none, fixed or exponential".to_owned()),
        }
    }
}

impl Setting for String {
    const KIND: Kind = Kind::Text;

    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

impl Setting for Vec<String> {
    const KIND: Kind = Kind::List;

    fn parse(text: &str) -> Result<Self, String> {
        let words = text.split(',').map(str::trim);
        Ok(words
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(Duration::parse("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(Duration::parse("250 ms"), Ok(Duration::from_millis(250)));
        assert_eq!(Duration::parse("2d"), Ok(Duration::from_secs(172_800)));
        for bad in ["30", "", "s", "-1s", "1.5s", "30 sec", "99999999999999999d"] {
            assert!(Duration::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_are_binary_and_print_back() {
        assert_eq!(ByteSize::parse("64MiB"), Ok(ByteSize(64 << 20)));
        assert_eq!(ByteSize::parse("0B"), Ok(ByteSize(0)));
        for bad in ["64", "64MB", "MiB", "99999999999TiB"] {
            assert!(ByteSize::parse(bad).is_err(), "{bad}");
        }
        for text in ["64MiB", "1GiB", "1000B", "0B", "2TiB"] {
            let size = ByteSize::parse(text);
            assert_eq!(size.map(|s| s.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn addresses_may_say_localhost_but_no_other_name() {
        assert_eq!(
            SocketAddr::parse("localhost:1"),
            SocketAddr::parse("127.0.0.1:1")
        );
        assert!(SocketAddr::parse("example.com:1").is_err());
        assert!(SocketAddr::parse("127.0.0.1").is_err());
    }
}
