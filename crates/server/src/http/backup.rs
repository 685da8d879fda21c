//! `GET /api/tanda/backup`: everything that is confirmed, as one stream
//! (docs/formats/record-stream.md).
//!
//! Owns the thread that reads the backup and the body it feeds. While it is read the broker gives
//! nothing up that it needs, so a client that reads nothing is dropped after a while.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use hyper::body::Frame;
use tanda_node::{BackupSource, StreamWriter};
use tokio::{
    runtime::Handle,
    sync::mpsc::{Receiver, Sender, channel},
    time::timeout,
};

use super::{Door, auth::Asking, problem::Problem};
use crate::disk::RealDisk;

/// Pieces of about a MiB that are read ahead of the client.
const AHEAD: usize = 4;
/// How long a client may take no byte.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) async fn backup(
    State(door): State<Arc<Door>>,
    asking: Asking,
) -> Result<Response, Problem> {
    asking.needs_superadmin("backup")?;
    let answer = door.shard.backup().await.ok_or_else(Problem::stopped)?;
    let source = answer.map_err(|refused| {
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "backup_refused",
            format!("there is no backup: {refused}"),
            "try again when that is over",
        )
    })?;
    asking.note_done("backup", "");
    let (pieces, coming) = channel(AHEAD);
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || read(source, &pieces, &runtime));
    let mut response = Body::new(Pieces { coming, asking }).into_response();
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/octet-stream"),
    );
    Ok(response)
}

/// Reads until the end. A backup that fails lacks its end, which tells whoever reads it.
fn read(mut source: BackupSource<RealDisk>, pieces: &Sender<Bytes>, runtime: &Handle) {
    if let Err(problem) = try_read(&mut source, pieces, runtime) {
        tracing::warn!(%problem, "a backup was not finished");
    }
}

fn try_read(
    source: &mut BackupSource<RealDisk>,
    pieces: &Sender<Bytes>,
    runtime: &Handle,
) -> Result<(), String> {
    let said = |error: tanda_node::BackupError| error.to_string();
    let mut out = Vec::new();
    let mut writer = StreamWriter::new(source.header().map_err(said)?, &mut out);
    while let Some(record) = source.next_record().map_err(said)? {
        writer.push(&record, &mut out);
        send(&mut out, pieces, runtime)?;
    }
    writer.finish(&mut out);
    send(&mut out, pieces, runtime)
}

fn send(out: &mut Vec<u8>, pieces: &Sender<Bytes>, runtime: &Handle) -> Result<(), String> {
    if out.is_empty() {
        return Ok(());
    }
    let piece = Bytes::from(std::mem::take(out));
    match runtime.block_on(timeout(STALL_TIMEOUT, pieces.send(piece))) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err("the client went away".to_owned()),
        Err(_) => Err("the client takes no more".to_owned()),
    }
}

/// A body that ends when its pieces do, or when the key of who asked is not good any more; then it
/// lacks its end.
struct Pieces {
    coming: Receiver<Bytes>,
    asking: Asking,
}

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if !self.asking.is_still_superadmin() {
            return Poll::Ready(None);
        }
        let next = self.coming.poll_recv(cx);
        next.map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}
