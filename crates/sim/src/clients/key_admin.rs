//! What an administrator does about API keys: makes them, gives them permissions, revokes them.

use std::collections::BTreeMap;

use tanda_engine::{Millis, Permission};
use tanda_wire::fila::error::ErrorFrame;
use tanda_wire::fila::keys::{
    CreateApiKey, CreateApiKeyResult, PERMISSION_ADMIN, PERMISSION_CONSUME, PERMISSION_PRODUCE,
    Permission as Granted, RevokeApiKey, RevokeApiKeyResult, SetAcl, SetAclResult,
};
use tanda_wire::fila::{ErrorCode, Opcode};

use super::{Cx, Incoming, Peer, is_refusal};
use crate::failure::{Check, Violation};
use crate::history::{Change, KeyFacts, Keys, draw_acl};
use crate::invariants::{authority, protocol};
use crate::random::Random;

/// Keys that are to be good at a time.
const LIVE_MIN: usize = 3;

/// See the module.
#[derive(Default)]
pub(super) struct KeyAdmin {
    open: BTreeMap<u32, Asked>,
}

enum Asked {
    /// A key of this name, that ends then.
    Create(String, Option<Millis>),
    Change(usize, Change),
}

impl KeyAdmin {
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// Keys are made as long as there are few, and changed now and then.
    pub(super) fn wants_to_act(&self, random: &mut Random, cx: &Cx<'_>) -> bool {
        let keys = &cx.history.keys;
        let of = if live(keys, cx.now) < LIVE_MIN { 2 } else { 6 };
        keys.are_asked_for && self.open.len() < 2 && random.one_in(of)
    }

    /// One thing about keys, if there is anything to do.
    pub(super) fn act(&mut self, random: &mut Random, peer: &mut Peer, cx: &mut Cx<'_>) {
        let now = cx.now;
        if live(&cx.history.keys, now) < LIVE_MIN && self.open.is_empty() {
            return self.create(random, peer, cx);
        }
        let keys = cx.history.keys.known.iter().enumerate();
        let keys = keys.filter(|(_, key)| !key.is_busy);
        let fresh = |key: &KeyFacts| is_live(key, now) && key.is_fresh();
        if let Some((number, _)) = keys.clone().find(|(_, key)| fresh(key)) {
            return self.change(peer, cx, (number, Change::Acl(draw_acl(random))));
        }
        let others = keys.filter(|(_, key)| !key.is_revoked());
        let others: Vec<usize> = others.map(|(number, _)| number).collect();
        let Some(number) = random.pick(&others).copied() else {
            return;
        };
        let change = if random.one_in(3) {
            Change::Revocation
        } else {
            Change::Acl(draw_acl(random))
        };
        self.change(peer, cx, (number, change));
    }

    fn create(&mut self, random: &mut Random, peer: &mut Peer, cx: &mut Cx<'_>) {
        let expires_at = random
            .one_in(8)
            .then(|| cx.now.after_ms(random.between(1, 20_000)));
        let name = cx.history.keys.on_creation_sent();
        let id = peer.request(&CreateApiKey {
            name: &name,
            expires_at_ms: expires_at.map_or(0, |at| at.0),
            is_superadmin: false,
        });
        self.open.insert(id, Asked::Create(name, expires_at));
    }

    fn change(&mut self, peer: &mut Peer, cx: &mut Cx<'_>, (number, change): (usize, Change)) {
        let Some(key) = cx.history.keys.known.get(number) else {
            return;
        };
        let key_id = key.id.as_str();
        let id = match &change {
            Change::Revocation => peer.request(&RevokeApiKey { key_id }),
            Change::Acl(acl) => {
                let grants = acl.iter().map(|(permission, pattern)| Granted {
                    kind: kind_of(*permission),
                    pattern,
                });
                let permissions = grants.collect();
                peer.request(&SetAcl {
                    key_id,
                    permissions,
                })
            }
        };
        cx.trace
            .note(cx.now, || format!("  {key_id}: {change:?} as {id}"));
        cx.history.keys.on_change_sent(number, &change);
        self.open.insert(id, Asked::Change(number, change));
    }

    /// `None` when the frame answers no request of this kind.
    pub(super) fn on_frame(&mut self, frame: &Incoming, cx: &mut Cx<'_>) -> Option<Check> {
        let asked = self.open.remove(&frame.request_id)?;
        let bad = |error| protocol::bad_body(frame.opcode, error);
        let keys = &mut cx.history.keys;
        let body = frame.body.as_slice();
        let code = match (&asked, frame.opcode) {
            (Asked::Create(name, expires_at), Opcode::CreateApiKeyResult) => {
                CreateApiKeyResult::decode(body).map(|it| {
                    if it.error_code == ErrorCode::Ok {
                        keys.on_created(name.clone(), it.key_id, it.key, *expires_at);
                    }
                    it.error_code
                })
            }
            (Asked::Change(_, Change::Revocation), Opcode::RevokeApiKeyResult) => {
                RevokeApiKeyResult::decode(body).map(|it| it.error_code)
            }
            (Asked::Change(_, Change::Acl(_)), Opcode::SetAclResult) => {
                SetAclResult::decode(body).map(|it| it.error_code)
            }
            (Asked::Create(..) | Asked::Change(..), _) => {
                return Some(Err(protocol::stray(frame.opcode, frame.request_id)));
            }
        };
        cx.trace
            .note(cx.now, || format!("  {}: {code:?}", frame.opcode));
        Some(code.map_err(bad).and_then(|code| judge(&asked, code, cx)))
    }

    /// `None` when no request of this kind had this id.
    pub(super) fn on_error(
        &mut self,
        request_id: u32,
        error: &ErrorFrame<'_>,
        cx: &mut Cx<'_>,
    ) -> Option<()> {
        let asked = self.open.remove(&request_id)?;
        if is_refusal(error) {
            refused(&asked, cx);
        } else {
            unknown(&asked, cx);
        }
        Some(())
    }

    pub(super) fn on_lost(&mut self, cx: &mut Cx<'_>) {
        for (_, asked) in std::mem::take(&mut self.open) {
            unknown(&asked, cx);
        }
    }
}

fn is_live(key: &KeyFacts, now: Millis) -> bool {
    key.is_unrevoked() && !key.is_expired(now)
}

fn live(keys: &Keys, now: Millis) -> usize {
    let live = keys.known.iter().filter(|key| is_live(key, now));
    live.count()
}

fn judge(asked: &Asked, code: ErrorCode, cx: &mut Cx<'_>) -> Check {
    let keys = &mut cx.history.keys;
    match (asked, code) {
        (Asked::Create(..), ErrorCode::Ok) => Ok(()),
        (Asked::Change(number, change), ErrorCode::Ok) => {
            keys.on_changed(*number, change);
            Ok(())
        }
        // The disk is full.
        (Asked::Create(..), ErrorCode::StorageError) => {
            refused(asked, cx);
            Ok(())
        }
        (Asked::Change(number, change), ErrorCode::ApiKeyNotFound) => {
            let key = keys.known.get(*number);
            let revocations = u32::from(*change == Change::Revocation);
            if key.is_some_and(|key| key.revocations() <= revocations) {
                return Err(Violation {
                    invariant: authority::NAME,
                    what: format!("nobody revoked {key:?}, and it is not found"),
                });
            }
            // One of before has come.
            keys.on_changed(*number, &Change::Revocation);
            Ok(())
        }
        (Asked::Create(..) | Asked::Change(..), code) => Err(protocol::unexpected("keys", code)),
    }
}

fn refused(asked: &Asked, cx: &mut Cx<'_>) {
    match asked {
        Asked::Create(name, _) => {
            cx.history.keys.unanswered.remove(name);
        }
        Asked::Change(number, change) => cx.history.keys.on_change_refused(*number, change),
    }
}

fn unknown(asked: &Asked, cx: &mut Cx<'_>) {
    if let Asked::Change(number, _) = asked {
        cx.history.keys.on_change_unknown(*number);
    }
}

const fn kind_of(permission: Permission) -> &'static str {
    match permission {
        Permission::Produce => PERMISSION_PRODUCE,
        Permission::Consume => PERMISSION_CONSUME,
        Permission::Admin => PERMISSION_ADMIN,
    }
}
