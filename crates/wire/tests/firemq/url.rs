//! Connection URLs: the examples of the specification, defaults, and what is refused.

use tanda_wire::firemq::url::URL_BYTES_MAX;
use tanda_wire::firemq::{Scheme, Url, UrlError};

fn parse(url: &str) -> Url {
    url.parse().unwrap_or_else(|error| panic!("{url}: {error}"))
}

#[test]
fn the_parts_of_a_url() {
    let url = parse("fire://user:password@host:5673/vhost");
    assert_eq!(
        url,
        Url {
            scheme: Scheme::Fire,
            user: "user".into(),
            password: "password".into(),
            host: "host".into(),
            port: 5673,
            vhost: "vhost".into(),
            target: String::new(),
        }
    );
    let url = parse("ws://localhost:15672/fire?vhost=dev");
    assert_eq!(
        (url.vhost.as_str(), url.target.as_str()),
        ("dev", "/fire?vhost=dev")
    );
}

#[test]
fn defaults() {
    let ports = [
        ("fire", 5673),
        ("fires", 5674),
        ("ws", 15672),
        ("wss", 15671),
    ];
    for (scheme, port) in ports {
        let url = parse(&format!("{scheme}://h"));
        assert_eq!((url.scheme.name(), url.port), (scheme, port));
        assert_eq!(
            (url.user.as_str(), url.password.as_str()),
            ("guest", "guest")
        );
        assert_eq!((url.host.as_str(), url.vhost.as_str()), ("h", "/"));
        let target = if url.scheme.is_websocket() {
            "/fire"
        } else {
            ""
        };
        assert_eq!(url.target, target);
        assert_eq!(url.scheme.is_tls(), scheme.ends_with('s') && scheme != "ws");
    }
    let url = parse("FIRE://bob@h");
    assert_eq!((url.user.as_str(), url.password.as_str()), ("bob", "guest"));
    assert_eq!(parse("fire://bob:@h").password, "");
}

#[test]
fn virtual_hosts() {
    let cases = [
        ("fire://h/", "/"),
        ("fire://h/%2f", "/"),
        ("fire://h/%2Fa", "/a"),
        ("fire://h/a/b", "a/b"),
        ("fire://h//a", "/a"),
        ("fire://h/gr%C3%BCn", "grün"),
        ("ws://h?vhost=a%2Fb", "a/b"),
        ("ws://h/?vhost=", "/"),
        ("ws://h/x?token=1&vhost=dev", "dev"),
        ("ws://h/x?vhosts=dev", "/"),
        ("ws://h/dev", "/"),
        ("ws://h/?vhost=a+b", "a+b"),
    ];
    for (url, vhost) in cases {
        assert_eq!(parse(url).vhost, vhost, "{url}");
    }
    assert_eq!(parse("ws://h?vhost=a").target, "/fire?vhost=a");
    assert_eq!(parse("wss://h/x/?token=1").target, "/x/?token=1");
}

#[test]
fn hosts_and_users() {
    let url = parse("fires://[::1]:7/v");
    assert_eq!((url.host.as_str(), url.port), ("::1", 7));
    assert_eq!(parse("fire://[fe80::1]").host, "fe80::1");
    let url = parse("fire://a%40b:p%3a%2f@h");
    assert_eq!((url.user.as_str(), url.password.as_str()), ("a@b", "p:/"));
    let url = parse("fire://a:b@c:d@h");
    assert_eq!((url.user.as_str(), url.password.as_str()), ("a", "b@c:d"));
    assert!(!format!("{url:?}").contains("b@c:d"));
}

#[test]
fn what_is_wrong_is_named() {
    let cases = [
        ("", UrlError::NoScheme),
        ("h:5673", UrlError::NoScheme),
        ("pass:word://h", UrlError::NoScheme),
        (
            "amqp://h",
            UrlError::Scheme {
                found: "amqp".into(),
            },
        ),
        ("fire://", UrlError::NoHost),
        ("fire:///v", UrlError::NoHost),
        ("fire://u@:1", UrlError::NoHost),
        ("fire://[]", UrlError::NoHost),
        ("fire://[::1", UrlError::Brackets),
        ("fire://[::1]1", UrlError::Brackets),
        ("fire://::1", UrlError::Brackets),
        ("fire://h:", UrlError::Port),
        ("fire://h:0", UrlError::Port),
        ("fire://h:65536", UrlError::Port),
        ("fire://h:+1", UrlError::Port),
        ("fire://user:pass/word@h", UrlError::Port),
        ("fire://h/%", UrlError::Percent { part: "vhost" }),
        ("fire://h/%4", UrlError::Percent { part: "vhost" }),
        ("fire://h/%+1", UrlError::Percent { part: "vhost" }),
        ("fire://h/%ff", UrlError::Percent { part: "vhost" }),
        ("fire://%zz@h", UrlError::Percent { part: "user" }),
        ("fire://u:%zz@h", UrlError::Percent { part: "password" }),
        ("fire://h%", UrlError::Percent { part: "host" }),
        ("fire://h/v?vhost=a", UrlError::Query),
        ("fire://h?", UrlError::Query),
        ("ws://h?vhost=a&vhost=b", UrlError::VhostTwice),
        ("ws://h#a", UrlError::Fragment),
        ("fire://h/a b", UrlError::Character { offset: 10 }),
        ("fire://h/\u{fc}", UrlError::Character { offset: 9 }),
        ("fire://h/\n", UrlError::Character { offset: 9 }),
    ];
    for (url, error) in cases {
        assert_eq!(url.parse::<Url>(), Err(error), "{url}");
    }
    let long = format!("fire://h/{}", "a".repeat(URL_BYTES_MAX));
    let len = long.len();
    assert_eq!(long.parse::<Url>(), Err(UrlError::TooLong { len }));
}
