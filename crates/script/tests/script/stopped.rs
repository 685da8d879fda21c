//! What stops a script. None of these tests looks at the clock: a script that is not stopped makes
//! its test hang.

use tanda_script::{Classification, Host, Limits, ScriptError};

use crate::support::{classify, content, enqueue, failure_of, message};

/// Runs `body` as a hook, and then a decent script of the same host: nothing is left broken.
fn outcome(body: &str) -> Result<Classification, ScriptError> {
    let content = content(&[("tenant", "acme")]);
    let mut host = Host::new(Limits::default());
    let source = format!("function on_enqueue(msg)\n{body}\nend");
    let first = classify(&mut host, &source, message(&content));
    let again = classify(&mut host, &source, message(&content));
    assert_eq!(
        first.is_ok(),
        again.is_ok(),
        "{body}: {first:?}, then {again:?}"
    );
    first
}

fn assert_timed_out(body: &str) {
    assert_eq!(outcome(body), Err(ScriptError::TimedOut), "{body}");
}

#[test]
fn endless_loops() {
    for body in [
        "while true do end",
        "repeat until false",
        "for n = 1, math.huge do end",
        "local function f() return 1 end while f() do end",
        "local t = setmetatable({}, { __index = function(t, k) return t[k - 1] end })
         while true do pcall(function() return t[50] end) end",
    ] {
        assert_timed_out(body);
    }
}

#[test]
fn endless_loops_that_catch_the_error() {
    for body in [
        "while true do pcall(function() while true do end end) end",
        "pcall(function() while true do end end) return { fairness_key = 'survived' }",
        "pcall(function() while true do end end)
         pcall(function() while true do end end) return nil",
        "xpcall(function() while true do end end, function() while true do end end)",
        "local function again() while true do pcall(again) end end again()",
        "while true do xpcall(error, function(e) return e end) end",
        "local function f() pcall(f) f() end f() while true do end",
    ] {
        assert_timed_out(body);
    }
}

#[test]
fn endless_loops_in_coroutines() {
    for body in [
        "coroutine.wrap(function() while true do end end)()",
        "local co = coroutine.create(function() while true do end end)
         coroutine.resume(co) return { fairness_key = coroutine.status(co) }",
        "local co = coroutine.wrap(function() while true do coroutine.yield() end end)
         while true do co() end",
        "while true do
             coroutine.wrap(function() pcall(function() while true do end end) end)()
         end",
        "local function nest() return coroutine.wrap(function() nest() end)() end
         while true do pcall(nest) end",
    ] {
        assert_timed_out(body);
    }
}

#[test]
fn endless_loops_in_metamethods_and_comparators() {
    for body in [
        "local t = setmetatable({}, { __tostring = function() while true do end end })
         tostring(t)",
        "local t = setmetatable({}, { __index = function() while true do end end }) local _ = t.x",
        "local t = setmetatable({}, { __concat = function() while true do end end })
         local _ = t .. 'x'",
        "local t = setmetatable({}, { __eq = function() while true do end end })
         local _ = t == setmetatable({}, getmetatable(t))",
        "error(setmetatable({}, { __tostring = function() while true do end end }))",
        "local t = setmetatable({}, { __iter = function() return function() return 1 end end })
         for _ in t do end",
        "table.sort({ 3, 1, 2 }, function() while true do end end)",
        "while true do table.sort({ 3, 1, 2 }, function(a, b) return a < b end) end",
        "string.gsub('abc', '.', function() while true do end end)",
        "local t = setmetatable({}, { __gc = function() while true do end end }) t = nil
         for _ = 1, 1e9 do local _ = {} end",
    ] {
        assert_timed_out(body);
    }
}

#[test]
fn pathological_patterns() {
    for body in [
        "return { fairness_key = tostring(string.rep('a', 5000):find('.-.-.-.-b')) }",
        "string.rep('a', 5000):match('(.-)(.-)(.-)(.-)b')",
        "string.rep('a', 3000):gsub('.-.-.-b', 'x')",
        "for _ in string.rep('a', 3000):gmatch('.-.-.-b') do end",
        "pcall(string.find, string.rep('a', 5000), '.-.-.-.-b') while true do end",
        "string.rep('a?', 100):rep(1):gsub('x', '') local p = string.rep('a?', 28)
         .. string.rep('a', 28) string.rep('a', 28):find(p)",
    ] {
        assert_timed_out(body);
    }
}

#[test]
fn functions_that_take_as_long_as_their_strings_are() {
    for statement in ["_=string.sub(a,2) ", "_=tonumber(a) "] {
        let statements = statement.repeat(20_000);
        assert_timed_out(&format!(
            "local a = ('7'):rep(100000) local _ {statements} return nil"
        ));
    }
    let repeated = "local _ = (''):rep(2^31 - 1) return nil";
    assert_eq!(outcome(repeated), Ok(Classification::default()));
}

#[test]
fn statements_that_never_ask_for_the_time() {
    let strings = "local a, b = ('a'):rep(100000) .. 'b', ('a'):rep(100000) .. 'c'";
    let statements = "_=a..b ".repeat(20_000);
    let body = format!("{strings} local _ {statements} return nil");
    // Out of time in the end, or of memory before.
    assert!(outcome(&body).is_err());
}

#[test]
fn library_functions_that_never_ask_for_the_time_are_bounded() {
    for (body, named) in [
        (
            "local s = ('a'):rep(200000) return s:find(('a'):rep(100000) .. 'b', 1, true)",
            "too long",
        ),
        (
            "local s = ('a'):rep(200000) return s:find('[' .. ('b'):rep(9000) .. 'a]*x')",
            "too long",
        ),
        (
            "return ('a'):rep(200000):match('[' .. ('b'):rep(9000) .. ']*')",
            "too long",
        ),
        (
            "return ('a'):rep(200000):gmatch('[' .. ('b'):rep(9000) .. ']*')",
            "too long",
        ),
        (
            "return ('a'):rep(200000):gsub('[' .. ('b'):rep(9000) .. ']*', '')",
            "too long",
        ),
        ("return ('a'):gsub('()', ('%1'):rep(100000))", "too long"),
        (
            "return ('a'):rep(200000):split(('a'):rep(9000) .. 'b')",
            "too long",
        ),
        ("table.move({}, 1, 2^31 - 10, 2, {})", "at most"),
        ("table.move({}, -2^31, 0, 2, {})", "at most"),
        (
            "string.format(('%*'):rep(100), table.unpack(table.create(100, 'x')))",
            "at most",
        ),
        ("table.foreach({ 1 }, string.rep)", "nil value"),
        ("table.foreachi({ 1 }, string.rep)", "nil value"),
        ("('a'):rep(1e9)", "memory"),
        ("('a'):rep(2^31 - 1):rep(2^31 - 1)", ""),
    ] {
        let text = failure_of(&format!("function on_enqueue(msg) {body} end"));
        assert!(text.contains(named), "{body}: {text}");
    }
    for body in [
        // Comparisons of long strings, and C functions as comparators.
        "local a, b = ('a'):rep(100000) .. 'b', ('a'):rep(100000) .. 'c'
         local t = {} for n = 1, 10000 do t[n] = n % 2 == 0 and a or b end
         while true do table.sort(t) end",
        "local t = {} for n = 1, 10000 do t[n] = '9' end
         while true do pcall(table.sort, t, string.rep) end",
    ] {
        assert_timed_out(body);
    }
}

#[test]
fn replaced_library_functions_still_do_their_work() {
    let source = "function on_enqueue()
        local out = {}
        local function add(...) table.insert(out, table.concat({ ... }, ' ')) end
        add(('key=value'):find('=', 1, true))
        add(('key=value'):find('(%w+)=(%w+)'))
        add(tostring(('x'):find('y')))
        add(('key=value'):match('=(.*)$'))
        add(('a-b-c'):gsub('-', '+', 1))
        add(('abc'):gsub('%w', { a = '1' }))
        add(table.unpack(('a,b,c'):split()))
        add(table.unpack(('a;b'):split(';')))
        for word in ('one two'):gmatch('%a+') do add(word) end
        local list = { 3, 1, 2 }
        table.sort(list)
        add(table.unpack(list))
        table.sort(list, function(a, b) return a > b end)
        add(table.unpack(list))
        add(table.unpack(table.move({ 1, 2 }, 1, 2, 2, { 9, 9, 9 })))
        add(table.unpack(table.move({ 1, 2, 3 }, 1, 2, 2)))
        add(string.format('%d-%s-%5.2f', 7, 'x', 1.5))
        return { fairness_key = table.concat(out, '|') }
    end";
    let key = enqueue(source, &[]).unwrap().fairness_key.unwrap();
    let expected = "4 4|1 9 key value|nil|value|a+b-c 1|1bc 3|a b c|a b|one|two|1 2 3|3 2 1|9 1 2|\
                    1 1 2|7-x- 1.50";
    assert_eq!(key, expected);
}

#[test]
fn memory_bombs() {
    for body in [
        "local t = {} while true do t[#t + 1] = #t end",
        "local t = {} for n = 1, 1e9 do t[n .. ''] = n end",
        "local s = 'x' while true do s = s .. s end",
        "return ('x'):rep(100000000)",
        "local t = {} for n = 1, 10000 do t[n] = ('x'):rep(1000) .. n end",
        "return { fairness_key = table.concat(table.create(100000, ('x'):rep(1000))) }",
        "return ('x'):rep(500000):gsub('x', 'xxxx')",
        "buffer.create(100000000)",
        "table.create(60000000)",
        "local t = {} while true do t = { t, t, {}, function() return t end } end",
        "local t = {} while true do t[#t + 1] = coroutine.create(function() end) end",
        "local s = ('x'):rep(400000) return s:upper() .. s:lower() .. s:reverse()",
        "return string.format('%s%s%s', ('x'):rep(400000), ('y'):rep(400000), ('z'):rep(400000))",
    ] {
        match outcome(body) {
            Err(ScriptError::Failed(text)) => assert!(text.contains("memory"), "{body}: {text}"),
            // A loop that catches its breath between failing allocations runs out of time.
            Err(ScriptError::TimedOut) => {}
            Ok(classified) => panic!("{body}: {classified:?}"),
        }
    }
    let caught = "local function bomb() return ('x'):rep(100000000) end
        return { fairness_key = tostring((pcall(bomb))) }";
    assert_eq!(
        outcome(caught).unwrap().fairness_key.as_deref(),
        Some("false")
    );
    assert_timed_out("while true do pcall(string.rep, 'x', 1e8) end");
}

#[test]
fn deep_recursion() {
    for body in [
        "local function f(n) return 1 + f(n + 1) end return f(1)",
        "local function f(...) return f(1, ...) end return f()",
        "local t = setmetatable({}, {}) getmetatable(t).__index = t return t.x",
        "local t = setmetatable({}, { __index = function(t, k) return t[k .. 'x'] end })
         return t.x",
        "local function f() return tostring(setmetatable({}, { __tostring = f })) end f()",
        "local function f() return ('x'):gsub('x', f) end f()",
        "local function f() local _ = coroutine.wrap(f)() end f()",
    ] {
        assert!(outcome(body).is_err(), "{body}");
    }
    let caught = "local function f() return 1 + f() end
        return { fairness_key = tostring((pcall(f))) }";
    assert_eq!(
        outcome(caught).unwrap().fairness_key.as_deref(),
        Some("false")
    );
    assert!(outcome("local function f() return pcall(f) end f() return 5").is_err());
}
