//! What hooks get, what they may return, and how it is said that they may not.

use tanda_script::{
    ATTRIBUTE_BYTES_MAX, ATTRIBUTES_MAX, Classification, Decision, EnqueueCall, HookKind, Host,
    KEY_BYTES_MAX, Limits, Reason, ScriptError,
};

use crate::support::{classify, content, decide, enqueue, failure_of, key_of};

fn returning(value: &str) -> String {
    format!("function on_enqueue(msg) return {value} end")
}

#[test]
fn a_message_is_classified_by_what_is_returned() {
    let source = "function on_enqueue(msg)
        local h = msg.headers
        return {
            fairness_key = h.tenant .. '/' .. h.region,
            weight = h.plan == 'gold' and 4 or 1,
            attributes = { region = h.region },
        }
    end";
    let headers = [("tenant", "acme"), ("region", "eu"), ("plan", "gold")];
    let expected = Classification {
        fairness_key: Some("acme/eu".to_owned()),
        weight: Some(4),
        attributes: vec![("region".to_owned(), "eu".to_owned())],
    };
    assert_eq!(enqueue(source, &headers), Ok(expected));
}

#[test]
fn nothing_returned_changes_nothing() {
    for source in [
        "function on_enqueue() end".to_owned(),
        returning("nil"),
        returning("{}"),
        returning("{ attributes = {}, unknown = 1 }"),
    ] {
        assert_eq!(
            enqueue(&source, &[]),
            Ok(Classification::default()),
            "{source}"
        );
    }
}

#[test]
fn the_message_has_all_its_fields() {
    let content = content(&[("a", "1"), ("b", ""), ("a", "2")]);
    let call = EnqueueCall {
        content: &content,
        payload_bytes: 3_000_000_000,
        fairness_key: Some(b"claimed"),
        weight: 7,
    };
    let source = "function on_enqueue(msg)
        local seen = {}
        for name, value in pairs(msg.headers) do
            table.insert(seen, name .. '=' .. value)
        end
        table.sort(seen)
        return { fairness_key = table.concat(seen, ',') .. '|' .. msg.payload_size .. '|'
            .. msg.queue .. '|' .. msg.fairness_key .. '|' .. msg.weight }
    end";
    let classified = classify(&mut Host::new(Limits::default()), source, call).unwrap();
    let key = classified.fairness_key.unwrap();
    assert_eq!(key, "a=2,b=|3000000000|orders|claimed|7");
}

#[test]
fn an_absent_fairness_key_is_nil_and_an_empty_one_may_be_returned() {
    assert_eq!(
        key_of("return { fairness_key = tostring(msg.fairness_key) }", &[]),
        "nil"
    );
    assert_eq!(key_of("return { fairness_key = '' }", &[]), "");
}

#[test]
fn headers_of_any_shape_come_whole() {
    let mut host = Host::new(Limits::default());
    let source = "function on_enqueue(msg)
        local count, bytes = 0, 0
        for name, value in msg.headers do
            count += 1
            bytes += #name + #value
        end
        return { fairness_key = count .. ':' .. bytes }
    end";
    let long = "x".repeat(60_000);
    let names: Vec<String> = (0..300).map(|n| format!("name-{n}")).collect();
    for round in 0..3 {
        for count in [0, 1, 2, 17, 40, 41, 300] {
            let name = |n: usize| names[(n + round) % 300].as_str();
            let mut headers: Vec<(&str, &str)> = (0..count).map(|n| (name(n), "v")).collect();
            if count > 1 {
                headers[0].1 = &long;
            }
            let bytes: usize = headers
                .iter()
                .map(|(name, value)| name.len() + value.len())
                .sum();
            let content = content(&headers);
            let call = EnqueueCall {
                content: &content,
                payload_bytes: 2,
                fairness_key: None,
                weight: 1,
            };
            let classified = classify(&mut host, source, call).unwrap();
            assert_eq!(classified.fairness_key.unwrap(), format!("{count}:{bytes}"));
        }
    }
}

#[test]
fn an_invalid_return_is_named_with_its_value() {
    let attributes = |value: &str| format!("{{ attributes = {value} }}");
    for (value, named) in [
        ("5", "returned 5 (a number)"),
        ("'tenant'", "returned \"tenant\" (a string)"),
        ("true", "returned true (a boolean)"),
        ("{ fairness_key = 42 }", "fairness_key = 42 (a number)"),
        (
            "{ fairness_key = false }",
            "fairness_key = false (a boolean)",
        ),
        ("{ fairness_key = {} }", "fairness_key = a table"),
        (
            "{ fairness_key = '\\xff\\x80' }",
            "fairness_key = \"\\xff\\x80\"",
        ),
        ("{ weight = 0 }", "weight = 0 (a number)"),
        ("{ weight = -1 }", "weight = -1"),
        ("{ weight = 1.5 }", "weight = 1.5"),
        ("{ weight = 4294967296 }", "weight = 4294967296"),
        ("{ weight = 0/0 }", "weight = "),
        ("{ weight = 1/0 }", "weight = inf"),
        ("{ weight = '3' }", "weight = \"3\" (a string)"),
        (&attributes("'x'"), "attributes = \"x\""),
        (
            &attributes("{ 'x' }"),
            "attributes with the name 1 (a number)",
        ),
        (
            &attributes("{ size = 3 }"),
            "attributes.size = 3 (a number)",
        ),
        (&attributes("{ a = '\\xff' }"), "attributes.a = \"\\xff\""),
        (&attributes("{ ['\\xff'] = 'a' }"), "name = \"\\xff\""),
    ] {
        let text = failure_of(&returning(value));
        assert!(text.contains("on_enqueue returned"), "{value}: {text}");
        assert!(text.contains(named), "{value}: {text}");
    }
}

#[test]
fn what_is_returned_has_bounds() {
    let key = |bytes: usize| returning(&format!("{{ fairness_key = ('k'):rep({bytes}) }}"));
    let classified = enqueue(&key(KEY_BYTES_MAX), &[]).unwrap();
    assert_eq!(classified.fairness_key.unwrap().len(), KEY_BYTES_MAX);
    assert!(failure_of(&key(KEY_BYTES_MAX + 1)).contains("65536 bytes"));

    let attributes = |count: usize, bytes: usize, key: usize| {
        format!(
            "function on_enqueue() local a = {{}} for n = 1, {count} do
            a[string.format('%04d', n)] = ('v'):rep({bytes}) end
            return {{ attributes = a, fairness_key = ('k'):rep({key}) }} end"
        )
    };
    for key in [0, 4096, 4097, KEY_BYTES_MAX] {
        let fits = ATTRIBUTE_BYTES_MAX / ATTRIBUTES_MAX - 4;
        let classified = enqueue(&attributes(ATTRIBUTES_MAX, fits, key), &[]).unwrap();
        assert_eq!(classified.attributes.len(), ATTRIBUTES_MAX);
        assert!(
            classified
                .attributes
                .iter()
                .all(|(_, value)| value.len() == fits)
        );
    }
    assert!(failure_of(&attributes(ATTRIBUTES_MAX + 1, 1, 0)).contains("more attributes"));
    assert!(failure_of(&attributes(1, ATTRIBUTE_BYTES_MAX, 0)).contains("attributes of"));
}

#[test]
fn an_error_is_named_with_its_line_and_is_not_long() {
    let text = failure_of("function on_enqueue(msg)\n\n  return msg.headers.tenant .. 'x'\nend");
    assert!(
        text.starts_with("on_enqueue:3:") && !text.contains("traceback"),
        "{text}"
    );
    assert_eq!(
        failure_of("function on_enqueue() error('no tenant', 0) end"),
        "no tenant"
    );
    let long = failure_of("function on_enqueue() error(('ä'):rep(50000), 0) end");
    assert!(
        long.len() <= tanda_script::ERROR_BYTES_MAX,
        "{}",
        long.len()
    );
    for raised in [
        "{}",
        "nil",
        "print",
        "setmetatable({}, { __tostring = error })",
    ] {
        let text = failure_of(&format!("function on_enqueue() error({raised}) end"));
        assert!(!text.contains("0x"), "{raised}: {text}");
    }
    let own = "setmetatable({}, { __tostring = function() return 'own words' end })";
    assert_eq!(
        failure_of(&format!("function on_enqueue() error({own}) end")),
        "own words"
    );
}

#[test]
fn a_failure_is_decided_by_what_is_returned() {
    let source = "function on_failure(msg)
        if msg.error:find('429', 1, true) then
            return { action = 'retry', delay_ms = 60000 }
        elseif msg.headers.kind == 'poison' then
            return { action = 'dlq' }
        elseif msg.reason == 'lease_expired' then
            return { action = 'retry' }
        end
    end";
    let (plain, poison) = (content(&[]), content(&[("kind", "poison")]));
    let nack = Reason::Nack("status 429");
    let retry = |delay_ms| Ok(Some(Decision::Retry { delay_ms }));
    assert_eq!(decide(source, &plain, nack), retry(Some(60_000)));
    assert_eq!(
        decide(source, &poison, Reason::Nack("")),
        Ok(Some(Decision::DeadLetter))
    );
    assert_eq!(decide(source, &plain, Reason::LeaseExpired), retry(None));
    assert_eq!(decide(source, &plain, Reason::Nack("other")), Ok(None));
}

#[test]
fn a_failed_message_has_all_its_fields() {
    let source = "function on_failure(msg)
        error(table.concat({ msg.id, msg.attempts, msg.redrives, msg.queue, msg.reason,
            msg.error, msg.headers.a }, '|'), 0)
    end";
    let content = content(&[("a", "1")]);
    let seen = |reason| match decide(source, &content, reason) {
        Err(ScriptError::Failed(text)) => text,
        other => panic!("{other:?}"),
    };
    let id = "01937e2a-b1c2-7def-8123-456789abcdef";
    assert_eq!(
        seen(Reason::Nack("out")),
        format!("{id}|3|1|orders|nack|out|1")
    );
    assert_eq!(
        seen(Reason::LeaseExpired),
        format!("{id}|3|1|orders|lease_expired||1")
    );
}

#[test]
fn an_invalid_decision_is_named_with_its_value() {
    for (value, named) in [
        ("'retry'", "returned \"retry\""),
        ("{}", "action = nil"),
        ("{ action = 'drop' }", "action = \"drop\""),
        ("{ action = 'retry', delay_ms = -1 }", "delay_ms = -1"),
        ("{ action = 'retry', delay_ms = 0.5 }", "delay_ms = 0.5"),
        (
            "{ action = 'retry', delay_ms = 1e15 }",
            "delay_ms = 1000000000000000",
        ),
        ("{ action = 'retry', delay_ms = '5' }", "delay_ms = \"5\""),
    ] {
        let source = format!("function on_failure() return {value} end");
        match decide(&source, &content(&[]), Reason::LeaseExpired) {
            Err(ScriptError::Failed(text)) => assert!(text.contains(named), "{value}: {text}"),
            other => panic!("{value}: {other:?}"),
        }
    }
}

#[test]
fn a_script_that_cannot_be_used_is_told_at_once() {
    let host = Host::new(Limits::default());
    let check = |source: &str| host.check(HookKind::OnEnqueue, "orders", source);
    assert_eq!(check("function on_enqueue() end"), Ok(()));
    for (source, named) in [
        ("function on_enqueue(", "on_enqueue:1:"),
        ("\n\nlocal = 5", "on_enqueue:3:"),
        (
            "function on_failure() end",
            "defines no function on_enqueue",
        ),
        ("on_enqueue = { }", "on_enqueue is a table"),
        ("error('at load', 0)", "at load"),
        ("local x = nil; x.y = 1", "on_enqueue:1:"),
        ("while true do end", "ran for longer than 10ms"),
        (
            "local t = {} while true do t[#t + 1] = ('x'):rep(100) .. #t end",
            "memory",
        ),
        ("\u{1b}Lua binary", "on_enqueue:1:"),
        ("\u{6}\u{3}\0\0\0", "binary chunk"),
    ] {
        let text = check(source).unwrap_err();
        assert!(text.contains(named), "{source}: {text}");
    }
    let long = format!("--{}\n", "x".repeat(1 << 20));
    assert!(check(&long).unwrap_err().contains("at most"));
    let deep = format!(
        "function on_enqueue() return {}1{} end",
        "(".repeat(9999),
        ")".repeat(9999)
    );
    assert!(check(&deep).is_err());
}
