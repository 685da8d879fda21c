//! What happens to the files of a data directory.

use tanda_wal::mem_disk::MemDisk;

use crate::script::Script;

/// What happens to the files; its byte modulo their number is its place in this list. Files are
/// named by their place in the sorted list of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    /// Bits of a byte flip: file, `u16` offset in units of 1 byte, which.
    Flip,
    /// Bytes are overwritten: file, `u16` offset, a length and the bytes.
    Overwrite,
    /// A range becomes zeros: file, `u16` offset, `u16` length.
    Zero,
    /// The end is lost: file, `u16` length left.
    Cut,
    /// The file gets longer: file, a length and the bytes.
    Extend,
    /// A range is copied from another place: both files and `u16` offsets, length in 512 bytes.
    Copy,
    /// Two files change their names.
    Swap,
    /// A file gets another name: file, number.
    Rename,
    /// A file is there twice: file, number of the copy.
    Double,
    /// A file is gone.
    Remove,
    /// A file of other content: number, a length and the bytes.
    Add,
}

impl Damage {
    pub(crate) const ALL: [Self; 11] = [
        Self::Flip,
        Self::Overwrite,
        Self::Zero,
        Self::Cut,
        Self::Extend,
        Self::Copy,
        Self::Swap,
        Self::Rename,
        Self::Double,
        Self::Remove,
        Self::Add,
    ];
}

/// How much was done to the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Harm {
    /// Nothing.
    None,
    /// Names are others, contents are all there.
    Names,
    /// Bytes of one block, or the end of one file.
    OnePlace,
    /// More than that.
    Any,
}

/// The block of the format: batches are aligned to it.
const BLOCK_BYTES: usize = 4096;

/// Damages of one input.
const DAMAGES_MAX: usize = 8;

/// Does what the rest of a script says. Returns what it amounts to.
pub(crate) fn harm(disk: &MemDisk, script: &mut Script<'_>) -> Harm {
    let mut harm = Harm::None;
    for _ in 0..DAMAGES_MAX {
        if script.is_empty() {
            break;
        }
        let at = script.pick(Damage::ALL.len());
        if let Some(damage) = Damage::ALL.get(at) {
            harm = harm_once(disk, harm, *damage, script);
        }
    }
    harm
}

fn harm_once(disk: &MemDisk, before: Harm, damage: Damage, script: &mut Script<'_>) -> Harm {
    let done = match damage {
        Damage::Swap => swap(disk, script),
        Damage::Rename => rename(disk, script),
        Damage::Double => double(disk, script),
        Damage::Remove => remove(disk, script),
        Damage::Add => add(disk, script),
        Damage::Copy => copy(disk, script),
        Damage::Flip | Damage::Overwrite | Damage::Zero | Damage::Cut | Damage::Extend => {
            change(disk, damage, script)
        }
    };
    if before >= Harm::OnePlace && done >= Harm::OnePlace {
        return Harm::Any;
    }
    before.max(done)
}

fn file(disk: &MemDisk, script: &mut Script<'_>) -> Option<(String, Vec<u8>)> {
    let mut names = disk.names();
    if names.is_empty() {
        return None;
    }
    let name = names.swap_remove(script.pick(names.len()));
    let content = disk.content(&name)?;
    Some((name, content))
}

/// A name that no file of these logs has by itself.
fn new_name(script: &mut Script<'_>) -> String {
    let number = script.byte();
    match number {
        0..200 => format!("{:06}.seg", 500_000 + u32::from(number)),
        200..220 => format!("{number:06}.tmp"),
        _ => format!("{number:010}.cold"),
    }
}

/// Puts a content in the place of a file, which must not lie on the disk twice meanwhile.
fn move_file(disk: &MemDisk, from: &str, to: &str) -> bool {
    tanda_wal::Disk::rename(disk, from, to).is_ok() && tanda_wal::Disk::sync_dir(disk).is_ok()
}

/// Changes a file in place.
fn change(disk: &MemDisk, damage: Damage, script: &mut Script<'_>) -> Harm {
    let Some((name, mut content)) = file(disk, script) else {
        return Harm::None;
    };
    let before = content.clone();
    let offset = usize::from(script.u16()) % content.len().max(1);
    match damage {
        Damage::Cut => content.truncate(offset),
        Damage::Extend => content.extend_from_slice(script.short()),
        Damage::Flip => overwrite_with(&mut content, offset, script.bytes(1), |old, new| old ^ new),
        Damage::Zero => {
            let len = usize::from(script.u16());
            overwrite_with(&mut content, offset, &vec![0; len], |_, new| new);
        }
        Damage::Overwrite
        | Damage::Copy
        | Damage::Swap
        | Damage::Rename
        | Damage::Double
        | Damage::Remove
        | Damage::Add => overwrite_with(&mut content, offset, script.short(), |_, new| new),
    }
    disk.set_content(&name, &content);
    harm_between(&before, &content)
}

fn overwrite_with(content: &mut [u8], at: usize, bytes: &[u8], merge: impl Fn(u8, u8) -> u8) {
    for (old, new) in content.iter_mut().skip(at).zip(bytes) {
        *old = merge(*old, *new);
    }
}

/// How much two contents of a file differ.
fn harm_between(before: &[u8], after: &[u8]) -> Harm {
    if before == after {
        return Harm::None;
    }
    let blocks = before.chunks(BLOCK_BYTES).zip(after.chunks(BLOCK_BYTES));
    let changed = blocks.filter(|(old, new)| !old.starts_with(new) && !new.starts_with(old));
    let is_resized = before.len() != after.len();
    if changed.count() + usize::from(is_resized) <= 1 {
        Harm::OnePlace
    } else {
        Harm::Any
    }
}

fn copy(disk: &MemDisk, script: &mut Script<'_>) -> Harm {
    let Some((_, source)) = file(disk, script) else {
        return Harm::None;
    };
    let Some((name, mut content)) = file(disk, script) else {
        return Harm::None;
    };
    let (from, to) = (usize::from(script.u16()), usize::from(script.u16()));
    let len = 512 * (1 + usize::from(script.byte()));
    let part = source.get(from..).unwrap_or_default();
    let part = part.get(..len).unwrap_or(part);
    let before = content.clone();
    overwrite_with(&mut content, to, part, |_, new| new);
    disk.set_content(&name, &content);
    // Bytes of the same log pass its checksums: that is not damage of one place, but forgery.
    harm_between(&before, &content).max(if before == content {
        Harm::None
    } else {
        Harm::Any
    })
}

fn swap(disk: &MemDisk, script: &mut Script<'_>) -> Harm {
    let (Some((first, _)), Some((second, _))) = (file(disk, script), file(disk, script)) else {
        return Harm::None;
    };
    let is_log = first.ends_with(".seg") && second.ends_with(".seg");
    let done = first != second
        && move_file(disk, &first, "aside")
        && move_file(disk, &second, &first)
        && move_file(disk, "aside", &second);
    match (done, is_log) {
        (false, _) => Harm::None,
        (true, true) => Harm::Names,
        (true, false) => Harm::Any,
    }
}

fn rename(disk: &MemDisk, script: &mut Script<'_>) -> Harm {
    let (Some((name, _)), new) = (file(disk, script), new_name(script)) else {
        return Harm::None;
    };
    if disk.names().contains(&new) || !move_file(disk, &name, &new) {
        return Harm::None;
    }
    let is_slot = |name: &str| name.ends_with(".seg");
    if is_slot(&name) && is_slot(&new) {
        Harm::Names
    } else {
        Harm::Any
    }
}

fn double(disk: &MemDisk, script: &mut Script<'_>) -> Harm {
    let (Some((_, content)), new) = (file(disk, script), new_name(script)) else {
        return Harm::None;
    };
    disk.set_content(&new, &content);
    Harm::Any
}

fn remove(disk: &MemDisk, script: &mut Script<'_>) -> Harm {
    let Some((name, _)) = file(disk, script) else {
        return Harm::None;
    };
    assert!(
        tanda_wal::Disk::remove(disk, &name).is_ok(),
        "{name} is there"
    );
    Harm::Any
}

fn add(disk: &MemDisk, script: &mut Script<'_>) -> Harm {
    let name = new_name(script);
    disk.set_content(&name, script.short());
    Harm::Any
}
