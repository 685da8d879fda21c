//! A Lua state in which nothing of this machine can be reached.
//!
//! Owns which libraries there are and how the state is closed. Libraries and globals cannot be
//! written once a script is loaded; there is no `os`, `io`, `debug`, `require`, `loadstring` nor
//! `getfenv`, and no bytecode is taken. Locals of a script outside its hooks live as long as its
//! state, which may be dropped after any call; see `docs/scripts.md`.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc, sync::Arc};

use mlua::{ChunkMode, Compiler, Function, Lua, LuaOptions, StdLib, Table, VmState};

use crate::{deadline::Deadline, limits::Limits};

/// Runtime configuration as scripts see it.
pub type Runtime = Arc<BTreeMap<String, String>>;

/// The runtime configuration that `fila.get` reads now, shared by all states of a host.
pub(crate) type RuntimeCell = Rc<RefCell<Runtime>>;

const SANDBOX: &str = include_str!("lua/sandbox.lua");
/// Objects of a state grow to so much of what is in use before they are collected, at most.
const GOAL_PERCENT_MAX: i32 = 400;
/// Library functions that take as long as their strings are.
const UNASKED: [&str; 3] = ["string.sub", "tonumber", "string.byte"];
const RETURNED: &str = include_str!("lua/returned.lua");

/// A state and what every hook needs of it.
#[derive(Debug)]
pub(crate) struct Sandbox {
    pub(crate) lua: Lua,
    pub(crate) deadline: Rc<Deadline>,
    /// Names a value in an error.
    pub(crate) describe: Function,
    /// KiB of the objects in the state.
    count: Function,
    limit_bytes: usize,
}

impl Sandbox {
    /// A closed state without a script. Its limits hold from here on.
    pub(crate) fn open(limits: &Limits, runtime: &RuntimeCell) -> mlua::Result<Self> {
        let libraries = StdLib::COROUTINE
            | StdLib::TABLE
            | StdLib::STRING
            | StdLib::UTF8
            | StdLib::BIT
            | StdLib::MATH
            | StdLib::BUFFER;
        // Nothing here panics on purpose, and `pcall` stays the one that Luau knows.
        let lua = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(true))?;
        let count: Function = lua.globals().raw_get("gcinfo")?;
        let runtime = Rc::clone(runtime);
        let read = lua.create_function(move |lua, key: mlua::String| {
            let runtime = runtime.borrow();
            let value = key.to_str().ok().and_then(|key| runtime.get(&*key));
            value.map(|value| lua.create_string(value)).transpose()
        })?;
        own(&lua, "sandbox", SANDBOX).call::<()>(read)?;
        lua.sandbox(true)?;
        let describe = own(&lua, "returned", RETURNED).call(())?;
        let deadline = Rc::new(Deadline::new(limits.time));
        let asked = Rc::clone(&deadline);
        lua.set_interrupt(move |_| {
            if asked.may_go_on() {
                Ok(VmState::Continue)
            } else {
                Err(out_of_time())
            }
        });
        // An empty state takes a page for every size of its objects, about 0.6 MiB.
        lua.set_memory_limit(lua.used_memory() + limits.memory_bytes)?;
        Ok(Self {
            lua,
            deadline,
            describe,
            count,
            limit_bytes: limits.memory_bytes,
        })
    }

    /// After loading: lets a quarter of the limit be waiting to be collected, so that little time
    /// goes into collecting and most of the memory is the script's.
    pub(crate) fn tune(&self) -> mlua::Result<()> {
        let live_bytes = 1024 * self.count.call::<usize>(())?.max(1);
        let goal_percent = 100 + 25 * self.limit_bytes / live_bytes;
        let goal_percent = i32::try_from(goal_percent).unwrap_or(GOAL_PERCENT_MAX);
        let (multiplier, step) = (200, 1);
        self.lua
            .gc_inc(goal_percent.min(GOAL_PERCENT_MAX), multiplier, step);
        Ok(())
    }

    /// Loads and runs a script, and closes its globals.
    pub(crate) fn load(&self, name: &str, source: &str) -> mlua::Result<Table> {
        self.deadline.start();
        let chunk = self.lua.load(source);
        let chunk = chunk.set_name(format!("={name}"));
        // Otherwise they are called without a question for the time.
        let compiler = Compiler::new().set_disabled_builtins(UNASKED);
        let chunk = chunk.set_compiler(compiler);
        chunk.set_mode(ChunkMode::Text).exec()?;
        let globals = self.lua.globals();
        globals.set_readonly(true);
        Ok(globals)
    }
}

/// A chunk of ours.
pub(crate) fn own(lua: &Lua, name: &str, source: &'static str) -> mlua::Chunk<'static> {
    lua.load(source)
        .set_name(format!("=[{name}]"))
        .set_mode(ChunkMode::Text)
        .set_compiler(Compiler::new().set_optimization_level(2))
}

#[cold]
fn out_of_time() -> mlua::Error {
    mlua::Error::RuntimeError("out of time".to_owned())
}
