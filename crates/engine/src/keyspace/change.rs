//! What records say of keys: each change names its key by the id that no other key ever had, and
//! what becomes of it, so that applying it again, or to a newer state that a snapshot holds, comes
//! to the same in the end.

use super::body::NEVER;
use super::datum::{Datum, DatumForm, KeyType};
use crate::ReplayError;
use crate::record::{Reader, put_short, put_varint};

/// What becomes of a key.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    /// It is there, and holds nothing yet.
    Created {
        of: KeyType,
        expires_at: u64,
        name: Box<str>,
    },
    /// It is there no more.
    Gone,
    Renamed {
        name: Box<str>,
    },
    Expires {
        expires_at: u64,
    },
    Value {
        version: u64,
        datum: Datum,
    },
    Counter {
        value: i64,
    },
    Field {
        field: Box<str>,
        datum: Datum,
    },
    FieldGone {
        field: Box<str>,
    },
    /// Items at consecutive positions.
    Items {
        first: i64,
        items: Vec<Datum>,
    },
    ItemGone {
        position: i64,
    },
    /// Items of these positions are left.
    Kept {
        low: i64,
        high: i64,
    },
    /// Positions that items had.
    Bounds {
        low: i64,
        high: i64,
    },
    Members {
        members: Vec<Box<str>>,
    },
    MembersGone {
        members: Vec<Box<str>>,
    },
    Score {
        member: Box<str>,
        score: f64,
    },
    ScoreGone {
        member: Box<str>,
    },
    Lock {
        token: u64,
    },
    /// What only grows. It is of no key.
    Counters(Counters),
    /// The same value has another version.
    Version {
        version: u64,
    },
}

/// What only grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// The highest id of a key.
    pub(super) id: u64,
    /// The highest token of a lock.
    pub(super) token: u64,
    /// The highest version of a value that is gone or had another name.
    pub(super) version: u64,
}

impl Counters {
    pub(super) fn raise(&mut self, to: Self) {
        self.id = self.id.max(to.id);
        self.token = self.token.max(to.token);
        self.version = self.version.max(to.version);
    }
}

const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

const fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -((value & 1).cast_signed())
}

fn put_datum(out: &mut Vec<u8>, datum: &Datum) {
    out.push(datum.form as u8);
    put_varint(out, datum.bytes.len() as u64);
    out.extend_from_slice(&datum.bytes);
}

fn put_texts(out: &mut Vec<u8>, texts: &[Box<str>]) {
    put_varint(out, texts.len() as u64);
    for text in texts {
        put_short(out, text.as_bytes());
    }
}

impl Change {
    const fn tag(&self) -> u8 {
        match self {
            Self::Created { .. } => 1,
            Self::Gone => 2,
            Self::Renamed { .. } => 3,
            Self::Expires { .. } => 4,
            Self::Value { .. } => 5,
            Self::Counter { .. } => 6,
            Self::Field { .. } => 7,
            Self::FieldGone { .. } => 8,
            Self::Items { .. } => 9,
            Self::ItemGone { .. } => 10,
            Self::Kept { .. } => 11,
            Self::Bounds { .. } => 12,
            Self::Members { .. } => 13,
            Self::MembersGone { .. } => 14,
            Self::Score { .. } => 15,
            Self::ScoreGone { .. } => 16,
            Self::Lock { .. } => 17,
            Self::Counters(_) => 18,
            Self::Version { .. } => 19,
        }
    }

    /// Appends it to a record.
    pub(super) fn encode(&self, id: u64, out: &mut Vec<u8>) {
        out.push(self.tag());
        put_varint(out, id);
        match self {
            Self::Created {
                of,
                expires_at,
                name,
            } => {
                out.push(*of as u8);
                put_varint(out, expires_at.wrapping_add(1));
                put_short(out, name.as_bytes());
            }
            Self::Gone => {}
            Self::Renamed { name: text }
            | Self::FieldGone { field: text }
            | Self::ScoreGone { member: text } => put_short(out, text.as_bytes()),
            Self::Expires { expires_at } => put_varint(out, expires_at.wrapping_add(1)),
            Self::Value { version, datum } => {
                put_varint(out, *version);
                put_datum(out, datum);
            }
            Self::Counter { value } => put_varint(out, zigzag(*value)),
            Self::Field { field, datum } => {
                put_short(out, field.as_bytes());
                put_datum(out, datum);
            }
            Self::Items { first, items } => {
                put_varint(out, zigzag(*first));
                put_varint(out, items.len() as u64);
                for item in items {
                    put_datum(out, item);
                }
            }
            Self::ItemGone { position } => put_varint(out, zigzag(*position)),
            Self::Kept { low, high } | Self::Bounds { low, high } => {
                put_varint(out, zigzag(*low));
                put_varint(out, zigzag(*high));
            }
            Self::Members { members } | Self::MembersGone { members } => put_texts(out, members),
            Self::Score { member, score } => {
                put_short(out, member.as_bytes());
                out.extend_from_slice(&score.to_bits().to_be_bytes());
            }
            Self::Lock { token: number } | Self::Version { version: number } => {
                put_varint(out, *number);
            }
            Self::Counters(counters) => {
                put_varint(out, counters.id);
                put_varint(out, counters.token);
                put_varint(out, counters.version);
            }
        }
    }

    /// Reads the next one of a record.
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<(u64, Self), ReplayError> {
        let tag = reader.u8()?;
        let id = reader.varint()?;
        Ok((id, Self::decode_body(tag, reader)?))
    }

    fn decode_body(tag: u8, reader: &mut Reader<'_>) -> Result<Self, ReplayError> {
        if tag >= 9 {
            return Self::decode_part(tag, reader);
        }
        Ok(match tag {
            1 => {
                let of = reader.u8()?;
                let Some(of) = KeyType::from_byte(of) else {
                    return Err(reader.problem(&format!("a key of kind {of}")));
                };
                Self::Created {
                    of,
                    expires_at: expiry(reader)?,
                    name: reader.short()?.into(),
                }
            }
            2 => Self::Gone,
            3 => Self::Renamed {
                name: reader.short()?.into(),
            },
            4 => Self::Expires {
                expires_at: expiry(reader)?,
            },
            5 => Self::Value {
                version: reader.varint()?,
                datum: datum(reader)?,
            },
            6 => Self::Counter {
                value: unzigzag(reader.varint()?),
            },
            7 => Self::Field {
                field: reader.short()?.into(),
                datum: datum(reader)?,
            },
            8 => Self::FieldGone {
                field: reader.short()?.into(),
            },
            tag => return Err(reader.problem(&format!("change {tag} of a key is unknown"))),
        })
    }

    /// Of items, members and scores, and what was added later.
    fn decode_part(tag: u8, reader: &mut Reader<'_>) -> Result<Self, ReplayError> {
        Ok(match tag {
            9 => items(reader)?,
            10 => Self::ItemGone {
                position: unzigzag(reader.varint()?),
            },
            11 | 12 => {
                let (low, high) = (unzigzag(reader.varint()?), unzigzag(reader.varint()?));
                if tag == 11 {
                    Self::Kept { low, high }
                } else {
                    Self::Bounds { low, high }
                }
            }
            13 => Self::Members {
                members: texts(reader)?,
            },
            14 => Self::MembersGone {
                members: texts(reader)?,
            },
            15 => {
                let member = reader.short()?.into();
                let score = f64::from_bits(reader.u64()?);
                if !score.is_finite() {
                    return Err(reader.problem(&format!("a score of {score}")));
                }
                Self::Score { member, score }
            }
            16 => Self::ScoreGone {
                member: reader.short()?.into(),
            },
            17 => Self::Lock {
                token: reader.varint()?,
            },
            18 => Self::Counters(Counters {
                id: reader.varint()?,
                token: reader.varint()?,
                version: reader.varint()?,
            }),
            19 => Self::Version {
                version: reader.varint()?,
            },
            tag => return Err(reader.problem(&format!("change {tag} of a key is unknown"))),
        })
    }
}

/// Positions stay far from where they would be cut off.
const POSITION_MAX: u64 = 1 << 62;

/// One more than the time; 0 for never.
fn expiry(reader: &mut Reader<'_>) -> Result<u64, ReplayError> {
    Ok(reader.varint()?.checked_sub(1).unwrap_or(NEVER))
}

fn datum(reader: &mut Reader<'_>) -> Result<Datum, ReplayError> {
    let form = reader.u8()?;
    let Some(form) = DatumForm::from_byte(form) else {
        return Err(reader.problem(&format!("a payload of form {form}")));
    };
    let len = reader.varint()?;
    let Ok(len) = u32::try_from(len) else {
        return Err(reader.problem(&format!("a payload of {len} bytes")));
    };
    Ok(Datum::new(form, reader.bytes(len)?))
}

/// Room is made as items come: their count is not to be believed.
fn items(reader: &mut Reader<'_>) -> Result<Change, ReplayError> {
    let first = unzigzag(reader.varint()?);
    let count = reader.varint()?;
    let is_near = |position: i64| position.unsigned_abs() <= POSITION_MAX;
    let end = i64::try_from(count).ok();
    let end = end.and_then(|count| first.checked_add(count));
    if !end.is_some_and(|end| is_near(first) && is_near(end)) {
        return Err(reader.problem(&format!("{count} items from position {first}")));
    }
    let mut items = Vec::new();
    for _ in 0..count {
        items.push(datum(reader)?);
    }
    Ok(Change::Items { first, items })
}

fn texts(reader: &mut Reader<'_>) -> Result<Vec<Box<str>>, ReplayError> {
    let count = reader.varint()?;
    let mut texts = Vec::new();
    for _ in 0..count {
        texts.push(reader.short()?.into());
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Reader;

    fn samples() -> Vec<(Change, Vec<u8>)> {
        let datum = Datum::new(DatumForm::Text, b"hi");
        let name: Box<str> = "k".into();
        vec![
            (
                Change::Created {
                    of: KeyType::Map,
                    expires_at: NEVER,
                    name: name.clone(),
                },
                vec![1, 7, 3, 0, 0, 1, b'k'],
            ),
            (Change::Gone, vec![2, 7]),
            (
                Change::Renamed { name: name.clone() },
                vec![3, 7, 0, 1, b'k'],
            ),
            (Change::Expires { expires_at: 127 }, vec![4, 7, 0x80, 1]),
            (
                Change::Value {
                    version: 3,
                    datum: datum.clone(),
                },
                vec![5, 7, 3, 2, 2, b'h', b'i'],
            ),
            (Change::Counter { value: -2 }, vec![6, 7, 3]),
            (
                Change::Field {
                    field: name.clone(),
                    datum: datum.clone(),
                },
                vec![7, 7, 0, 1, b'k', 2, 2, b'h', b'i'],
            ),
            (Change::FieldGone { field: name }, vec![8, 7, 0, 1, b'k']),
            (
                Change::Items {
                    first: -1,
                    items: vec![datum],
                },
                vec![9, 7, 1, 1, 2, 2, b'h', b'i'],
            ),
            (Change::ItemGone { position: 1 }, vec![10, 7, 2]),
            (Change::Kept { low: 0, high: 1 }, vec![11, 7, 0, 2]),
            (Change::Bounds { low: -1, high: 0 }, vec![12, 7, 1, 0]),
        ]
    }

    /// Of members, scores, locks, and what only grows.
    fn more_samples() -> Vec<(Change, Vec<u8>)> {
        let name: Box<str> = "k".into();
        vec![
            (
                Change::Members {
                    members: vec![name.clone()],
                },
                vec![13, 7, 1, 0, 1, b'k'],
            ),
            (
                Change::MembersGone {
                    members: Vec::new(),
                },
                vec![14, 7, 0],
            ),
            (
                Change::Score {
                    member: name.clone(),
                    score: 1.0,
                },
                vec![15, 7, 0, 1, b'k', 0x3f, 0xf0, 0, 0, 0, 0, 0, 0],
            ),
            (Change::ScoreGone { member: name }, vec![16, 7, 0, 1, b'k']),
            (Change::Lock { token: 9 }, vec![17, 7, 9]),
            (
                Change::Counters(Counters {
                    id: 1,
                    token: 2,
                    version: 3,
                }),
                vec![18, 7, 1, 2, 3],
            ),
            (Change::Version { version: 4 }, vec![19, 7, 4]),
        ]
    }

    #[test]
    fn changes_are_these_bytes() {
        for (change, bytes) in samples().into_iter().chain(more_samples()) {
            let mut out = Vec::new();
            change.encode(7, &mut out);
            assert_eq!(out, bytes, "{change:?}");
            let mut reader = Reader::new(&bytes);
            assert_eq!(Change::decode(&mut reader), Ok((7, change)));
            assert!(!reader.has_more());
            for end in 0..bytes.len() {
                let cut = Change::decode(&mut Reader::new(&bytes[..end]));
                assert!(cut.is_err(), "{cut:?}");
            }
        }
    }

    #[test]
    fn numbers_of_either_sign_come_back() {
        for value in [0, -1, 1, i64::MIN, i64::MAX] {
            assert_eq!(unzigzag(zigzag(value)), value);
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for bytes in [
            &[0, 0][..],
            &[20, 0],
            &[1, 0, 8, 0, 0, 0],
            &[5, 0, 1, 4, 0],
            &[15, 0, 0, 0, 0x7f, 0xf0, 0, 0, 0, 0, 0, 0],
        ] {
            assert!(
                Change::decode(&mut Reader::new(bytes)).is_err(),
                "{bytes:?}"
            );
        }
    }
}
