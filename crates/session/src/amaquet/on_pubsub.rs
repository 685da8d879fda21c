//! `pubsub.*`: what the engine is asked, and what it answered.

use bytes::Bytes;
use tanda_engine::{
    AdminReply, AdminRequest, PublishBatch, PublishError, PublishItem, PublishResult,
    PublishTarget, Request,
};
use tanda_wire::amaquet::command::{PubsubChannels, PubsubPublish, TextFields};
use tanda_wire::amaquet::envelope::Failure;

use super::active::Entry;
use super::command::{Begun, Call};
use super::fields::{out_of_limits, refused};
use super::link::Link;
use super::message::{Address, NAME_BYTES_MAX, write_message};
use super::outbound::Asked;

impl Link {
    /// Begins `pubsub.publish`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn on_publish(
        &mut self,
        begun: Begun,
        publish: &PubsubPublish<'_>,
    ) -> Result<(), Failure> {
        for (field, name) in [("key", &publish.key), ("channel", &publish.channel)] {
            if name.len() > NAME_BYTES_MAX {
                let found = format!("{} bytes", name.len());
                return Err(out_of_limits(field, found, "at most 255 bytes"));
            }
        }
        if publish.payload.len() as u64 > self.config.limits.max_message_bytes {
            let too_large = PublishResult::Refused(PublishError::TooLarge);
            return self.push_failure(too_large).map_or(Ok(()), Err);
        }
        let address = Address {
            exchange: &publish.key,
            key: &publish.channel,
        };
        let mut data = Vec::new();
        let item = write_message(&mut data, address, &publish.payload, &TextFields::default())
            .map_err(|error| refused(&error))?;
        let batch = PublishBatch {
            vhost: self.vhost()?,
            data: Bytes::from(data),
            items: vec![PublishItem {
                target: PublishTarget::Topic,
                ..item
            }],
            ..PublishBatch::default()
        };
        let reply = self.begin(begun, Call::Publish, None)?;
        self.requests.push(Request::Publish { reply, batch });
        Ok(())
    }

    /// Begins `pubsub.channels`.
    ///
    /// # Errors
    /// There is no room.
    pub(super) fn on_channels(
        &mut self,
        begun: Begun,
        channels: &PubsubChannels<'_>,
    ) -> Result<(), Failure> {
        let request = AdminRequest::ListChannels {
            vhost: self.vhost()?,
            exchange: channels.key.clone().into_owned(),
            answer_bytes_max: self.config.limits.max_payload as usize,
        };
        self.ask(begun, Call::Channels, request)
    }

    /// Answers `pubsub.publish`.
    pub(super) fn say_published(&mut self, entry: &Entry, results: &[PublishResult]) {
        let asked = Asked::command(entry.request_id);
        let result = results.first().copied();
        let result = result.unwrap_or(PublishResult::Unroutable);
        let receivers = match result {
            PublishResult::Sent { receivers } => receivers,
            PublishResult::Stored(_) | PublishResult::Duplicate(_) => 1,
            PublishResult::Unroutable => 0,
            PublishResult::Refused(_) => {
                if let Some(failure) = self.push_failure(result) {
                    self.outbound.failure(asked, &failure);
                }
                return;
            }
        };
        self.say_object(asked, |out| out.key("receivers").u64(receivers.into()));
    }

    /// Answers `pubsub.channels`.
    pub(super) fn say_channels(&mut self, entry: &Entry, reply: AdminReply) {
        let AdminReply::Channels(result) = reply else {
            return self.say_confused(entry);
        };
        let asked = Asked::command(entry.request_id);
        match result {
            Ok(channels) => self.say_object(asked, |out| {
                out.key("channels").array(|out| {
                    for channel in &channels {
                        out.str(channel);
                    }
                });
            }),
            Err(error) => {
                let failure = self.topology_failure(error);
                self.outbound.failure(asked, &failure);
            }
        }
    }
}
