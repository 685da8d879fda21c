//! Keeps web pages from driving the broker through an operator's browser.
//!
//! A browser sends what an operator once typed along with every request, and without
//! authentication nothing is asked for, so two things are checked before any key: the host by
//! which it was called must be an address or a name that belongs to it (a page of `evil.example`
//! that points its name at 127.0.0.1 fails here), and a request that changes something must not
//! come from a page of another origin.

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::{Door, problem::Problem};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Lets a request pass or answers why not.
pub(super) async fn guard(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let problem = check(request.method(), request.headers(), &door.config.http_hosts);
    match problem {
        None => next.run(request).await,
        Some(problem) => problem.into_response(),
    }
}

fn check(method: &Method, headers: &HeaderMap, names: &[String]) -> Option<Problem> {
    let problem = check_host(headers, names);
    if problem.is_some() {
        return problem;
    }
    let reads = method == Method::GET || method == Method::HEAD;
    if !reads && is_from_another_site(headers) {
        return Some(Problem::new(
            StatusCode::FORBIDDEN,
            "cross_site",
            "the request comes from a web page of another origin",
            "use the command line or a program",
        ));
    }
    None
}

/// Why a request may not call the broker as it does.
pub(super) fn check_host(headers: &HeaderMap, names: &[String]) -> Option<Problem> {
    let Some(host) = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
    else {
        return Some(Problem::new(
            StatusCode::BAD_REQUEST,
            "host_missing",
            "the request has no Host header",
            "send HTTP/1.1 with a Host header",
        ));
    };
    if !is_ours(host, names) {
        return Some(Problem::new(
            StatusCode::FORBIDDEN,
            "host_not_allowed",
            format!("this door does not go by the name {host:?}"),
            "call it by an IP address or localhost, or add the name to http_hosts",
        ));
    }
    None
}

fn is_ours(host: &str, names: &[String]) -> bool {
    let name = without_port(host);
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || names.iter().any(|ours| ours.eq_ignore_ascii_case(name))
}

/// The host of `host:port`, with the brackets of an IPv6 address.
pub(super) fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            // `::1` without brackets is not allowed in a Host header; it is left whole.
            if name.contains(':') && !name.ends_with(']') {
                host
            } else {
                name
            }
        }
        Some(_) | None => host,
    }
}

fn is_from_another_site(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).map(HeaderValue::as_bytes);
    if let Some(origin) = headers.get(header::ORIGIN) {
        let same = origin
            .to_str()
            .ok()
            .and_then(|origin| origin.split_once("://"))
            .zip(host)
            .is_some_and(|((_, origin), host)| origin.as_bytes().eq_ignore_ascii_case(host));
        return !same;
    }
    // Sent by browsers; programs send neither.
    let site = headers.get(SEC_FETCH_SITE);
    site.is_some_and(|site| site != "same-origin" && site != "none")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(HeaderName, &'static str)| {
            (name.clone(), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn hosts() {
        let names = ["broker.internal".to_owned()];
        for ours in [
            "127.0.0.1:15672",
            "127.0.0.1",
            "[::1]:15672",
            "localhost",
            "LocalHost:15672",
            "Broker.internal:15672",
        ] {
            assert!(is_ours(ours, &names), "{ours}");
        }
        for foreign in [
            "evil.example",
            "evil.example:15672",
            "localhost.evil.example",
            "",
        ] {
            assert!(!is_ours(foreign, &names), "{foreign}");
        }
    }

    #[test]
    fn a_page_of_another_origin_may_not_post() {
        let host = (header::HOST, "localhost:1");
        let cases = [
            (vec![host.clone()], true),
            (
                vec![host.clone(), (header::ORIGIN, "http://localhost:1")],
                true,
            ),
            (
                vec![host.clone(), (header::ORIGIN, "http://evil.example")],
                false,
            ),
            (vec![host.clone(), (header::ORIGIN, "null")], false),
            (vec![host.clone(), (SEC_FETCH_SITE, "same-origin")], true),
            (vec![host.clone(), (SEC_FETCH_SITE, "cross-site")], false),
        ];
        for (pairs, passes) in cases {
            let problem = check(&Method::POST, &headers(&pairs), &[]);
            assert_eq!(problem.is_none(), passes, "{pairs:?}");
            let reading = check(&Method::GET, &headers(&pairs), &[]);
            assert!(reading.is_none(), "{pairs:?}");
        }
    }

    #[test]
    fn a_request_without_a_host_is_refused() {
        assert!(check(&Method::GET, &HeaderMap::new(), &[]).is_some());
    }
}
