//! Lua hooks: any source, for any message, under limits.
//!
//! First byte of the input: which hook, and whether the source is text or words, each of which is
//! one byte (`WORDS`). Then the message, then the source. Each call ends in a result that its
//! queue can take, or in an error of bounded length; it ends soon, and in bounded memory; and a
//! decent script of the same host does its work after it as before.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tanda_script::{
    ATTRIBUTE_BYTES_MAX, ATTRIBUTES_MAX, Classification, DELAY_MS_MAX, Decision, ERROR_BYTES_MAX,
    EnqueueCall, FailureCall, HookKind, Host, KEY_BYTES_MAX, Limits, Reason, Script as Source,
    ScriptError, thread_cpu_time,
};

use crate::script::Script;

/// CPU time of a call.
const LIMIT: Duration = Duration::from_millis(1);
/// Calls of one input; each may use its limit twice, as a state that met its memory limit is made
/// anew once.
const CALLS: usize = 3;
/// CPU time of one input, in which nothing but its calls may take long: many times their limits,
/// for the building of states, under a sanitizer too.
const CPU_MAX: Duration = Duration::from_secs(2);
/// Memory of a state: what an empty one takes, the limit, and what a fragmented page wastes.
const STATE_BYTES_MAX: usize = 2 << 20;
/// Words of a source, so that a loop of them stays small.
const SOURCE_WORDS_MAX: usize = 400;

/// The byte of a word of the input's own: a length and its text follow.
pub(crate) const OWN_WORD: u8 = 0xFF;

/// Words of a source.
pub(crate) const WORDS: [&str; 128] = [
    " ",
    "\n",
    "local ",
    "function ",
    "return ",
    "end ",
    "if ",
    "then ",
    "else ",
    "elseif ",
    "while ",
    "do ",
    "for ",
    "in ",
    "repeat ",
    "until ",
    "break ",
    "continue ",
    "not ",
    "and ",
    "or ",
    "nil ",
    "true ",
    "false ",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ",",
    ";",
    ":",
    ".",
    "..",
    "...",
    "=",
    "==",
    "~=",
    "<",
    "<=",
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "^",
    "#",
    "+=",
    "..=",
    "a ",
    "b ",
    "t ",
    "f ",
    "n ",
    "0",
    "1",
    "-1",
    "2^53",
    "2^31",
    "1e9",
    "0/0",
    "1/0",
    "math.huge",
    "''",
    "'a'",
    "'\\xff'",
    "'%'",
    "'.-.-.-b'",
    "'%b()'",
    "'%f[%a]'",
    "'(()())'",
    "[[x]]",
    "`{a}`",
    "--",
    "--[[",
    "]]",
    "function on_enqueue(msg) ",
    "function on_failure(msg) ",
    "msg ",
    "msg.headers ",
    "msg.headers.tenant ",
    "msg.payload_size ",
    "msg.attempts ",
    "return { fairness_key = ",
    "weight = ",
    "attributes = ",
    "action = 'retry', delay_ms = ",
    "action = 'dlq' ",
    "fila.get",
    "string.rep",
    "string.format",
    "string.gsub",
    "string.find",
    "string.split",
    "string.pack",
    "string.unpack",
    "string.char",
    "table.concat",
    "table.insert",
    "table.create",
    "table.move",
    "table.sort",
    "table.unpack",
    "table.freeze",
    "buffer.create",
    "buffer.writestring",
    "buffer.readu32",
    "utf8.char",
    "utf8.codes",
    "bit32.lshift",
    "coroutine.wrap",
    "coroutine.create",
    "coroutine.resume",
    "coroutine.yield",
    "coroutine.close",
    "pcall",
    "xpcall",
    "error",
    "select",
    "setmetatable",
    "getmetatable",
    "rawset",
    "next",
    "tostring",
    "{ __index = ",
    "{ __iter = ",
];

/// What a decent script makes of a message.
const DECENT: &str = "function on_enqueue(msg)
    return { fairness_key = (msg.headers.tenant or 'none') .. tostring(fila.get('plan')) }
end";

/// A message as both hooks see it.
struct Message<'a> {
    content: Vec<u8>,
    tenant: &'static str,
    key: &'a [u8],
    error: String,
    numbers: [u32; 3],
}

/// Runs one input.
///
/// # Panics
/// When a promise does not hold.
pub fn run(input: &[u8]) {
    let mut script = Script::new(input);
    let mode = script.byte();
    let kind = match mode & 1 {
        0 => HookKind::OnEnqueue,
        _ => HookKind::OnFailure,
    };
    let message = message(&mut script);
    let source = source(&mut script, mode & 2 != 0);
    let limits = Limits {
        time: LIMIT,
        memory_bytes: 256 << 10,
        states_bytes_max: 2 * STATE_BYTES_MAX,
    };
    let before = thread_cpu_time();
    let mut host = Host::new(limits);
    let plan = ("plan".to_owned(), "gold".to_owned());
    host.set_runtime(Arc::new([plan].into()));
    check_decent(&mut host, &message);
    if let Err(text) = host.check(kind, "orders", &source) {
        assert!(text.len() <= ERROR_BYTES_MAX, "{} bytes", text.len());
    }
    match kind {
        HookKind::OnEnqueue => enqueue(&mut host, &source, &message),
        HookKind::OnFailure => fail(&mut host, &source, &message),
    }
    check_decent(&mut host, &message);
    let used = host.used_bytes();
    assert!(used <= 3 * STATE_BYTES_MAX, "{used} bytes of states");
    let took = thread_cpu_time().saturating_sub(before);
    assert!(took < CPU_MAX, "{took:?} for calls of {LIMIT:?}");
}

fn message<'a>(script: &mut Script<'a>) -> Message<'a> {
    let tenant = match script.pick(3) {
        0 => "none",
        1 => "acme",
        _ => "",
    };
    let raw = script.short();
    let mut content = Vec::new();
    if tenant == "none" {
        // Any headers, also broken ones; none of them is the decent script's.
        content.extend_from_slice(raw);
    } else {
        let texts: [&[u8]; 4] = [b"other", raw, b"tenant", tenant.as_bytes()];
        content.extend_from_slice(&[0, 2]);
        for text in texts {
            let len = u16::try_from(text.len()).unwrap_or_default();
            content.extend_from_slice(&len.to_be_bytes());
            content.extend_from_slice(text);
        }
    }
    Message {
        content,
        tenant,
        key: script.short(),
        error: String::from_utf8_lossy(script.short()).into_owned(),
        numbers: [script.u32(), script.u32(), u32::from(script.byte())],
    }
}

fn source(script: &mut Script<'_>, words: bool) -> String {
    if !words {
        return String::from_utf8_lossy(script.rest()).into_owned();
    }
    let mut source = String::new();
    for _ in 0..SOURCE_WORDS_MAX {
        if script.is_empty() {
            break;
        }
        match script.byte() {
            OWN_WORD => source.push_str(&String::from_utf8_lossy(script.short())),
            byte => {
                let word = WORDS.get(usize::from(byte) % WORDS.len());
                source.push_str(word.copied().unwrap_or_default());
            }
        }
    }
    source
}

fn queue(version: u64, source: &str) -> Source<'_> {
    Source {
        version,
        queue: "orders",
        source,
    }
}

impl Message<'_> {
    fn enqueue(&self) -> EnqueueCall<'_> {
        let [payload, weight, _] = self.numbers;
        EnqueueCall {
            content: &self.content,
            payload_bytes: u64::from(payload),
            fairness_key: (!self.key.is_empty()).then_some(self.key),
            weight,
        }
    }

    fn failure(&self) -> FailureCall<'_> {
        let [attempts, redrives, reason] = self.numbers;
        FailureCall {
            content: &self.content,
            id: u128::from(attempts) << 64 | u128::from(redrives),
            attempts,
            redrives,
            reason: if reason % 2 == 0 {
                Reason::Nack(&self.error)
            } else {
                Reason::LeaseExpired
            },
        }
    }
}

fn enqueue(host: &mut Host, source: &str, message: &Message<'_>) {
    let mut results = Vec::new();
    let calls = [message.enqueue(); CALLS];
    host.on_enqueue(&queue(1, source), calls, Duration::MAX, &mut results);
    assert_eq!(results.len(), CALLS, "a result for each message");
    for result in &results {
        match result {
            Ok(classification) => check_classification(classification),
            Err(error) => check_error(error, source),
        }
    }
    let before = results.len();
    host.on_enqueue(&queue(1, source), calls, Duration::ZERO, &mut results);
    let more = results.len() - before;
    assert!((1..=CALLS).contains(&more), "{more} results of a turn");
}

fn fail(host: &mut Host, source: &str, message: &Message<'_>) {
    let mut results = Vec::new();
    let calls = [message.failure(); CALLS];
    host.on_failure(&queue(1, source), calls, Duration::MAX, &mut results);
    assert_eq!(results.len(), CALLS, "a result for each message");
    for result in &results {
        match result {
            Ok(Some(Decision::Retry { delay_ms })) => {
                assert!(delay_ms.unwrap_or(0) <= DELAY_MS_MAX, "{delay_ms:?}");
            }
            Ok(Some(Decision::DeadLetter) | None) => {}
            Err(error) => check_error(error, source),
        }
    }
}

fn check_classification(classification: &Classification) {
    let Classification {
        fairness_key,
        weight,
        attributes,
    } = classification;
    let key_bytes = fairness_key.as_ref().map_or(0, String::len);
    assert!(key_bytes <= KEY_BYTES_MAX, "a key of {key_bytes} bytes");
    assert_ne!(*weight, Some(0));
    assert!(attributes.len() <= ATTRIBUTES_MAX, "{}", attributes.len());
    let sizes = attributes
        .iter()
        .map(|(name, value)| name.len() + value.len());
    let bytes: usize = sizes.sum();
    assert!(bytes <= ATTRIBUTE_BYTES_MAX, "{bytes} bytes of attributes");
    let names: BTreeSet<&String> = attributes.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), attributes.len(), "{attributes:?}");
}

fn check_error(error: &ScriptError, source: &str) {
    if let ScriptError::Failed(text) = error {
        assert!(text.len() <= ERROR_BYTES_MAX, "{} bytes", text.len());
        let ours = text.contains("a bug") && !source.contains("a bug");
        assert!(!ours, "{text}");
    }
}

/// Another queue's script sees its message and nothing of what others did.
fn check_decent(host: &mut Host, message: &Message<'_>) {
    let mut results = Vec::new();
    let call = [message.enqueue()];
    host.on_enqueue(&queue(2, DECENT), call, Duration::ZERO, &mut results);
    match results.as_slice() {
        [Ok(classification)] => {
            let key = classification.fairness_key.as_deref().unwrap_or_default();
            let named = message.tenant != "none";
            let expected = format!("{}gold", message.tenant);
            assert!(!named || key == expected, "{key} for {expected}");
        }
        // A state is built in the first call: on a slow machine that alone may take too long.
        [Err(ScriptError::TimedOut)] => {}
        // A header of any bytes may be called like the tenant's.
        [Err(ScriptError::Failed(text))] if message.tenant == "none" => {
            assert!(text.contains("UTF-8"), "a decent script: {text}");
        }
        other => unreachable!("a decent script: {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_make_a_script() {
        let word = |text: &str| WORDS.iter().position(|word| *word == text).unwrap();
        let mut input = Vec::new();
        for text in [
            "function on_enqueue(msg) ",
            "return { fairness_key = ",
            "'a'",
            "}",
            "end ",
        ] {
            input.push(u8::try_from(word(text)).unwrap());
        }
        input.extend([OWN_WORD, 2, b'-', b'-']);
        let source = source(&mut Script::new(&input), true);
        let host = Host::new(Limits::default());
        assert_eq!(host.check(HookKind::OnEnqueue, "q", &source), Ok(()));
        assert!(source.ends_with("--"), "{source}");
    }
}
