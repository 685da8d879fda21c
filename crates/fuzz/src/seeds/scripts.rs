//! Inputs to begin with of `script_run`: the scripts of the documentation, and unruly ones.

use super::{Seed, byte_of, seed, short};
use crate::script_run::{OWN_WORD, WORDS};

const TARGET: &str = "script_run";

/// Bodies of hooks that ask too much, or that return what they may not.
const UNRULY: [&str; 36] = [
    "while true do end",
    "pcall(function() while true do end end) return { fairness_key = 'survived' }",
    "local function again() while true do pcall(again) end end again()",
    "coroutine.wrap(function() while true do end end)()",
    "local function nest() return coroutine.wrap(function() nest() end)() end pcall(nest)",
    "coroutine.yield()",
    "local t = setmetatable({}, { __index = function() while true do end end }) return t.x",
    "error(setmetatable({}, { __tostring = function() error('b') end }))",
    "local t = setmetatable({}, { __iter = function() return function() return 1 end end })
     for _ in t do end",
    "table.sort({ 3, 1, 2 }, function() return true end)",
    "return { fairness_key = tostring(string.rep('a', 5000):find('.-.-.-.-b')) }",
    "return ('a'):rep(200000):gsub('[' .. ('b'):rep(9000) .. ']*', '')",
    "local t = {} while true do t[#t + 1] = #t end",
    "local s = 'x' while true do s = s .. s end",
    "buffer.create(100000000)",
    "table.create(60000000)",
    "table.move({}, 1, 2^31 - 10, 2, {})",
    "return string.format(('%s'):rep(30), table.unpack(table.create(30, ('x'):rep(9000))))",
    "local function f() return 1 + f() end return f()",
    "local function f() return ('x'):gsub('x', f) end f()",
    "string.find = nil",
    "setmetatable(_G, {})",
    "getmetatable('').__index = {}",
    "return setmetatable({}, { __index = function(_, k) if k == 'weight' then while true do end
     end end })",
    "return { attributes = setmetatable({}, { __iter = function() return function(_, n)
     return (n or '') .. 'x', 'y' end end }) }",
    "return { fairness_key = ('k'):rep(65536) }",
    "return { fairness_key = '\\xff\\xfe' }",
    "return { weight = 0/0 }",
    "return { weight = 2^53, attributes = { [1] = 2 } }",
    "local t = {} for n = 1, 65 do t['a' .. n] = 'b' end return { attributes = t }",
    "return { attributes = { a = ('x'):rep(16384) } }",
    "return { action = 'retry', delay_ms = 1/0 }",
    "return { action = 'retry', delay_ms = -0.5 }",
    "return { action = {} }",
    "error(('long'):rep(10000), 0)",
    "return 5",
];

/// Sources that are no hooks.
const BROKEN: [&str; 10] = [
    "",
    "on_enqueue = 5 on_failure = {}",
    "function on_enqueue(msg",
    "while true do end",
    "local t = {} while true do t[#t + 1] = {} end",
    "\u{1b}LuaQ",
    "error('at once')",
    "on_enqueue = coroutine.yield on_failure = coroutine.wrap(function() end)",
    "return function() end",
    "local a = { { { { { { { { { { } } } } } } } } } } ((((((((((a))))))))))()",
];

pub(super) fn all() -> Vec<Seed> {
    let pages = [
        include_str!("../../../../docs/scripts.md"),
        include_str!("../../../../docs/recipes/tenant-fairness.md"),
        include_str!("../../../../docs/recipes/weighted-tiers.md"),
        include_str!("../../../../docs/recipes/per-account-order.md"),
        include_str!("../../../../docs/recipes/poison-messages.md"),
        include_str!("../../../../docs/recipes/rate-limited-api.md"),
    ];
    let blocks = pages
        .into_iter()
        .flat_map(|page| page.split("```lua").skip(1));
    let documented = blocks.filter_map(|rest| rest.split("```").next());
    let mut seeds = Vec::new();
    for (n, source) in documented.chain(BROKEN).enumerate() {
        for hook in 0..2 {
            let name = format!("source-{n:02}-{hook}");
            seeds.push(seed(TARGET, &name, input(hook, source)));
        }
    }
    for (n, body) in UNRULY.into_iter().enumerate() {
        let hook = u8::from(body.contains("action"));
        let name = if hook == 0 {
            "on_enqueue"
        } else {
            "on_failure"
        };
        let source = format!("function {name}(msg)\n{body}\nend");
        seeds.push(seed(
            TARGET,
            &format!("unruly-{n:02}"),
            input(hook, &source),
        ));
    }
    seeds.push(seed(TARGET, "words", words()));
    seeds
}

/// A message with a tenant, a key and an error, and the source as text.
fn input(hook: u8, source: &str) -> Vec<u8> {
    let numbers = [0, 0, 0, 9, 0, 0, 0, 2, 0];
    [
        &[hook, 1],
        &short(b"x")[..],
        &short(b"key"),
        &short(b"http 429"),
        &numbers,
        source.as_bytes(),
    ]
    .concat()
}

fn words() -> Vec<u8> {
    let mut input = input(2, "");
    for word in [
        "function on_enqueue(msg) ",
        "for ",
        "n ",
        "=",
        "1",
        ",",
        "1e9",
        "do ",
        "pcall",
        "(",
        "string.rep",
        ",",
        "'a'",
        ",",
        "n ",
        ")",
        "end ",
        "return { fairness_key = ",
        "msg.headers.tenant ",
        "}",
        "end ",
    ] {
        input.push(byte_of(&WORDS, &word));
    }
    input.extend([OWN_WORD, 4]);
    input.extend(b"--ok");
    input
}
