//! Methods of an open channel, and who takes each.

use tanda_wire::amqp::{Method, ReplyCode, access, basic, channel, confirm, exchange, queue, tx};

use super::channel::Mode;
use super::confirms::Confirms;
use super::fault::Fault;
use super::link::Link;
use super::open::Open;

impl Open {
    pub(super) fn on_method(
        &mut self,
        link: &mut Link,
        number: u16,
        method: &Method<'_>,
    ) -> Result<(), Fault> {
        match method {
            Method::Channel(method) => self.on_channel(link, number, method),
            Method::Exchange(method) => self.on_exchange(link, number, method),
            Method::Queue(method) => self.on_queue(link, number, method),
            Method::Basic(method) => self.on_basic(link, number, method),
            Method::Confirm(method) => self.on_confirm(link, number, method),
            Method::Tx(method) => self.on_tx(link, number, method),
            Method::Access(access::Method::Request(_)) => {
                link.outbound
                    .method(number, access::RequestOk { ticket: 1 });
                Ok(())
            }
            Method::Access(access::Method::RequestOk(_)) | Method::Connection(_) => {
                Err(no_method())
            }
        }
    }

    fn on_channel(
        &mut self,
        link: &mut Link,
        number: u16,
        method: &channel::Method<'_>,
    ) -> Result<(), Fault> {
        match method {
            channel::Method::Open(_) => Err(Fault::new(
                ReplyCode::ChannelError,
                "second 'channel.open' seen",
            )),
            channel::Method::Close(_) => {
                self.end_channel(link, number);
                self.channels.remove(number);
                link.outbound.method(number, channel::CloseOk {});
                Ok(())
            }
            channel::Method::Flow(flow) if flow.active => {
                link.outbound
                    .method(number, channel::FlowOk { active: true });
                Ok(())
            }
            channel::Method::Flow(_) => Err(Fault::new(ReplyCode::NotImplemented, "active=false")),
            channel::Method::OpenOk(_)
            | channel::Method::FlowOk(_)
            | channel::Method::CloseOk(_) => Err(no_method()),
        }
    }

    fn on_exchange(
        &mut self,
        link: &mut Link,
        number: u16,
        method: &exchange::Method<'_>,
    ) -> Result<(), Fault> {
        match method {
            exchange::Method::Declare(it) => self.on_declare_exchange(link, number, it),
            exchange::Method::Delete(it) => self.on_delete_exchange(link, number, it),
            exchange::Method::Bind(it) => self.on_bind_exchange(link, number, it),
            exchange::Method::Unbind(it) => self.on_unbind_exchange(link, number, it),
            exchange::Method::DeclareOk(_)
            | exchange::Method::DeleteOk(_)
            | exchange::Method::BindOk(_)
            | exchange::Method::UnbindOk(_) => Err(no_method()),
        }
    }

    fn on_queue(
        &mut self,
        link: &mut Link,
        number: u16,
        method: &queue::Method<'_>,
    ) -> Result<(), Fault> {
        match method {
            queue::Method::Declare(it) => self.on_declare_queue(link, number, it),
            queue::Method::Bind(it) => self.on_bind_queue(link, number, it),
            queue::Method::Unbind(it) => self.on_unbind_queue(link, number, it),
            queue::Method::Purge(it) => self.on_purge(link, number, it),
            queue::Method::Delete(it) => self.on_delete_queue(link, number, it),
            queue::Method::DeclareOk(_)
            | queue::Method::BindOk(_)
            | queue::Method::UnbindOk(_)
            | queue::Method::PurgeOk(_)
            | queue::Method::DeleteOk(_) => Err(no_method()),
        }
    }

    fn on_basic(
        &mut self,
        link: &mut Link,
        number: u16,
        method: &basic::Method<'_>,
    ) -> Result<(), Fault> {
        match method {
            basic::Method::Qos(it) => self.on_qos(link, number, it),
            basic::Method::Consume(it) => self.on_consume(link, number, it),
            basic::Method::Cancel(it) => self.on_cancel(link, number, it),
            basic::Method::Publish(it) => self.on_publish(link, number, it),
            basic::Method::Get(it) => self.on_get(link, number, it),
            basic::Method::Ack(it) => self.on_ack(link, number, it),
            basic::Method::Reject(it) => self.on_reject(link, number, it),
            basic::Method::Nack(it) => self.on_nack(link, number, it),
            basic::Method::Recover(it) => {
                self.on_recover(link, number, it.requeue)?;
                link.outbound.method(number, basic::RecoverOk {});
                Ok(())
            }
            basic::Method::RecoverAsync(it) => self.on_recover(link, number, it.requeue),
            // A client may answer a `basic.cancel` of the server, which wanted no answer.
            basic::Method::CancelOk(_) => Ok(()),
            basic::Method::QosOk(_)
            | basic::Method::ConsumeOk(_)
            | basic::Method::Return(_)
            | basic::Method::Deliver(_)
            | basic::Method::GetOk(_)
            | basic::Method::GetEmpty(_)
            | basic::Method::RecoverOk(_) => Err(no_method()),
        }
    }

    fn on_confirm(
        &mut self,
        link: &mut Link,
        number: u16,
        method: &confirm::Method,
    ) -> Result<(), Fault> {
        let confirm::Method::Select(select) = method else {
            return Err(no_method());
        };
        // What came before is not confirmed.
        self.send_batch(link);
        let Some(channel) = self.channels.find(number) else {
            return Ok(());
        };
        match channel.mode {
            Mode::Plain => channel.mode = Mode::Confirm(Confirms::default()),
            Mode::Confirm(_) => {}
            Mode::Tx(_) => {
                let text = "cannot switch from tx to confirm mode";
                return Err(Fault::precondition(text));
            }
        }
        if !select.no_wait {
            link.outbound.method(number, confirm::SelectOk {});
        }
        Ok(())
    }

    fn on_tx(&mut self, link: &mut Link, number: u16, method: &tx::Method) -> Result<(), Fault> {
        match method {
            tx::Method::Select(_) => self.on_select(link, number),
            tx::Method::Commit(_) => self.on_commit(link, number),
            tx::Method::Rollback(_) => self.on_rollback(link, number),
            tx::Method::SelectOk(_) | tx::Method::CommitOk(_) | tx::Method::RollbackOk(_) => {
                Err(no_method())
            }
        }
    }
}

/// A method that only servers send.
fn no_method() -> Fault {
    Fault::new(ReplyCode::CommandInvalid, "unimplemented method")
}
