//! Replay of a log with holes, for rescue: what makes no sense is passed over, what is left without
//! a queue gets one.
//!
//! A lost record has these effects. `Stored`: its messages are gone. `Removed`, `Moved`, `Leased`:
//! they did not happen, so messages that were acked come back. `Queue`: its messages are found in a
//! queue named `lost-` and its id, with default policies, or under its older policies.
//! `QueueDeleted`: the queue comes back, unless its name was given again.

use crate::engine::Engine;
use crate::on_admin::DEAD_LETTER_SUFFIX;
use crate::page::{PageHead, read_page};
use crate::queue::{Identity, Role};
use crate::queue_record::QueueRecord;
use crate::record::{Image, ImageContent, Kind, Reader, begin_counted, finish_counted};
use crate::replay::{ReadPage, Recovery};
use crate::{Lsn, QueueId, QueueSpec, ReplayError, VhostId};

/// Records of images are cut when they are this long.
const RECORD_BYTES: usize = 1 << 20;

/// Contents of a record's messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inlined {
    /// Messages with their contents.
    pub messages: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Messages whose contents cannot be read.
    pub lost: u64,
}

impl Engine {
    /// Like [`Engine::replay`], for a log of which parts are lost. Pages are loaded at once with
    /// `read`. Returns how many messages were lost with pages that cannot be read.
    ///
    /// # Errors
    /// `ReplayError` when the record was passed over, wholly or in part; go on with the next one.
    pub fn replay_lenient(
        &mut self,
        at: Lsn,
        record: &[u8],
        read: &mut ReadPage<'_>,
    ) -> Result<u64, ReplayError> {
        let mut reader = Reader::new(record);
        let header = reader.header()?;
        match header.kind {
            Kind::Queue => {
                let queue = QueueRecord::decode(header.queue, &mut reader)?;
                self.drop_namesake(&queue);
                self.replay(at, record).map(|()| 0)
            }
            Kind::Pages => {
                let Some(mut recovery) = self.recovery.take() else {
                    return self.replay(at, record).map(|()| 0);
                };
                let result = self.load_pages(&mut recovery, header.queue, &mut reader, read);
                self.recovery = Some(recovery);
                result
            }
            Kind::PageLoaded => Ok(0),
            Kind::QueueDeleted
            | Kind::Stored
            | Kind::Leased
            | Kind::Returned
            | Kind::Failed
            | Kind::Extended
            | Kind::Removed
            | Kind::Moved
            | Kind::Config
            | Kind::Shard
            | Kind::Requeued
            | Kind::Snapshot
            | Kind::Throttle
            | Kind::ApiKey
            | Kind::Acl
            | Kind::Vhost
            | Kind::Exchange
            | Kind::Binding
            | Kind::User
            | Kind::Permission
            | Kind::Image
            | Kind::Remembered
            | Kind::Classified
            | Kind::Atomic
            | Kind::Keys => self.replay(at, record).map(|()| 0),
        }
    }

    /// Names are unique: another queue of this name was deleted before this one was made.
    fn drop_namesake(&mut self, queue: &QueueRecord) {
        let identities = [Some(queue.identity()), queue.partner()];
        for identity in identities.into_iter().flatten() {
            let Some(index) = self.queues.find_in(identity.vhost, &identity.name) else {
                continue;
            };
            let found = self.queues.at(index).identity.id;
            if found != queue.id
                && found != queue.dead_letters
                && let Some(mut recovery) = self.recovery.take()
            {
                self.drop_queue(&mut recovery, found);
                self.recovery = Some(recovery);
            }
        }
    }

    fn load_pages(
        &mut self,
        rec: &mut Recovery,
        id: QueueId,
        reader: &mut Reader<'_>,
        read: &mut ReadPage<'_>,
    ) -> Result<u64, ReplayError> {
        let (lane, count) = reader.paged_lane()?;
        let mut lost = 0;
        let mut bytes = Vec::new();
        for _ in 0..count {
            let page = reader.page()?;
            let head = PageHead::of(&page, id);
            let is_there = read(page.slot, &mut bytes);
            let messages = is_there.then(|| read_page(&bytes, head)).flatten();
            let Some(messages) = messages else {
                lost += u64::from(page.count);
                continue;
            };
            for message in messages {
                let image = Image::of_paged(lane, &message);
                self.load_image(rec, id, &image, (message.at, message.len));
            }
        }
        Ok(lost)
    }

    /// Gives queues whose own record is lost a name and default policies; returns the names. Call
    /// it after the last record and before [`Engine::start`].
    pub fn name_lost_queues(&mut self) -> Vec<String> {
        let Some(mut recovery) = self.recovery.take() else {
            return Vec::new();
        };
        self.keyspaces.mend();
        let unnamed = recovery.queues.iter().filter(|(_, kept)| !kept.named);
        let mut unnamed: Vec<_> = unnamed.map(|(index, _)| *index).collect();
        unnamed.sort_by_key(|index| self.queues.at(*index).identity.id);
        let config = QueueSpec::default().resolve(&self.config.defaults);
        let mut names = Vec::new();
        for index in unnamed {
            let queue = self.queues.at(index);
            let (id, next) = (queue.identity.id, queue.next_position);
            if queue.entries.len() == 0 {
                // Nothing of it is left.
                self.drop_queue(&mut recovery, id);
                continue;
            }
            let mut name = format!("lost-{id}");
            while self.queues.find(&name).is_some() {
                name.push('x');
            }
            let dead_letters = QueueId(self.queues.next_id);
            let of_dead_letters = Identity {
                id: dead_letters,
                vhost: VhostId::DEFAULT,
                name: format!("{name}{DEAD_LETTER_SUFFIX}").into(),
                role: Role::DeadLetter { source: id },
            };
            let identity = Identity {
                id,
                vhost: VhostId::DEFAULT,
                name: name.as_str().into(),
                role: Role::Source { dead_letters },
            };
            self.name_queue(&mut recovery, of_dead_letters, &config, 1);
            self.name_queue(&mut recovery, identity, &config, next);
            names.push(name);
        }
        self.recovery = Some(recovery);
        names
    }
}

/// Puts the contents of a record's messages into it, as `read` gives them, and leaves out messages
/// whose contents it does not give. Other records than those of messages come out as they are. The
/// result needs nothing outside of it.
///
/// # Errors
/// `ReplayError` when the record makes no sense.
pub fn inline_contents(
    record: &[u8],
    read: &mut dyn FnMut(Lsn, u32, &mut Vec<u8>) -> bool,
    out: &mut Vec<Vec<u8>>,
) -> Result<Inlined, ReplayError> {
    let mut reader = Reader::new(record);
    let header = reader.header()?;
    let mut inlined = Inlined::default();
    if header.kind != Kind::Image {
        out.push(record.to_vec());
        return Ok(inlined);
    }
    let mut next = Vec::new();
    let mut count = 0;
    let mut content = Vec::new();
    for _ in 0..reader.u32()? {
        let image = reader.image()?;
        let bytes = match image.content {
            ImageContent::Here { bytes, .. } => bytes,
            ImageContent::At { at, len } => {
                if !read(at, len, &mut content) {
                    inlined.lost += 1;
                    continue;
                }
                content.as_slice()
            }
        };
        inlined.messages += 1;
        inlined.bytes += bytes.len() as u64;
        if count > 0 && next.len() + bytes.len() > RECORD_BYTES {
            finish_counted(&mut next, count);
            out.push(core::mem::take(&mut next));
            count = 0;
        }
        if count == 0 {
            begin_counted(&mut next, Kind::Image, header.queue, header.time);
        }
        let content = ImageContent::Here { offset: 0, bytes };
        Image { content, ..image }.encode(&mut next);
        count += 1;
    }
    if count > 0 {
        finish_counted(&mut next, count);
        out.push(next);
    }
    Ok(inlined)
}

/// The name of a record's kind (docs/formats/records.md); for reports.
#[must_use]
pub fn record_kind(record: &[u8]) -> String {
    match record.first() {
        None => "empty".to_owned(),
        Some(byte) => match Kind::from_byte(*byte) {
            Some(kind) => format!("{kind:?}"),
            None => format!("kind {byte}"),
        },
    }
}
