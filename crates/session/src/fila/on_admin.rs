//! Rare requests about queues and runtime configuration.

use tanda_engine::{AdminRequest, VhostId};
use tanda_wire::fila::ErrorCode;
use tanda_wire::fila::config::{GetConfig, ListConfig, SetConfig};
use tanda_wire::fila::queue_admin::{
    CreateQueue, CreateQueueResult, DeleteQueue, ListQueues, UpdateQueue, UpdateQueueResult,
};
use tanda_wire::fila::redrive::{Reclassify, Redrive, RedriveResult};
use tanda_wire::fila::stats::GetStats;

use super::link::{Call, Link};
use super::queue_settings;
use super::slots::Kind;

pub(super) fn on_create_queue(link: &mut Link, call: &Call) {
    let Some(frame) = link.decode::<CreateQueue<'_>>(call) else {
        return;
    };
    match queue_settings::spec(&frame) {
        Ok(spec) => {
            let request = AdminRequest::CreateQueue(Box::new(spec));
            link.ask(call.request_id, Kind::Admin, request);
        }
        Err(queue_settings::InvalidSetting) => {
            let error_code = ErrorCode::InvalidConfigValue;
            let result = CreateQueueResult {
                error_code,
                queue_id: "",
            };
            link.outbound.body(call.request_id, &result);
        }
    }
}

pub(super) fn on_update_queue(link: &mut Link, call: &Call) {
    let Some(frame) = link.decode::<UpdateQueue<'_>>(call) else {
        return;
    };
    match queue_settings::changes(&frame) {
        Ok(changes) => {
            let (name, changes) = (frame.queue.to_owned(), Box::new(changes));
            link.ask(
                call.request_id,
                Kind::Admin,
                AdminRequest::UpdateQueue {
                    vhost: VhostId::DEFAULT,
                    name,
                    changes,
                },
            );
        }
        Err(queue_settings::InvalidSetting) => {
            let error_code = ErrorCode::InvalidConfigValue;
            link.outbound
                .body(call.request_id, &UpdateQueueResult { error_code });
        }
    }
}

pub(super) fn on_delete_queue(link: &mut Link, call: &Call) {
    let Some(frame) = link.decode::<DeleteQueue<'_>>(call) else {
        return;
    };
    let name = frame.queue.to_owned();
    link.ask(
        call.request_id,
        Kind::Admin,
        AdminRequest::DeleteQueue {
            vhost: VhostId::DEFAULT,
            name,
        },
    );
}

pub(super) fn on_list_queues(link: &mut Link, call: &Call) {
    if link.decode::<ListQueues>(call).is_some() {
        link.ask(call.request_id, Kind::Admin, AdminRequest::ListQueues);
    }
}

pub(super) fn on_stats(link: &mut Link, call: &Call) {
    let Some(frame) = link.decode::<GetStats<'_>>(call) else {
        return;
    };
    let name = frame.queue.to_owned();
    link.ask(
        call.request_id,
        Kind::Admin,
        AdminRequest::QueueStats {
            vhost: VhostId::DEFAULT,
            name,
        },
    );
}

pub(super) fn on_redrive(link: &mut Link, call: &Call) {
    let Some(frame) = link.decode::<Redrive<'_>>(call) else {
        return;
    };
    let reclassify = match Reclassify::from_wire(frame.reclassify) {
        Some(Reclassify::All) => tanda_engine::Reclassify::All,
        Some(Reclassify::UnclassifiedOnly) => tanda_engine::Reclassify::Unclassified,
        Some(Reclassify::None) => tanda_engine::Reclassify::None,
        None => {
            let error_code = ErrorCode::InvalidConfigValue;
            let result = RedriveResult {
                error_code,
                ..RedriveResult::default()
            };
            return link.outbound.body(call.request_id, &result);
        }
    };
    let (name, count) = (frame.dlq_queue.to_owned(), frame.count);
    link.ask(
        call.request_id,
        Kind::Admin,
        AdminRequest::Redrive {
            vhost: VhostId::DEFAULT,
            name,
            count,
            reclassify,
        },
    );
}

pub(super) fn on_set_config(link: &mut Link, call: &Call) {
    let Some(frame) = link.decode::<SetConfig<'_>>(call) else {
        return;
    };
    let (key, value) = (frame.key.to_owned(), frame.value.to_owned());
    link.ask(
        call.request_id,
        Kind::Admin,
        AdminRequest::SetConfig { key, value },
    );
}

pub(super) fn on_get_config(link: &mut Link, call: &Call) {
    let Some(frame) = link.decode::<GetConfig<'_>>(call) else {
        return;
    };
    let key = frame.key.to_owned();
    link.ask(
        call.request_id,
        Kind::Admin,
        AdminRequest::GetConfig { key },
    );
}

pub(super) fn on_list_config(link: &mut Link, call: &Call) {
    let Some(frame) = link.decode::<ListConfig<'_>>(call) else {
        return;
    };
    let prefix = frame.prefix.to_owned();
    link.ask(
        call.request_id,
        Kind::Admin,
        AdminRequest::ListConfig { prefix },
    );
}
