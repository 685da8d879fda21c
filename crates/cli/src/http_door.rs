//! Calls the broker's HTTP door, for what Fila has no frame for.
//!
//! Owns: one request per connection, its time and size limits, and the errors of the door as
//! failures. hyper does HTTP: the server links it already.

use std::{fmt, io, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    client::conn::http1,
    header::{self, HeaderValue},
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tanda_client::Tls;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    task::JoinHandle,
    time::timeout,
};

use crate::{
    credentials::{HOW_TO_GIVE, Secret},
    failure::{Failure, IS_IT_RUNNING},
};

/// For connecting and for the answer together; the door itself gives up after 10 s.
const TIMEOUT: Duration = Duration::from_secs(15);
/// For the beginning of a download, and for each piece of it.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(150);
/// The longest answer that is read.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Where the door is, and how one gets in.
#[derive(Clone, Debug)]
pub(crate) struct HttpDoor {
    place: Place,
    key: Option<Secret>,
    tls: Option<Tls>,
}

/// A place that was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    is_encrypted: bool,
    /// `host:port`.
    authority: String,
}

impl Place {
    /// Reads `http://HOST:PORT` or `https://HOST:PORT`; without a scheme it is http.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        let wrong = |what: &str| {
            format!("{what} in the address of the HTTP door {url:?}; write http://HOST:PORT")
        };
        let (is_encrypted, authority) = match url.split_once("://") {
            None => (false, url),
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            Some(_) => return Err(wrong("a scheme other than http and https")),
        };
        let authority = authority.strip_suffix('/').unwrap_or(authority);
        let Some((host, port)) = authority.rsplit_once(':') else {
            return Err(wrong("no port"));
        };
        if port.parse::<u16>().is_err() {
            return Err(wrong("no port number after the colon"));
        }
        let fits = |c: char| c.is_ascii_alphanumeric() || ".-_[]:".contains(c);
        if host.is_empty() || !host.chars().all(fits) {
            return Err(wrong("no host name or address"));
        }
        Ok(Self {
            is_encrypted,
            authority: authority.to_owned(),
        })
    }

    pub(crate) const fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }

    fn host(&self) -> &str {
        let host = self.authority.rsplit_once(':');
        host.map_or(self.authority.as_str(), |(host, _)| host)
    }
}

impl HttpDoor {
    /// A door that is called with this key, and over TLS where there are settings for it.
    pub(crate) const fn new(place: Place, key: Option<Secret>, tls: Option<Tls>) -> Self {
        Self { place, key, tls }
    }

    /// What stands at a path.
    pub(crate) async fn read(&self, path: &str) -> Result<Value, Failure> {
        self.call(Method::GET, path, None).await
    }

    /// Does what a path stands for.
    pub(crate) async fn act(&self, path: &str) -> Result<Value, Failure> {
        self.call(Method::POST, path, None).await
    }

    /// Asks what a path stands for about something.
    pub(crate) async fn ask(&self, path: &str, about: &Value) -> Result<Value, Failure> {
        self.call(Method::POST, path, Some(about)).await
    }

    /// Puts something at a path.
    pub(crate) async fn put(&self, path: &str, what: &Value) -> Result<Value, Failure> {
        self.call(Method::PUT, path, Some(what)).await
    }

    /// Removes what stands at a path.
    pub(crate) async fn delete(&self, path: &str) -> Result<Value, Failure> {
        self.call(Method::DELETE, path, None).await
    }

    /// Whether something stands at a path.
    pub(crate) async fn finds(&self, path: &str) -> Result<bool, Failure> {
        match self.read(path).await {
            Ok(_) => Ok(true),
            Err(Failure::NotFound(_)) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Gives what stands at a path to `take`, piece by piece; it may be long.
    pub(crate) async fn download(
        &self,
        path: &str,
        take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let begun = timeout(DOWNLOAD_TIMEOUT, self.begin(Method::GET, path, None));
        let (answer, connection) = begun
            .await
            .unwrap_or(Err(Trouble::Slow))
            .map_err(|trouble| self.unreachable(&trouble))?;
        let (head, mut body) = answer.into_parts();
        if !head.status.is_success() {
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            let body = body.map(|body| body.to_bytes()).unwrap_or_default();
            let value = serde_json::from_slice(&body).unwrap_or_default();
            return Err(refusal(head.status, &value));
        }
        loop {
            let next = timeout(DOWNLOAD_TIMEOUT, body.frame()).await;
            let next = next.unwrap_or(None);
            match next {
                Some(Ok(frame)) => {
                    if let Some(piece) = frame.data_ref() {
                        take(piece).map_err(|error| Failure::io("write the file", error))?;
                    }
                }
                Some(Err(error)) => return Err(self.unreachable(&Trouble::http(error))),
                None => break,
            }
        }
        connection.abort();
        Ok(())
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        about: Option<&Value>,
    ) -> Result<Value, Failure> {
        let exchange = timeout(TIMEOUT, self.exchange(method, path, about));
        let (status, body) = exchange
            .await
            .unwrap_or_else(|_elapsed| Err(Trouble::Slow))
            .map_err(|trouble| self.unreachable(&trouble))?;
        if status.is_success() && body.is_empty() {
            return Ok(Value::Null);
        }
        let Ok(value) = serde_json::from_slice::<Value>(&body) else {
            return Err(Failure::Refused(format!(
                "{} answered {status} to {path}, and no JSON; another program listens there",
                self.place.authority
            )));
        };
        // An answer that says what was made and what was refused, in the words of what was asked.
        if status.is_success() || value.get("refused").is_some() {
            return Ok(value);
        }
        Err(refusal(status, &value))
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        about: Option<&Value>,
    ) -> Result<(StatusCode, Bytes), Trouble> {
        let (answer, connection) = self.begin(method, path, about).await?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX);
        let body = body.collect().await.map_err(Trouble::http)?.to_bytes();
        connection.abort();
        Ok((status, body))
    }

    /// Asks; the answer's body is still to come, over the connection that is driven beside it.
    async fn begin(
        &self,
        method: Method,
        path: &str,
        about: Option<&Value>,
    ) -> Result<(Response<Incoming>, JoinHandle<hyper::Result<()>>), Trouble> {
        let stream = TcpStream::connect(&self.place.authority)
            .await
            .map_err(Trouble::Connect)?;
        let (mut sender, connection) = match &self.tls {
            None => talk(stream).await?,
            Some(tls) => {
                let stream = tls.encrypt(self.place.host(), stream).await;
                talk(stream.map_err(Trouble::Connect)?).await?
            }
        };
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, &self.place.authority);
        if let Some(key) = &self.key {
            let bearer = format!("Bearer {}", key.reveal());
            let mut bearer = HeaderValue::from_str(&bearer).map_err(Trouble::http)?;
            bearer.set_sensitive(true);
            request = request.header(header::AUTHORIZATION, bearer);
        }
        let body = about.map_or_else(Bytes::new, |about| Bytes::from(about.to_string()));
        if about.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let request = request.body(Full::new(body)).map_err(Trouble::http)?;
        let answer = sender.send_request(request).await.map_err(Trouble::http)?;
        Ok((answer, connection))
    }

    fn unreachable(&self, trouble: &Trouble) -> Failure {
        Failure::Refused(format!(
            "cannot reach the HTTP door at {}: {trouble}; {IS_IT_RUNNING} --http URL (or \
             TANDA_HTTP) names another place",
            self.place.authority
        ))
    }
}

type Sender = http1::SendRequest<Full<Bytes>>;

/// Begins HTTP on a stream, which is driven beside it.
async fn talk<S>(stream: S) -> Result<(Sender, JoinHandle<hyper::Result<()>>), Trouble>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(Trouble::http)?;
    Ok((sender, tokio::spawn(connection)))
}

/// `{"error": {"code", "message", "hint"}}` as a failure.
fn refusal(status: StatusCode, value: &Value) -> Failure {
    let field = |name: &str| {
        let found = value.get("error").and_then(|error| error.get(name));
        found.and_then(Value::as_str)
    };
    let mut text =
        field("message").map_or_else(|| format!("the HTTP door says {status}"), str::to_owned);
    if field("code") == Some("queue_not_found") {
        text.push_str("; `tanda queue list` shows those there are");
    } else if let Some(hint) = field("hint") {
        text.push_str("; ");
        text.push_str(hint);
    }
    if status == StatusCode::UNAUTHORIZED {
        text.push_str("; give an API key that the broker knows: ");
        text.push_str(HOW_TO_GIVE);
    }
    if status == StatusCode::NOT_FOUND {
        Failure::NotFound(text)
    } else {
        Failure::Refused(text)
    }
}

/// Why there is no answer.
#[derive(Debug)]
enum Trouble {
    Connect(io::Error),
    Http(String),
    Slow,
}

impl Trouble {
    fn http(error: impl fmt::Display) -> Self {
        Self::Http(error.to_string())
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(error) => error.fmt(f),
            Self::Http(error) => f.write_str(error),
            Self::Slow => write!(f, "no answer within {} s", TIMEOUT.as_secs()),
        }
    }
}

/// The path of a queue of a virtual host.
pub(crate) fn queue_path(vhost: &str, name: &str) -> String {
    let (vhost, name) = (segment(vhost), segment(name));
    format!("/api/tanda/vhosts/{vhost}/queues/{name}")
}

/// A name as one segment of a path, percent-encoded (RFC 3986, section 2).
pub(crate) fn segment(name: &str) -> String {
    let mut segment = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            segment.push(char::from(byte));
        } else {
            segment.push_str(&format!("%{byte:02X}"));
        }
    }
    segment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_url_or_host_and_port() {
        let urls = [
            ("http://127.0.0.1:15672", false, "127.0.0.1"),
            ("http://localhost:80/", false, "localhost"),
            ("[::1]:9", false, "[::1]"),
            ("https://a.example:443", true, "a.example"),
        ];
        for (url, is_encrypted, host) in urls {
            let place = Place::parse(url).unwrap();
            assert_eq!((place.is_encrypted(), place.host()), (is_encrypted, host));
        }
        let bad = [
            "",
            "ftp://a:1",
            "http://a",
            "http://a:b",
            "http://:1",
            "http://a b:1",
            "a/b:1",
        ];
        for url in bad {
            let error = Place::parse(url).unwrap_err();
            assert!(error.contains(&format!("{url:?}")), "{error}");
        }
    }

    #[test]
    fn names_are_encoded_into_one_path_segment() {
        let path = "/api/tanda/vhosts/%2F/queues/a.b-c";
        assert_eq!(queue_path("/", "a.b-c"), path);
        let path = "/api/tanda/vhosts/v%201/queues/a%2Fb%20%C3%BC%3F";
        assert_eq!(queue_path("v 1", "a/b ü?"), path);
    }
}
