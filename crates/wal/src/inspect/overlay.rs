//! A directory that can be written to without changing anything: what is written stays in memory.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{Disk, DiskFile};
use crate::lsn::in_memory;

/// Another disk seen through changes that are kept in memory. Nothing reaches the other disk except
/// its lock and reads, so that a log can be opened as the broker would open it, to see what
/// happens.
///
/// Memory: the blocks that are written, so a little more than the newest segment's tail.
pub struct Overlay<D: Disk> {
    under: D,
    files: Mutex<BTreeMap<String, Arc<Node<D::File>>>>,
}

/// A file of an [`Overlay`].
pub struct OverlayFile<F> {
    node: Arc<Node<F>>,
}

struct Node<F> {
    under: Option<F>,
    state: Mutex<State>,
}

struct State {
    bytes: u64,
    /// Of the file below as much as was never cut off.
    under_bytes: u64,
    /// Blocks that were written, by number.
    blocks: BTreeMap<u64, Vec<u8>>,
}

const BLOCK_BYTES: u64 = 4096;

impl<D: Disk> Overlay<D> {
    /// Looks at `under` as it is now.
    ///
    /// # Errors
    /// What the system says when its files are listed and opened.
    pub fn new(under: D) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        for name in under.list()? {
            let file = under.open(&name)?;
            let bytes = file.len_bytes()?;
            files.insert(name, Arc::new(Node::new(Some(file), bytes)));
        }
        Ok(Self {
            under,
            files: Mutex::new(files),
        })
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Node<D::File>>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F> Node<F> {
    const fn new(under: Option<F>, bytes: u64) -> Self {
        Self {
            under,
            state: Mutex::new(State {
                bytes,
                under_bytes: bytes,
                blocks: BTreeMap::new(),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D: Disk> Disk for Overlay<D> {
    type File = OverlayFile<D::File>;
    type Lock = D::Lock;

    fn lock(&self) -> io::Result<D::Lock> {
        self.under.lock()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.files().keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<Self::File> {
        let mut files = self.files();
        if files.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let node = Arc::new(Node::new(None, 0));
        files.insert(name.to_owned(), Arc::clone(&node));
        Ok(OverlayFile { node })
    }

    fn open(&self, name: &str) -> io::Result<Self::File> {
        let node = self.files().get(name).cloned();
        let node = node.ok_or(io::ErrorKind::NotFound)?;
        Ok(OverlayFile { node })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let removed = self.files().remove(name);
        removed
            .map(drop)
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.files();
        let node = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), node);
        Ok(())
    }

    fn sync_dir(&self) -> io::Result<()> {
        Ok(())
    }

    fn free_bytes(&self) -> Option<u64> {
        None
    }
}

impl<F: DiskFile> OverlayFile<F> {
    /// Part of one block from `offset` on, as it is below.
    fn below(&self, state: &State, offset: u64, into: &mut [u8]) -> io::Result<()> {
        into.fill(0);
        let there = state.under_bytes.saturating_sub(offset);
        let len = in_memory(there.min(into.len() as u64));
        if let (Some(under), Some(into)) = (&self.node.under, into.get_mut(..len)) {
            crate::disk::read_up_to(under, offset, into)?;
        }
        Ok(())
    }
}

impl<F: DiskFile> DiskFile for OverlayFile<F> {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let state = self.node.state();
        let there = state.bytes.saturating_sub(offset);
        let len = in_memory(there.min(into.len() as u64).min(READ_BYTES_MAX));
        let into = into.get_mut(..len).unwrap_or_default();
        self.below(&state, offset, into)?;
        let end = offset + len as u64;
        let first = offset / BLOCK_BYTES;
        for (block, bytes) in state.blocks.range(first..end.div_ceil(BLOCK_BYTES)) {
            let base = block * BLOCK_BYTES;
            let (from, to) = (base.max(offset), (base + BLOCK_BYTES).min(end));
            let source = bytes.get(in_memory(from - base)..in_memory(to - base));
            let target = into.get_mut(in_memory(from - offset)..in_memory(to - offset));
            if let (Some(source), Some(target)) = (source, target) {
                target.copy_from_slice(source);
            }
        }
        Ok(len)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.node.state();
        let block = offset / BLOCK_BYTES;
        let skip = in_memory(offset % BLOCK_BYTES);
        let len = bytes.len().min(in_memory(BLOCK_BYTES) - skip);
        let mut content = match state.blocks.remove(&block) {
            Some(content) => content,
            None => {
                let mut content = vec![0; in_memory(BLOCK_BYTES)];
                self.below(&state, block * BLOCK_BYTES, &mut content)?;
                content
            }
        };
        for (to, from) in content.iter_mut().skip(skip).zip(bytes) {
            *to = *from;
        }
        state.blocks.insert(block, content);
        state.bytes = state.bytes.max(offset + len as u64);
        Ok(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn len_bytes(&self) -> io::Result<u64> {
        Ok(self.node.state().bytes)
    }

    fn allocate(&self, len_bytes: u64) -> io::Result<()> {
        let mut state = self.node.state();
        state.bytes = state.bytes.max(len_bytes);
        Ok(())
    }

    fn set_len(&self, len_bytes: u64) -> io::Result<()> {
        let mut state = self.node.state();
        state.bytes = len_bytes;
        state.under_bytes = state.under_bytes.min(len_bytes);
        let first_gone = len_bytes.div_ceil(BLOCK_BYTES);
        drop(state.blocks.split_off(&first_gone));
        let cut = state.blocks.get_mut(&(len_bytes / BLOCK_BYTES));
        if let Some(block) = cut {
            let keep = in_memory(len_bytes % BLOCK_BYTES);
            block.iter_mut().skip(keep).for_each(|byte| *byte = 0);
        }
        Ok(())
    }
}

/// A read may ask for any length; lengths in memory are bounded below 4 GiB.
const READ_BYTES_MAX: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mem_disk::MemDisk;

    #[test]
    fn what_is_written_is_read_and_never_reaches_the_disk() {
        let under = MemDisk::new(1);
        under.set_content("a", &[7; 10_000]);
        let disk = Overlay::new(under.clone()).unwrap();
        let file = disk.open("a").unwrap();
        crate::disk::write_all_at(&file, 4_090, &[1; 5_000]).unwrap();
        let mut expected = vec![7; 10_000];
        expected[4_090..9_090].fill(1);
        let read = |file: &OverlayFile<_>| {
            let mut found = vec![9; 20_000];
            let len = file.read_at(0, &mut found).unwrap();
            found.truncate(len);
            found
        };
        assert_eq!(read(&file), expected);
        file.set_len(5_000).unwrap();
        file.allocate(9_500).unwrap();
        expected.truncate(5_000);
        expected.resize(9_500, 0);
        assert_eq!(read(&file), expected);
        disk.rename("a", "b").unwrap();
        assert_eq!(disk.list().unwrap(), ["b"]);
        assert!(disk.create("b").is_err());
        disk.remove("b").unwrap();
        assert!(disk.open("b").is_err() && disk.list().unwrap().is_empty());
        assert_eq!(under.content("a").unwrap(), [7; 10_000]);
    }
}
