use std::collections::BTreeMap;

use tanda_engine::{Millis, UserId, UserTable, VhostPermissions};
use tanda_session::login::{Password, Permission};

use super::*;
use crate::users::Renewal;

/// What a test changes, and what it asks.
struct Office {
    authenticator: Arc<Authenticator>,
    publish: watch::Sender<Principals>,
    rehashed: mpsc::Receiver<UserRequest>,
    users: Vec<User>,
}

fn here() -> Option<SocketAddr> {
    "[::ffff:127.0.0.1]:9".parse().ok()
}

fn there() -> Option<SocketAddr> {
    "10.0.0.1:9".parse().ok()
}

fn user(id: u64, name: &str, hash: &str) -> User {
    let all = VhostPermissions {
        configure: ".*".into(),
        write: ".*".into(),
        read: ".*".into(),
    };
    User {
        id: UserId(id),
        name: name.into(),
        password: Some(PasswordHash::new(hash)).filter(|_| !hash.is_empty()),
        password_version: id,
        tags: [].into(),
        permissions: BTreeMap::from([("/".into(), all)]),
        topics: BTreeMap::new(),
    }
}

fn office(default_password: bool, users: Vec<User>) -> Office {
    let (publish, principals) = watch::channel(Principals::default());
    let (rehash, rehashed) = mpsc::channel(4);
    let rules = Rules {
        default_password,
        loopback_users: vec![GUEST.to_owned()],
    };
    let clock = Clock::start(Millis(0));
    let authenticator = Authenticator::new(principals, clock, rules, rehash);
    let office = Office {
        authenticator: Arc::new(authenticator),
        publish,
        rehashed,
        users,
    };
    office.publish();
    office
}

impl Office {
    fn publish(&self) {
        let users = Arc::new(UserTable::from_iter(self.users.clone()));
        let keys = Arc::default();
        self.publish.send_replace(Principals { keys, users });
    }

    async fn admit(
        &self,
        name: &str,
        password: &str,
        peer: Option<SocketAddr>,
    ) -> Result<Admitted, LoginError> {
        let login = Login {
            mechanism: "PLAIN",
            proof: Proof::Password {
                user: name.to_owned(),
                password: Password::new(password.into()),
            },
        };
        self.authenticator.admit(&login, peer).await
    }

    async fn refusal(&self, name: &str, password: &str) -> LoginError {
        self.admit(name, password, here()).await.unwrap_err()
    }
}

fn hash(password: &str) -> String {
    password::hash(password.as_bytes()).unwrap()
}

#[tokio::test]
async fn passwords_let_in_who_has_them() {
    let users = vec![user(1, "anna", &hash("pw")), user(2, "robot", "")];
    let office = office(false, users);
    for _ in 0..2 {
        // The second time it is known.
        let anna = office.admit("anna", "pw", there()).await.unwrap();
        assert_eq!(anna.identity.name(), "anna");
        assert!(anna.identity.may(Permission::Read, "/", "q"));
        assert_eq!(office.refusal("anna", "Pw").await, LoginError::Refused);
    }
    for (name, password) in [("berta", "pw"), ("robot", ""), ("robot", "pw"), ("", "")] {
        assert_eq!(office.refusal(name, password).await, LoginError::Refused);
    }
}

#[tokio::test]
async fn guest_comes_from_this_machine_only() {
    let office = office(true, vec![user(1, GUEST, &hash(GUEST))]);
    assert!(office.admit(GUEST, GUEST, here()).await.is_ok());
    for peer in [there(), None] {
        let refused = office.admit(GUEST, GUEST, peer).await.unwrap_err();
        assert_eq!(refused, LoginError::LoopbackOnly);
    }
}

#[tokio::test]
async fn the_first_password_of_guest_can_be_refused_and_others_not() {
    let mut office = office(false, vec![user(1, GUEST, &hash(GUEST))]);
    assert_eq!(office.refusal(GUEST, GUEST).await, LoginError::Refused);
    office.users = vec![user(1, GUEST, &hash("own"))];
    office.publish();
    assert!(office.admit(GUEST, "own", here()).await.is_ok());
}

#[tokio::test]
async fn a_certificate_lets_in_the_user_of_its_name() {
    let office = office(false, vec![user(1, "anna", "")]);
    let login = |name: &str| Login {
        mechanism: "EXTERNAL",
        proof: Proof::Certificate {
            name: name.to_owned(),
        },
    };
    let admitted = office.authenticator.admit(&login("anna"), there()).await;
    assert_eq!(admitted.unwrap().identity.name(), "anna");
    let refused = office.authenticator.admit(&login("berta"), there()).await;
    assert_eq!(refused.unwrap_err(), LoginError::Refused);
}

#[tokio::test]
async fn an_old_hash_is_made_anew_at_a_login() {
    let old = "rabbit-sha256:kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR";
    let mut office = office(false, vec![user(1, "anna", old)]);
    assert_eq!(office.refusal("anna", "test13").await, LoginError::Refused);
    assert!(office.rehashed.try_recv().is_err());
    office.admit("anna", "test12", here()).await.unwrap();
    let UserRequest::Rehash { user, from, to } = office.rehashed.try_recv().unwrap() else {
        panic!("something else")
    };
    assert_eq!((user.as_str(), from.reveal()), ("anna", old));
    let verdict = password::verify(Some(to.reveal()), b"test12");
    assert_eq!(verdict, Verdict::Right);
}

#[tokio::test]
async fn changes_reach_who_is_in() {
    let mut office = office(false, vec![user(1, "anna", &hash("pw"))]);
    let anna = office.admit("anna", "pw", here()).await.unwrap();
    let newest = office.authenticator.newest();
    assert!(matches!(
        anna.renew(&office.authenticator, &newest),
        Renewal::Same
    ));
    // Other permissions.
    let mut changed = user(1, "anna", &hash("pw"));
    changed.permissions.clear();
    office.users = vec![changed];
    office.publish();
    let newest = office.authenticator.newest();
    let Renewal::Changed(anna) = anna.renew(&office.authenticator, &newest) else {
        panic!("the permissions are the same")
    };
    assert!(!anna.identity.may_open("/"));
    // Another password, another user of the name, and none.
    let mut other = user(1, "anna", &hash("other"));
    other.password_version = 5;
    let gone = "user 'anna' was deleted";
    for (users, expected) in [
        (vec![other], "the password of user 'anna' was changed"),
        (vec![user(9, "anna", &hash("pw"))], gone),
        (vec![], gone),
    ] {
        office.users = users;
        office.publish();
        let newest = office.authenticator.newest();
        let Renewal::Gone(why) = anna.renew(&office.authenticator, &newest) else {
            panic!("it may stay")
        };
        assert_eq!(why, expected);
    }
}

#[tokio::test]
async fn a_thousand_logins_of_one_user_take_one_check() {
    let office = office(false, vec![user(1, "anna", &hash("pw"))]);
    let office = Arc::new(office);
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..1_000 {
        let office = Arc::clone(&office);
        all.spawn(async move { office.admit("anna", "pw", here()).await.is_ok() });
    }
    let results = all.join_all().await;
    assert_eq!(results.iter().filter(|is_in| **is_in).count(), 1_000);
}
