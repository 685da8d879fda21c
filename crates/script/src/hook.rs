//! One script, loaded for one of its hooks, and the way strings take into it and out of it.

use std::{
    collections::HashMap,
    io::{Read, Seek, SeekFrom},
    time::Instant,
};

use mlua::{Buffer, Function, Table, Value};

use crate::{
    error::{Broken, bounded},
    limits::{ATTRIBUTE_BYTES_MAX, ATTRIBUTES_MAX, DELAY_MS_MAX, KEY_BYTES_MAX, Limits},
    packed::Packed,
    sandbox::{RuntimeCell, Sandbox, own},
};

/// Which function of a script is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HookKind {
    /// `on_enqueue(msg)`.
    OnEnqueue,
    /// `on_failure(msg)`.
    OnFailure,
}

impl HookKind {
    /// The function's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OnEnqueue => "on_enqueue",
            Self::OnFailure => "on_failure",
        }
    }

    const fn driver(self) -> &'static str {
        match self {
            Self::OnEnqueue => concat!(
                include_str!("lua/headers.lua"),
                include_str!("lua/on_enqueue.lua")
            ),
            Self::OnFailure => concat!(
                include_str!("lua/headers.lua"),
                include_str!("lua/on_failure.lua")
            ),
        }
    }
}

/// Strings of a message up to this size use the state's own buffer.
const INPUT_BYTES: usize = 4 << 10;
/// Room for every permitted set of attributes after a fairness key of 4 KiB.
const OUTPUT_BYTES: usize = (4 << 10) + ATTRIBUTE_BYTES_MAX + 4 * ATTRIBUTES_MAX;

/// Shapes of headers that a state remembers.
const SHAPES_MAX: usize = 16;
/// The number of a shape that is learnt for one message only.
const PASSING_SHAPE: usize = 0;
/// Longer names are not remembered, so that shapes take little of a state's memory.
const SHAPE_BYTES_MAX: usize = 1 << 10;

trait Port: Read + Seek {}
impl<T: Read + Seek> Port for T {}

/// A state with one hook loaded.
pub(crate) struct Hook {
    sandbox: Sandbox,
    /// Function of ours that learns a shape of headers.
    learn: Function,
    /// Function of ours that calls the script.
    pub(crate) run: Function,
    input: Buffer,
    shapes: Shapes,
    output: Box<dyn Port>,
    /// Calls that came to an end.
    pub(crate) calls: u64,
}

/// Names of headers, packed, and the number of their shape from 1 on.
#[derive(Debug, Default)]
struct Shapes {
    known: HashMap<Box<[u8]>, usize>,
    /// That of the message before.
    last: (Vec<u8>, usize),
}

impl Shapes {
    fn set_last(&mut self, names: &[u8], shape: usize) {
        self.last.0.clear();
        self.last.0.extend_from_slice(names);
        self.last.1 = shape;
    }
}

/// A message's strings where the script's side finds them.
pub(crate) struct Handed {
    /// A buffer of their own when they are too long for that of the state.
    pub(crate) large: Option<Buffer>,
    /// The shape of the headers.
    pub(crate) shape: usize,
}

impl std::fmt::Debug for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hook")
            .field("calls", &self.calls)
            .finish_non_exhaustive()
    }
}

impl Hook {
    pub(crate) fn load(
        kind: HookKind,
        queue: &str,
        source: &str,
        limits: &Limits,
        runtime: &RuntimeCell,
    ) -> Result<Self, Broken> {
        let sandbox = Sandbox::open(limits, runtime).map_err(|error| Broken::of(&error))?;
        let loaded = Self::prepare(&sandbox, kind, queue, source);
        sandbox.deadline.end();
        if sandbox.deadline.has_expired() {
            return Err(Broken::Time);
        }
        let (learn, run, input, output) = loaded.map_err(|error| Broken::of(&error))?;
        sandbox.deadline.start_turn();
        Ok(Self {
            sandbox,
            learn,
            run,
            input,
            shapes: Shapes::default(),
            output: Box::new(output.cursor()),
            calls: 0,
        })
    }

    fn prepare(
        sandbox: &Sandbox,
        kind: HookKind,
        queue: &str,
        source: &str,
    ) -> mlua::Result<(Function, Function, Buffer, Buffer)> {
        let lua = &sandbox.lua;
        // Before the script, so that what it shadows is not what this uses.
        let driver: Function = own(lua, kind.name(), kind.driver()).into_function()?;
        let globals = sandbox.load(kind.name(), source)?;
        let hook = globals.raw_get(kind.name())?;
        let Value::Function(hook) = hook else {
            return Err(mlua::Error::RuntimeError(not_a_hook(kind, &hook)));
        };
        let input = lua.create_buffer_with_capacity(INPUT_BYTES)?;
        let output = match kind {
            HookKind::OnEnqueue => lua.create_buffer_with_capacity(OUTPUT_BYTES)?,
            HookKind::OnFailure => lua.create_buffer_with_capacity(0)?,
        };
        let describe = sandbox.describe.clone();
        let limits = limits_table(lua)?;
        let (learn, run) = driver.call((hook, describe, queue, limits, &input, &output))?;
        sandbox.tune()?;
        Ok((learn, run, input, output))
    }

    /// Starts the time of a call and hands over its strings.
    pub(crate) fn begin(&mut self, packed: &Packed) -> Result<Handed, Broken> {
        self.sandbox.deadline.start();
        let shape = self.shape_of(packed).map_err(|error| Broken::of(&error))?;
        let large = self.hand(packed.values());
        let large = large.map_err(|error| Broken::of(&error))?;
        Ok(Handed { large, shape })
    }

    fn shape_of(&mut self, packed: &Packed) -> mlua::Result<usize> {
        let names = packed.names();
        if self.shapes.last.1 != PASSING_SHAPE && self.shapes.last.0 == names {
            return Ok(self.shapes.last.1);
        }
        if let Some(&shape) = self.shapes.known.get(names) {
            self.shapes.set_last(names, shape);
            return Ok(shape);
        }
        let mut shape = PASSING_SHAPE;
        if names.len() <= SHAPE_BYTES_MAX {
            if self.shapes.known.len() == SHAPES_MAX {
                self.shapes.known.clear();
            }
            shape = self.shapes.known.len() + 1;
        }
        let large = self.hand(names)?;
        self.learn.call::<()>((large, shape, packed.headers()))?;
        if shape != PASSING_SHAPE {
            self.shapes.known.insert(names.into(), shape);
            self.shapes.set_last(names, shape);
        }
        Ok(shape)
    }

    fn hand(&self, bytes: &[u8]) -> mlua::Result<Option<Buffer>> {
        if bytes.len() <= INPUT_BYTES {
            self.input.write_bytes(0, bytes);
            return Ok(None);
        }
        self.sandbox.lua.create_buffer(bytes).map(Some)
    }

    /// Judges how a call ended.
    pub(crate) fn end<T>(&mut self, result: mlua::Result<T>) -> Result<T, Broken> {
        self.calls += 1;
        self.sandbox.deadline.end();
        if self.sandbox.deadline.has_expired() {
            return Err(Broken::Time);
        }
        result.map_err(|error| Broken::of(&error))
    }

    /// Reads what the call wrote: `len` bytes of `larger`, or of the state's buffer without it.
    pub(crate) fn read(
        &mut self,
        into: &mut Vec<u8>,
        len: usize,
        larger: Option<Buffer>,
    ) -> Result<(), Broken> {
        into.resize(len, 0);
        let read = match larger {
            None => self
                .output
                .seek(SeekFrom::Start(0))
                .and_then(|_| self.output.read_exact(into)),
            Some(larger) => larger.cursor().read_exact(into),
        };
        // It never fails: the chunk of ours wrote as many.
        read.map_err(|error| Broken::Failed(bounded(&error.to_string())))
    }

    /// Begins a turn of calls.
    pub(crate) fn start_turn(&self) {
        self.sandbox.deadline.start_turn();
    }

    /// When the last call ended.
    pub(crate) fn ended_at(&self) -> Instant {
        self.sandbox.deadline.ended_at()
    }

    /// Memory of the state.
    pub(crate) fn used_bytes(&self) -> usize {
        self.sandbox.lua.used_memory()
    }
}

fn not_a_hook(kind: HookKind, value: &Value) -> String {
    let name = kind.name();
    if value.is_nil() {
        return format!("the script defines no function {name}");
    }
    format!("{name} is a {}, not a function", value.type_name())
}

fn limits_table(lua: &mlua::Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("key_bytes_max", KEY_BYTES_MAX)?;
    table.raw_set("attributes_max", ATTRIBUTES_MAX)?;
    table.raw_set("attribute_bytes_max", ATTRIBUTE_BYTES_MAX)?;
    table.raw_set("delay_ms_max", DELAY_MS_MAX)?;
    Ok(table)
}
