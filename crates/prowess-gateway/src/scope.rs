//! Scopes: who may call what?

use std::sync::atomic::{AtomicU8, Ordering};

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A person or their program.
    Operator,
    /// A machine that runs commands.
    Node,
}

impl Role {
    /// From its name on the wire.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "operator" => Some(Self::Operator),
            "node" => Some(Self::Node),
            _ => None,
        }
    }

    /// As it is written.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Node => "node",
        }
    }
}

/// What an operator may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// See.
    Read,
    /// Talk, and run commands on nodes.
    Write,
    /// Answer questions about commands.
    Approvals,
    /// Let devices in.
    Pairing,
    /// Everything.
    Admin,
}

impl Scope {
    /// All of them, the weakest first.
    pub(crate) const ALL: [Self; 5] = [Self::Read, Self::Write, Self::Approvals, Self::Pairing, Self::Admin];

    /// From its name on the wire.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == name)
    }

    /// As it is written.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Read => "operator.read",
            Self::Write => "operator.write",
            Self::Approvals => "operator.approvals",
            Self::Pairing => "operator.pairing",
            Self::Admin => "operator.admin",
        }
    }

    /// Whether who has it may do what takes `needed`.
    pub(crate) fn covers(self, needed: Self) -> bool {
        self == needed || self == Self::Admin || (self == Self::Write && needed == Self::Read)
    }
}

/// The scopes that a connection holds. It can be given more while it lasts.
#[derive(Debug, Default)]
pub(crate) struct Scopes(AtomicU8);

impl Scopes {
    /// Whether one of them covers `needed`.
    pub(crate) fn cover(&self, needed: Scope) -> bool {
        let bits = self.0.load(Ordering::Relaxed);
        Scope::ALL.into_iter().any(|own| bits & (1 << own as u8) != 0 && own.covers(needed))
    }

    /// Adds one.
    pub(crate) fn grant(&self, scope: Scope) {
        self.0.fetch_or(1 << scope as u8, Ordering::Relaxed);
    }

    /// All of them, the weakest first.
    pub(crate) fn list(&self) -> Vec<Scope> {
        let bits = self.0.load(Ordering::Relaxed);
        Scope::ALL.into_iter().filter(|scope| bits & (1 << *scope as u8) != 0).collect()
    }

    /// Their names on the wire.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.list().into_iter().map(Scope::as_str).collect()
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        let own = Self::default();
        for scope in scopes {
            own.grant(scope);
        }
        own
    }
}

/// Whether who has the scope of one name may do what takes that of the other, also where we do not know them.
pub(crate) fn covers(own: &str, needed: &str) -> bool {
    match (Scope::parse(own), Scope::parse(needed)) {
        (Some(own), Some(needed)) => own.covers(needed),
        (Some(Scope::Admin), None) => needed.starts_with("operator."),
        _ => own == needed,
    }
}

/// Who may call a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Whoever is connected.
    Anybody,
    /// Operators with that scope.
    Operator(Scope),
    /// Nodes.
    Node,
    /// Nodes, and operators with that scope.
    NodeOr(Scope),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_holds_what_it_was_given() {
        let scopes: Scopes = [Scope::Write].into_iter().collect();
        assert!(scopes.cover(Scope::Read) && !scopes.cover(Scope::Approvals));
        scopes.grant(Scope::Approvals);
        assert_eq!(scopes.names(), ["operator.write", "operator.approvals"]);
        assert!(scopes.cover(Scope::Approvals) && !scopes.cover(Scope::Admin));
        assert!(!Scopes::default().cover(Scope::Read));
    }

    #[test]
    fn admin_covers_everything_and_write_covers_read() {
        let all = ["operator.read", "operator.write", "operator.approvals", "operator.pairing", "operator.admin"];
        for needed in all {
            assert!(covers("operator.admin", needed), "{needed}");
            assert!(covers(needed, needed), "{needed}");
            assert_eq!(covers("operator.write", needed), matches!(needed, "operator.write" | "operator.read"));
            assert_eq!(covers("operator.read", needed), needed == "operator.read");
        }
        assert!(covers("operator.admin", "operator.talk.secrets"));
        assert!(!covers("operator.admin", "node.talk"));
        assert!(covers("x", "x") && !covers("x", "y"));
    }
}
