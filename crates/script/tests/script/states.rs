//! When states are kept, thrown away and loaded again.

use std::time::Duration;

use tanda_script::{Host, Limits, Script, ScriptError};

use crate::support::{classify, content, message, script};

#[test]
fn a_state_that_broke_is_loaded_again() {
    let source = "
        local calls = 0
        function on_enqueue(msg)
            calls += 1
            if msg.headers.bad == 'time' then while true do end end
            if msg.headers.bad == 'memory' then return ('x'):rep(1e9) end
            if msg.headers.bad == 'error' then error('told', 0) end
            return { weight = calls }
        end";
    let mut host = Host::new(Limits::default());
    let mut weight = |bad: &str| {
        let content = content(&[("bad", bad)]);
        classify(&mut host, source, message(&content)).map(|classified| classified.weight)
    };
    assert_eq!(weight(""), Ok(Some(1)));
    assert_eq!(weight(""), Ok(Some(2)));
    assert_eq!(weight("error"), Err(ScriptError::Failed("told".to_owned())));
    assert_eq!(
        weight(""),
        Ok(Some(4)),
        "an error leaves the state as it is"
    );
    assert_eq!(weight("time"), Err(ScriptError::TimedOut));
    assert_eq!(weight(""), Ok(Some(1)));
    assert!(matches!(weight("memory"), Err(ScriptError::Failed(text)) if text.contains("memory")));
    assert_eq!(weight(""), Ok(Some(1)));
}

#[test]
fn what_a_script_gathers_in_locals_fails_no_message() {
    let source = "
        local seen = {}
        function on_enqueue(msg)
            seen[#seen + 1] = ('x'):rep(1000) .. msg.headers.n
            return { weight = #seen }
        end";
    let mut host = Host::new(Limits::default());
    let mut restarts = 0;
    for n in 0..5000 {
        let content = content(&[("n", &n.to_string())]);
        let classified = classify(&mut host, source, message(&content)).unwrap();
        restarts += u32::from(classified.weight == Some(1));
        assert!(host.used_bytes() < 2 << 20, "{}", host.used_bytes());
    }
    assert!(restarts > 2, "{restarts}");
}

#[test]
fn garbage_of_many_messages_fits_into_the_limit() {
    let source = "function on_enqueue(msg)
        local t = {} for n = 1, 200 do t[n] = msg.headers.n .. n end
        return { fairness_key = msg.headers.n } end";
    let mut host = Host::new(Limits::default());
    for n in 0..3000 {
        let content = content(&[("n", &n.to_string())]);
        classify(&mut host, source, message(&content)).unwrap();
    }
}

#[test]
fn scripts_of_many_queues_share_what_memory_there_is() {
    let limits = Limits {
        states_bytes_max: 4 << 20,
        ..Limits::default()
    };
    let mut host = Host::new(limits);
    let content = content(&[]);
    let mut results = Vec::new();
    for round in 0..2 {
        for version in 0..20 {
            let source = format!("function on_enqueue() return {{ weight = {version} + 1 }} end");
            let script = Script {
                version,
                queue: "orders",
                source: &source,
            };
            host.on_enqueue(&script, [message(&content)], Duration::ZERO, &mut results);
            let weight = results.pop().unwrap().unwrap().weight;
            assert_eq!(weight, Some(u32::try_from(version).unwrap() + 1), "{round}");
            assert!(host.used_bytes() <= 4 << 20);
        }
    }
    assert!(host.used_bytes() > 0);
    for version in 0..20 {
        host.forget(version);
    }
    assert_eq!(host.used_bytes(), 0);
}

#[test]
fn a_turn_ends_when_its_budget_is_used_up() {
    let source = "function on_enqueue(msg) while true do end end";
    let mut host = Host::new(Limits::default());
    let contents = [content(&[]), content(&[]), content(&[])];
    let calls = || contents.iter().map(|content| message(content));
    let mut results = Vec::new();
    host.on_enqueue(
        &script(source),
        calls(),
        Duration::from_millis(5),
        &mut results,
    );
    assert_eq!(results, [Err(ScriptError::TimedOut)]);
    results.clear();
    host.on_enqueue(&script(source), calls(), Duration::MAX, &mut results);
    assert_eq!(results.len(), 3);
}

#[test]
fn the_limits_can_be_changed() {
    let content = content(&[]);
    let source = "function on_enqueue() local t = table.create(1000000, 1) return nil end";
    let small = Limits::default();
    assert!(classify(&mut Host::new(small), source, message(&content)).is_err());
    let large = Limits {
        memory_bytes: 32 << 20,
        time: Duration::from_secs(10),
        ..small
    };
    assert!(classify(&mut Host::new(large), source, message(&content)).is_ok());
}
