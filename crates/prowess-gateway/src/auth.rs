//! Authentication: does somebody know a secret of ours?

use serde_json::json;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::caller::Caller;
use crate::settings::Auth;
use crate::throttle::{Lockout, LockoutRule, Tried, Verdict};
use crate::wire::Refusal;

/// Knows the secrets, and who was wrong about them.
#[derive(Debug)]
pub(crate) struct Guard {
    auth: Auth,
    lockout: Lockout,
}

/// The secrets that somebody showed.
#[derive(Clone, Copy, Default)]
pub(crate) struct Shown<'a> {
    pub(crate) token: Option<&'a str>,
    pub(crate) password: Option<&'a str>,
}

/// By what somebody was recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    None,
    Token,
    Password,
    Proxy,
    DeviceToken,
}

/// Why somebody was not recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denied {
    TokenMissing,
    TokenMismatch,
    PasswordMissing,
    PasswordMismatch,
    DeviceTokenMismatch,
    NoProxyUser,
    /// Too many mistakes; good again after so many milliseconds.
    RateLimited(u64),
}

/// What kind of program was not recognised, so that it can be told what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    CommandLine,
    Page,
    Other,
}

impl Guard {
    pub(crate) fn new(auth: Auth, rule: LockoutRule) -> Self {
        Self { auth, lockout: Lockout::new(rule) }
    }

    /// What clients are told about it.
    pub(crate) fn mode(&self) -> &'static str {
        self.auth.mode()
    }

    /// Whether nobody has to know anything.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.auth, Auth::None)
    }

    /// Whether `shown` is right; if not, that is counted.
    pub(crate) fn check(&self, shown: Shown<'_>, caller: &Caller, now: u64) -> Result<Method, Denied> {
        let checked = self.compare(shown, caller, now);
        if let Err(denied) = checked
            && !matches!(denied, Denied::RateLimited(_) | Denied::NoProxyUser)
        {
            self.wrong(Tried::SharedSecret, caller, now);
        }
        checked
    }

    /// Whether `shown` is right, without counting that it is not: it may still turn out to be another kind of secret. If
    /// it does not, [`Self::guessed`] has to hear of it.
    pub(crate) fn compare(&self, shown: Shown<'_>, caller: &Caller, now: u64) -> Result<Method, Denied> {
        let (secret, given, method, missing, mismatch) = match &self.auth {
            Auth::None => return Ok(Method::None),
            Auth::Proxy(_) => return caller.user.as_ref().map(|_| Method::Proxy).ok_or(Denied::NoProxyUser),
            // A gateway that runs has made a token, so nothing matches here.
            Auth::Unset => return Err(Denied::TokenMismatch),
            Auth::Token(secret) => (secret, shown.token, Method::Token, Denied::TokenMissing, Denied::TokenMismatch),
            Auth::Password(secret) => {
                (secret, shown.password, Method::Password, Denied::PasswordMissing, Denied::PasswordMismatch)
            }
        };
        self.may_try(Tried::SharedSecret, caller, now)?;
        let given = given.map(str::trim).filter(|given| !given.is_empty()).ok_or(missing)?;
        if !is_equal(given, secret.expose()) {
            return Err(mismatch);
        }
        self.right(Tried::SharedSecret, caller);
        Ok(method)
    }

    /// What was compared is no other kind of secret either: it is counted, if it was a wrong secret.
    pub(crate) fn guessed(&self, denied: Denied, caller: &Caller, now: u64) {
        match denied {
            Denied::TokenMismatch | Denied::PasswordMismatch => self.wrong(Tried::SharedSecret, caller, now),
            Denied::TokenMissing
            | Denied::PasswordMissing
            | Denied::DeviceTokenMismatch
            | Denied::NoProxyUser
            | Denied::RateLimited(_) => {}
        }
    }

    /// Whether somebody may show the token of a device at all.
    pub(crate) fn may_try_device(&self, caller: &Caller, now: u64) -> Result<(), Denied> {
        self.may_try(Tried::DeviceToken, caller, now)
    }

    /// Counts the token of a device that was shown.
    pub(crate) fn tried_device(&self, outcome: Result<(), Denied>, caller: &Caller, now: u64) {
        match outcome {
            Ok(()) => self.right(Tried::DeviceToken, caller),
            Err(_) => self.wrong(Tried::DeviceToken, caller, now),
        }
    }

    /// Whoever sits at this machine is never kept out of it.
    fn may_try(&self, tried: Tried, caller: &Caller, now: u64) -> Result<(), Denied> {
        match caller.counted_ip().map(|from| self.lockout.check(tried, from, now)) {
            None | Some(Verdict::Go) => Ok(()),
            Some(Verdict::Wait(millis)) => Err(Denied::RateLimited(millis)),
        }
    }

    fn wrong(&self, tried: Tried, caller: &Caller, now: u64) {
        if let Some(from) = caller.counted_ip() {
            self.lockout.failed(tried, from, now);
        }
    }

    fn right(&self, tried: Tried, caller: &Caller) {
        if let Some(from) = caller.counted_ip() {
            self.lockout.succeeded(tried, from);
        }
    }
}

impl Denied {
    /// The reason and the code that clients know.
    fn told(self) -> (&'static str, &'static str) {
        match self {
            Self::TokenMissing => ("token_missing", "AUTH_TOKEN_MISSING"),
            Self::TokenMismatch => ("token_mismatch", "AUTH_TOKEN_MISMATCH"),
            Self::PasswordMissing => ("password_missing", "AUTH_PASSWORD_MISSING"),
            Self::PasswordMismatch => ("password_mismatch", "AUTH_PASSWORD_MISMATCH"),
            Self::DeviceTokenMismatch => ("device_token_mismatch", "AUTH_DEVICE_TOKEN_MISMATCH"),
            Self::NoProxyUser => ("trusted_proxy_user_missing", "AUTH_UNAUTHORIZED"),
            Self::RateLimited(_) => ("rate_limited", "AUTH_RATE_LIMITED"),
        }
    }

    /// The reason, for logs.
    pub(crate) fn reason(self) -> &'static str {
        self.told().0
    }

    pub(crate) fn refusal(self, asker: Asker) -> Refusal {
        let (reason, code) = self.told();
        let refusal = Refusal::invalid(self.message(asker)).details(json!({"code": code, "authReason": reason}));
        match self {
            Self::RateLimited(millis) => refusal.retry_after(millis),
            _ => refusal,
        }
    }

    fn message(self, asker: Asker) -> String {
        let token = match asker {
            Asker::CommandLine => "write the gateway's token into gateway.remote.token",
            Asker::Page => "paste the gateway's token into the page",
            Asker::Other => "give the gateway's token",
        };
        let password = match asker {
            Asker::CommandLine => "write the gateway's password into gateway.remote.password",
            Asker::Page => "enter the gateway's password in the page",
            Asker::Other => "give the gateway's password",
        };
        match self {
            Self::TokenMissing => format!("unauthorized: gateway token missing ({token})"),
            Self::TokenMismatch => format!("unauthorized: gateway token mismatch ({token})"),
            Self::PasswordMissing => format!("unauthorized: gateway password missing ({password})"),
            Self::PasswordMismatch => format!("unauthorized: gateway password mismatch ({password})"),
            Self::DeviceTokenMismatch => {
                "unauthorized: device token mismatch (pair the device again, or rotate its token)".to_owned()
            }
            Self::NoProxyUser => "unauthorized: the proxy sent no allowed user".to_owned(),
            Self::RateLimited(millis) => {
                format!("unauthorized: too many failed attempts (try again in {} s)", millis.div_ceil(1000))
            }
        }
    }
}

/// Whether both are the same, in a time that tells nothing about either.
pub(crate) fn is_equal(one: &str, other: &str) -> bool {
    let hash = |text: &str| Sha256::digest(text.as_bytes());
    hash(one).as_slice().ct_eq(hash(other).as_slice()).into()
}

#[cfg(test)]
mod tests {
    use prowess_config::Secret;

    use super::*;

    fn caller(ip: &str) -> Caller {
        let ip = ip.parse().expect("an address");
        Caller { ip: Some(ip), peer: ip, is_local: false, origin: None, host: String::new(), user: None }
    }

    fn guard(auth: Auth) -> Guard {
        Guard::new(auth, LockoutRule::default())
    }

    fn token(token: &str) -> Shown<'_> {
        Shown { token: Some(token), password: None }
    }

    #[test]
    fn each_mode_has_its_secret() {
        let here = caller("127.0.0.1");
        let by_token = guard(Auth::Token(Secret::new("t")));
        assert_eq!(by_token.check(token(" t "), &here, 0), Ok(Method::Token));
        assert_eq!(by_token.check(token("T"), &here, 0), Err(Denied::TokenMismatch));
        assert_eq!(by_token.check(token(" "), &here, 0), Err(Denied::TokenMissing));
        assert_eq!(by_token.check(Shown { token: None, password: Some("t") }, &here, 0), Err(Denied::TokenMissing));
        let by_password = guard(Auth::Password(Secret::new("p")));
        assert_eq!(by_password.check(Shown { token: None, password: Some("p") }, &here, 0), Ok(Method::Password));
        assert_eq!(by_password.check(token("p"), &here, 0), Err(Denied::PasswordMissing));
        assert_eq!(guard(Auth::None).check(Shown::default(), &here, 0), Ok(Method::None));
        assert_eq!(guard(Auth::Unset).check(token(""), &here, 0), Err(Denied::TokenMismatch));
    }

    #[test]
    fn after_ten_mistakes_even_the_right_secret_is_not_looked_at() {
        let guard = guard(Auth::Token(Secret::new("t")));
        let far = caller("192.0.2.1");
        for at in 0..10 {
            assert_eq!(guard.check(token("x"), &far, at), Err(Denied::TokenMismatch));
        }
        assert_eq!(guard.check(token("t"), &far, 10), Err(Denied::RateLimited(299_999)));
        assert_eq!(guard.check(token("t"), &caller("192.0.2.2"), 10), Ok(Method::Token));
        assert_eq!(guard.check(token("t"), &far, 300_009), Ok(Method::Token));
    }

    #[test]
    fn a_page_on_this_machine_is_counted_though_programs_are_not() {
        let guard = guard(Auth::Token(Secret::new("t")));
        let here = Caller { is_local: true, ..caller("127.0.0.1") };
        let page = Caller { origin: Some("http://localhost:3000".into()), ..here.clone() };
        for who in [&page, &here] {
            (0..100).for_each(|at| _ = guard.check(token("x"), who, at));
        }
        assert!(matches!(guard.check(token("t"), &page, 100), Err(Denied::RateLimited(_))));
        assert_eq!(guard.check(token("t"), &here, 100), Ok(Method::Token));
    }

    #[test]
    fn whoever_comes_through_a_proxy_on_this_machine_is_counted() {
        let guard = guard(Auth::Token(Secret::new("t")));
        let proxied = caller("127.0.0.1");
        (0..10).for_each(|at| _ = guard.check(token("x"), &proxied, at));
        assert!(matches!(guard.check(token("t"), &proxied, 10), Err(Denied::RateLimited(_))));
        let here = Caller { is_local: true, ..proxied };
        assert_eq!(guard.check(token("t"), &here, 10), Ok(Method::Token));
    }

    #[test]
    fn a_wrong_secret_counts_and_a_missing_one_was_not_guessed() {
        let guard = guard(Auth::Password(Secret::new("p")));
        let far = caller("192.0.2.1");
        (0..100).for_each(|at| guard.guessed(Denied::PasswordMissing, &far, at));
        assert_eq!(guard.may_try(Tried::SharedSecret, &far, 100), Ok(()));
        (0..10).for_each(|at| guard.guessed(Denied::PasswordMismatch, &far, at));
        assert!(guard.may_try(Tried::SharedSecret, &far, 10).is_err());
        assert_eq!(guard.may_try_device(&far, 10), Ok(()), "that is another kind of secret");
    }

    #[test]
    fn a_refusal_never_repeats_what_was_shown() {
        let refusal = Denied::TokenMismatch.refusal(Asker::CommandLine);
        assert!(refusal.message.starts_with("unauthorized: gateway token mismatch ("));
        assert_eq!(
            refusal.details.as_deref(),
            Some(&json!({"code": "AUTH_TOKEN_MISMATCH", "authReason": "token_mismatch"}))
        );
        assert!(is_equal("a", "a") && !is_equal("a", "b") && !is_equal("a", "aa"));
    }
}
