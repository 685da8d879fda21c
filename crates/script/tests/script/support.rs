//! A host with one queue, and messages for it.

use std::time::Duration;

use tanda_script::{
    Classification, Decision, EnqueueCall, FailureCall, Host, Limits, Reason, Script, ScriptError,
};

/// Headers in the layout of a message's content.
pub(crate) fn content(headers: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = u16::try_from(headers.len()).unwrap().to_be_bytes().to_vec();
    for text in headers.iter().flat_map(|(name, value)| [name, value]) {
        bytes.extend_from_slice(&u16::try_from(text.len()).unwrap().to_be_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes.extend_from_slice(&[0, 0, 0, 2, b'o', b'k']);
    bytes
}

/// A message without a producer's claims.
pub(crate) fn message(content: &[u8]) -> EnqueueCall<'_> {
    EnqueueCall {
        content,
        payload_bytes: 2,
        fairness_key: None,
        weight: 1,
    }
}

/// `source` in one queue.
pub(crate) fn script(source: &str) -> Script<'_> {
    Script {
        version: 1,
        queue: "orders",
        source,
    }
}

/// One call of `on_enqueue`.
pub(crate) fn classify(
    host: &mut Host,
    source: &str,
    call: EnqueueCall<'_>,
) -> Result<Classification, ScriptError> {
    let mut results = Vec::new();
    host.on_enqueue(&script(source), [call], Duration::ZERO, &mut results);
    assert_eq!(results.len(), 1);
    results.remove(0)
}

/// One call of `on_enqueue` with these headers in a new host.
pub(crate) fn enqueue(
    source: &str,
    headers: &[(&str, &str)],
) -> Result<Classification, ScriptError> {
    let content = content(headers);
    classify(&mut Host::new(Limits::default()), source, message(&content))
}

/// The text of the failure of `on_enqueue` for a message without headers.
pub(crate) fn failure_of(source: &str) -> String {
    match enqueue(source, &[]) {
        Err(ScriptError::Failed(text)) => text,
        other => panic!("{other:?}"),
    }
}

/// What the body of a hook computes for a message, as its fairness key.
pub(crate) fn key_of(body: &str, headers: &[(&str, &str)]) -> String {
    let source = format!("function on_enqueue(msg)\n{body}\nend");
    let classified = enqueue(&source, headers);
    match classified {
        Ok(Classification {
            fairness_key: Some(key),
            ..
        }) => key,
        other => panic!("{body}: {other:?}"),
    }
}

/// One call of `on_failure`.
pub(crate) fn decide(
    source: &str,
    content: &[u8],
    reason: Reason<'_>,
) -> Result<Option<Decision>, ScriptError> {
    let call = FailureCall {
        content,
        id: 0x0193_7e2a_b1c2_7def_8123_4567_89ab_cdef,
        attempts: 3,
        redrives: 1,
        reason,
    };
    let mut results = Vec::new();
    let mut host = Host::new(Limits::default());
    host.on_failure(&script(source), [call], Duration::ZERO, &mut results);
    assert_eq!(results.len(), 1);
    results.remove(0)
}
