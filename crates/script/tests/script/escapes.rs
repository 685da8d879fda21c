//! What a script cannot reach or change.

use tanda_script::{Host, Limits};

use crate::support::{classify, content, failure_of, key_of, message};

#[test]
fn nothing_of_the_machine_can_be_reached() {
    for name in [
        "os",
        "io",
        "debug",
        "package",
        "require",
        "dofile",
        "loadfile",
        "load",
        "loadstring",
        "getfenv",
        "setfenv",
        "collectgarbage",
        "gcinfo",
        "newproxy",
        "print",
    ] {
        let body = format!("return {{ fairness_key = type({name}) }}");
        assert_eq!(key_of(&body, &[]), "nil", "{name}");
        let body = format!("return {{ fairness_key = type(_G.{name}) }}");
        assert_eq!(key_of(&body, &[]), "nil", "_G.{name}");
    }
    assert_eq!(
        key_of("return { fairness_key = type(string.dump) }", &[]),
        "nil"
    );
}

#[test]
fn libraries_and_globals_cannot_be_changed() {
    for statement in [
        "count = (count or 0) + 1",
        "on_enqueue = nil",
        "_G.count = 1",
        "_G.string = nil",
        "string.find = nil",
        "table.insert = error",
        "math.floor = error",
        "buffer.readu16 = error",
        "fila.get = error",
        "fila.extra = 1",
        "fila = nil",
        "rawset(string, 'find', nil)",
        "rawset(_G, 'type', nil)",
        "rawset(fila, 'get', nil)",
        "setmetatable(_G, {})",
        "setmetatable(string, {})",
        "getmetatable('').__index = {}",
        "getmetatable('').__add = error",
        "rawset(getmetatable(''), '__index', {})",
        "setmetatable(getmetatable(''), {})",
        "table.clear(string)",
    ] {
        let source = format!("function on_enqueue(msg) {statement} end");
        let text = failure_of(&source);
        assert!(
            text.contains("readonly") || text.contains("protected"),
            "{statement}: {text}"
        );
    }
}

#[test]
fn what_a_script_shadows_is_shadowed_for_itself_only() {
    let source = "
        type, error, pairs, tostring = nil, nil, nil, nil
        string, table, buffer, math = {}, {}, {}, {}
        function on_enqueue(msg)
            return { fairness_key = msg.headers.tenant, weight = 3, attributes = { a = 'b' } }
        end";
    let mut host = Host::new(Limits::default());
    let content = content(&[("tenant", "acme")]);
    let classified = classify(&mut host, source, message(&content)).unwrap();
    assert_eq!(classified.fairness_key.as_deref(), Some("acme"));
    assert_eq!(
        (classified.weight, classified.attributes.len()),
        (Some(3), 1)
    );
}

#[test]
fn a_message_that_is_kept_never_shows_another() {
    let source = "
        local kept
        function on_enqueue(msg)
            kept = kept or msg
            return { fairness_key = kept.headers.tenant .. tostring(rawequal(kept, msg))
                .. tostring(rawequal(kept.headers, msg.headers)) }
        end";
    let mut host = Host::new(Limits::default());
    let mut key = |tenant: &str| {
        let content = content(&[("tenant", tenant)]);
        classify(&mut host, source, message(&content))
            .unwrap()
            .fairness_key
            .unwrap()
    };
    assert_eq!(key("first"), "firsttruetrue");
    assert_eq!(key("second"), "firstfalsefalse");
}

#[test]
fn what_a_script_does_to_its_message_stays_in_the_call() {
    let source = "function on_enqueue(msg)
        local seen = msg.headers.tenant
        for name in pairs(msg.headers) do msg.headers[name] = nil end
        msg.headers.tenant = 'forged'
        msg.headers.more = 'x'
        setmetatable(msg.headers, { __index = function() return 'ghost' end })
        msg.queue, msg.headers = nil, nil
        return { fairness_key = seen .. tostring(msg.queue) }
    end";
    let mut host = Host::new(Limits::default());
    for tenant in ["a", "b", "c"] {
        let content = content(&[("tenant", tenant)]);
        let classified = classify(&mut host, source, message(&content)).unwrap();
        assert_eq!(classified.fairness_key.unwrap(), format!("{tenant}nil"));
    }
}

#[test]
fn a_result_may_not_run_wild_while_it_is_read() {
    let tricky = "function on_enqueue() return setmetatable({}, { __index = function(_, field)
        if field == 'weight' then while true do end end end }) end";
    let mut host = Host::new(Limits::default());
    let content = content(&[]);
    let result = classify(&mut host, tricky, message(&content));
    assert_eq!(result, Err(tanda_script::ScriptError::TimedOut));
    let endless = "function on_enqueue() return { attributes = setmetatable({}, { __iter =
        function() return function(_, n) return (n or '') .. 'x', 'y' end end }) } end";
    assert!(failure_of(endless).contains("more attributes"));
}

#[test]
fn a_hook_cannot_yield() {
    assert!(failure_of("function on_enqueue() coroutine.yield() end").contains("yield"));
    assert!(failure_of("on_enqueue = coroutine.yield").contains("yield"));
}

#[test]
fn fila_get_reads_runtime_configuration() {
    let mut host = Host::new(Limits::default());
    let source = "function on_enqueue()
        return { fairness_key = tostring(fila.get('plan')) .. tostring(fila.get('other'))
            .. tostring(fila.get('empty')) .. tostring(fila.get('\\xff')) } end";
    let content = content(&[]);
    let mut key = |pairs: &[(&str, &str)]| {
        let pairs = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        host.set_runtime(std::sync::Arc::new(pairs.collect()));
        classify(&mut host, source, message(&content))
            .unwrap()
            .fairness_key
            .unwrap()
    };
    assert_eq!(key(&[]), "nilnilnilnil");
    assert_eq!(key(&[("plan", "gold"), ("empty", "")]), "goldnilnil");
    assert_eq!(key(&[("plan", "free")]), "freenilnilnil");
    for argument in ["", "nil", "5", "{}"] {
        let text = failure_of(&format!("function on_enqueue() fila.get({argument}) end"));
        assert!(
            text.contains("takes the key as a string"),
            "{argument}: {text}"
        );
    }
}
