//! Properties and headers that mean nothing to the broker, of every type that a protocol has.

use tanda_wire::amqp::{LongStr, TableWriter, Value};
use tanda_wire::firemq;
use tanda_wire::firemq::writer::{ArrayWriter, MapWriter};

use super::of_amqp::short;
use crate::random::Random;

/// Properties.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Texts {
    pub(super) content_type: Option<&'static str>,
    pub(super) correlation_id: Option<&'static str>,
    pub(super) kind: Option<&'static str>,
    pub(super) timestamp_s: Option<u64>,
}

impl Texts {
    pub(super) fn draw(random: &mut Random) -> Self {
        let mut text = |all: &[&'static str]| {
            let text = random.pick(all).copied();
            text.filter(|_| random.one_in(3))
        };
        let content_type = text(&["text/plain", "application/json"]);
        let correlation_id = text(&["c-1", "\u{fc}ber"]);
        let kind = text(&["order", ""]);
        let timestamp_s = random.below(2_000_000_000);
        Self {
            content_type,
            correlation_id,
            kind,
            timestamp_s: random.one_in(3).then_some(timestamp_s),
        }
    }
}

/// Names of headers.
const NAMES: [&str; 4] = ["h0", "h1", "h2", "h\u{e4}"];

/// A float that every way of writing it keeps.
const REAL: f64 = 1_234.5;

pub(super) fn amqp(random: &mut Random, writer: &mut TableWriter<'_>) {
    for name in NAMES {
        let name = short(name);
        let scalar = match random.below(20) {
            0 => Value::Void,
            1 => Value::I8(-3),
            2 => Value::U16(60_000),
            3 => Value::I32(i32::MIN),
            4 => Value::F32(0.25),
            5 => Value::F64(REAL),
            6 => Value::Decimal {
                scale: 2,
                value: -12_345,
            },
            7 => Value::Bytes(LongStr::new(b"\xff\x00\x01").unwrap_or_default()),
            8 => Value::Timestamp(1_600_000_000),
            9 => {
                writer.array(name, |array| {
                    array.value(&Value::Bool(true));
                    array.value(&Value::text("in a list"));
                    array.table(|table| {
                        table.value(short("deep"), &Value::I64(i64::MIN));
                    });
                });
                continue;
            }
            10 => {
                writer.table(name, |table| {
                    table.value(short("a"), &Value::I16(-1));
                    table.value(short("b"), &Value::U32(7));
                });
                continue;
            }
            11 => Value::text("text \u{1F525}"),
            _ => continue,
        };
        writer.value(name, &scalar);
    }
}

pub(super) fn fire(random: &mut Random, writer: &mut MapWriter<'_>) {
    use firemq::Value as It;
    for name in NAMES {
        match random.below(20) {
            0 => writer.entry(name, &It::Nil),
            1 => writer.entry(name, &It::Int(-3)),
            2 => writer.entry(name, &It::Uint(60_000)),
            3 => writer.entry(name, &It::Uint(u64::MAX)),
            4 => writer.entry(name, &It::F32(0.25)),
            5 => writer.entry(name, &It::F64(REAL)),
            6 => {
                let (kind, data) = (5, b"ext".as_slice());
                writer.entry(name, &It::Ext { kind, data });
            }
            7 => writer.entry(name, &It::Bin(b"\xff\x00\x01")),
            8 => {
                let (kind, data) = (-1, 1_600_000_000_u32.to_be_bytes());
                writer.entry(name, &It::Ext { kind, data: &data });
            }
            9 => {
                let mut items = ArrayWriter::begin(writer.key(name));
                items.item(&It::Bool(false));
                items.item(&It::Str("in a list"));
                let mut deep = MapWriter::begin(items.slot());
                deep.entry("deep", &It::Int(i64::MIN));
                deep.finish();
                items.finish();
            }
            10 => {
                let mut inner = MapWriter::begin(writer.key(name));
                inner.entry("a", &It::Int(-1));
                inner.entry("b", &It::Uint(7));
                inner.finish();
            }
            11 => writer.entry(name, &It::Str("text \u{1F525}")),
            _ => {}
        }
    }
}
