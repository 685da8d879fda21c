//! Connection URLs (`Transports`): `fire://user:password@host:5673/vhost`.
//!
//! Owns: which parts a URL has, their defaults, and percent decoding.
//! Refuses to know: how a name is resolved, and what is sent.

use core::fmt;
use core::str::FromStr;

/// The longest URL that is read, in bytes.
pub const URL_BYTES_MAX: usize = 4096;
/// The endpoint of a WebSocket URL without a path.
pub const WEBSOCKET_PATH: &str = "/fire";
/// The virtual host when none is named.
pub const VHOST_DEFAULT: &str = "/";
/// The user when none is named, and its password.
pub const USER_DEFAULT: &str = "guest";

/// How a client reaches the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// TCP.
    Fire,
    /// TLS.
    Fires,
    /// WebSocket.
    Ws,
    /// WebSocket over TLS.
    Wss,
}

impl Scheme {
    /// All of them.
    pub const ALL: &'static [Self] = &[Self::Fire, Self::Fires, Self::Ws, Self::Wss];

    /// Its name in a URL.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fire => "fire",
            Self::Fires => "fires",
            Self::Ws => "ws",
            Self::Wss => "wss",
        }
    }

    /// The port when none is named.
    #[must_use]
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Fire => 5673,
            Self::Fires => 5674,
            Self::Ws => 15_672,
            Self::Wss => 15_671,
        }
    }

    /// Whether it needs TLS.
    #[must_use]
    pub const fn is_tls(self) -> bool {
        matches!(self, Self::Fires | Self::Wss)
    }

    /// Whether it is a WebSocket.
    #[must_use]
    pub const fn is_websocket(self) -> bool {
        matches!(self, Self::Ws | Self::Wss)
    }
}

/// A connection URL, its parts decoded.
///
/// `Debug` does not show the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    /// How to reach the server.
    pub scheme: Scheme,
    /// The user; [`USER_DEFAULT`] when the URL has none.
    pub user: String,
    /// The user's password; that of [`USER_DEFAULT`] when the URL has none.
    pub password: String,
    /// A name or an address; an IPv6 address is without its brackets.
    pub host: String,
    /// The port; never 0.
    pub port: u16,
    /// The virtual host; never empty.
    pub vhost: String,
    /// What a WebSocket handshake asks for: path and query as written, [`WEBSOCKET_PATH`] when
    /// there is no path. Empty for the other schemes.
    pub target: String,
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Url")
            .field("scheme", &self.scheme)
            .field("user", &self.user)
            .field("host", &self.host)
            .field("port", &self.port)
            .field("vhost", &self.vhost)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

/// What is wrong with a URL. None of it repeats a part that may hold the password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UrlError {
    /// Longer than [`URL_BYTES_MAX`].
    TooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// A character no URL has: a space, a control character, or one that is not ASCII.
    Character {
        /// Bytes from its start to the character.
        offset: usize,
    },
    /// No `scheme://` in front.
    NoScheme,
    /// Another scheme than those of [`Scheme`].
    Scheme {
        /// The one found.
        found: String,
    },
    /// No host after the scheme and the user.
    NoHost,
    /// An IPv6 address whose brackets are not closed, or that is followed by no port.
    Brackets,
    /// A port that is no number from 1 to 65,535. It is not repeated: with a `/` in the password
    /// that is not written as `%2F`, it is the password.
    Port,
    /// A `%` without two hexadecimal digits, or bytes that are no UTF-8.
    Percent {
        /// Where: `user`, `password`, `host` or `vhost`.
        part: &'static str,
    },
    /// A query after `fire://` or `fires://`, which have none.
    Query,
    /// A fragment (`#`), which means nothing here.
    Fragment,
    /// More than one `vhost` in the query.
    VhostTwice,
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { len } => write!(
                f,
                "the URL has {len} bytes: {URL_BYTES_MAX} are the most that are read"
            ),
            Self::Character { offset } => write!(
                f,
                "the URL has a character at byte {offset} that must be written as %XX"
            ),
            Self::NoScheme => {
                f.write_str("the URL must start with fire://, fires://, ws:// or wss://")
            }
            Self::Scheme { found } => write!(
                f,
                "the URL's scheme is {found:?}: it must be fire, fires, ws or wss"
            ),
            Self::NoHost => f.write_str("the URL names no host"),
            Self::Brackets => {
                f.write_str("the URL's IPv6 address must be in brackets, as in [::1]:5673")
            }
            Self::Port => f.write_str(
                "the URL's port must be a number from 1 to 65535; \
                 a / in user or password is written as %2F",
            ),
            Self::Percent { part } => write!(
                f,
                "the URL's {part} is not percent-encoded UTF-8: write % itself as %25"
            ),
            Self::Query => f.write_str(
                "a fire:// URL has no query: the virtual host is its path, as in fire://host/vhost",
            ),
            Self::Fragment => f.write_str("the URL has a #: write it as %23 if it is meant"),
            Self::VhostTwice => f.write_str("the URL names vhost more than once"),
        }
    }
}

impl core::error::Error for UrlError {}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(url: &str) -> Result<Self, UrlError> {
        check_characters(url)?;
        let (scheme, rest) = url.split_once("://").ok_or(UrlError::NoScheme)?;
        let scheme = parse_scheme(scheme)?;
        let authority_end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(authority_end);
        let (userinfo, place) = match authority.rsplit_once('@') {
            Some((userinfo, place)) => (Some(userinfo), place),
            None => (None, authority),
        };
        let (user, password) = parse_user(userinfo)?;
        let (host, port) = parse_place(place)?;
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        let (vhost, target) = if scheme.is_websocket() {
            (websocket_vhost(query)?, websocket_target(path, query))
        } else if query.is_some() {
            return Err(UrlError::Query);
        } else {
            (
                decode(path.strip_prefix('/').unwrap_or(path), "vhost")?,
                String::new(),
            )
        };
        Ok(Self {
            scheme,
            user,
            password,
            host,
            port: port.unwrap_or_else(|| scheme.default_port()),
            vhost: if vhost.is_empty() {
                VHOST_DEFAULT.to_owned()
            } else {
                vhost
            },
            target,
        })
    }
}

fn check_characters(url: &str) -> Result<(), UrlError> {
    if url.len() > URL_BYTES_MAX {
        return Err(UrlError::TooLong { len: url.len() });
    }
    if let Some(offset) = url.bytes().position(|byte| !byte.is_ascii_graphic()) {
        return Err(UrlError::Character { offset });
    }
    if url.contains('#') {
        return Err(UrlError::Fragment);
    }
    Ok(())
}

fn parse_scheme(scheme: &str) -> Result<Scheme, UrlError> {
    let known = Scheme::ALL
        .iter()
        .find(|known| known.name().eq_ignore_ascii_case(scheme));
    known.copied().ok_or_else(|| {
        if scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            let found = scheme.to_owned();
            return UrlError::Scheme { found };
        }
        UrlError::NoScheme
    })
}

fn parse_user(userinfo: Option<&str>) -> Result<(String, String), UrlError> {
    let (user, password) = match userinfo.map(|both| both.split_once(':').ok_or(both)) {
        None => (None, None),
        Some(Err(user)) => (Some(user), None),
        Some(Ok((user, password))) => (Some(user), Some(password)),
    };
    Ok((
        decode(user.unwrap_or(USER_DEFAULT), "user")?,
        decode(password.unwrap_or(USER_DEFAULT), "password")?,
    ))
}

fn parse_place(place: &str) -> Result<(String, Option<u16>), UrlError> {
    let (host, port) = if let Some(rest) = place.strip_prefix('[') {
        let (address, rest) = rest.split_once(']').ok_or(UrlError::Brackets)?;
        match rest.strip_prefix(':') {
            Some(port) => (address, Some(port)),
            None if rest.is_empty() => (address, None),
            None => return Err(UrlError::Brackets),
        }
    } else {
        match place.split_once(':') {
            Some((_, port)) if port.contains(':') => return Err(UrlError::Brackets),
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        }
    };
    if host.is_empty() {
        return Err(UrlError::NoHost);
    }
    let port = port.map(parse_port).transpose()?;
    Ok((decode(host, "host")?, port))
}

fn parse_port(port: &str) -> Result<u16, UrlError> {
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    match port.parse() {
        Ok(number) if digits && number != 0 => Ok(number),
        _ => Err(UrlError::Port),
    }
}

/// The `vhost` of a WebSocket URL's query, empty when there is none; other parameters belong to the
/// endpoint.
///
/// # Errors
/// [`UrlError::Percent`] and [`UrlError::VhostTwice`].
pub fn websocket_vhost(query: Option<&str>) -> Result<String, UrlError> {
    let mut found = None;
    for parameter in query.unwrap_or_default().split('&') {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        if name == "vhost" && found.replace(value).is_some() {
            return Err(UrlError::VhostTwice);
        }
    }
    decode(found.unwrap_or_default(), "vhost")
}

fn websocket_target(path: &str, query: Option<&str>) -> String {
    let path = if matches!(path, "" | "/") {
        WEBSOCKET_PATH
    } else {
        path
    };
    match query {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    }
}

/// Decodes `%XX`; a `+` stays one.
fn decode(text: &str, part: &'static str) -> Result<String, UrlError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = rest
            .next()
            .and_then(hex_digit)
            .zip(rest.next().and_then(hex_digit));
        let (high, low) = digits.ok_or(UrlError::Percent { part })?;
        bytes.push(high << 4 | low);
    }
    String::from_utf8(bytes).map_err(|_not_utf8| UrlError::Percent { part })
}

const fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}
