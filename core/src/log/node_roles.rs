//! The roles of a node, if several nodes share a store.

use std::fmt;

/// A part of the work of a Source that a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeRole {
    /// Answers requests for documents, resources, dumps and pages.
    Publish,
    /// Answers requests to the API and to the pages for administrators.
    Api,
    /// Answers requests to the hub, and delivers notifications.
    Hub,
    /// Does the work in the background that has a lease, such as the watch of a folder.
    Watch,
}

impl NodeRole {
    /// All roles, in the order in which they are printed.
    pub const ALL: [Self; 4] = [Self::Publish, Self::Api, Self::Hub, Self::Watch];

    /// The name of the role in settings and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Publish => "publish",
            Self::Api => "api",
            Self::Hub => "hub",
            Self::Watch => "watch",
        }
    }
}

impl fmt::Display for NodeRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The roles of a node, at least one. The default is all of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NodeRoles([bool; NodeRole::ALL.len()]);

/// The reason why a list of roles is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeRolesError {
    /// A node without a role does nothing.
    #[error("the list is empty")]
    Empty,
    /// No role has this name.
    #[error("`{0}` is not a role")]
    Unknown(String),
    /// The list contains a role twice.
    #[error("`{0}` is in the list twice")]
    Repeated(NodeRole),
}

impl NodeRoles {
    /// The roles with these names.
    ///
    /// # Errors
    /// A name is unknown or repeated, or there are none.
    pub fn parse<S: AsRef<str>>(names: &[S]) -> Result<Self, NodeRolesError> {
        let mut roles = Self([false; _]);
        for name in names.iter().map(AsRef::as_ref) {
            let role = NodeRole::ALL.into_iter().find(|role| role.name() == name);
            let role = role.ok_or_else(|| NodeRolesError::Unknown(name.to_owned()))?;
            if std::mem::replace(&mut roles.0[role as usize], true) {
                return Err(NodeRolesError::Repeated(role));
            }
        }
        if names.is_empty() { Err(NodeRolesError::Empty) } else { Ok(roles) }
    }

    /// Whether the node has a role.
    pub const fn has(self, role: NodeRole) -> bool {
        self.0[role as usize]
    }

    /// Names of the roles, in the order of [`NodeRole::ALL`].
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NodeRole::ALL.into_iter().filter(move |role| self.has(*role)).map(NodeRole::name)
    }
}

impl Default for NodeRoles {
    fn default() -> Self {
        Self([true; _])
    }
}

impl fmt::Debug for NodeRoles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl fmt::Display for NodeRoles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_roles_are_read_and_printed_in_one_order() {
        let roles = NodeRoles::parse(&["watch", "api"]).unwrap();
        assert_eq!(roles.to_string(), "api, watch");
        assert!(roles.has(NodeRole::Api) && roles.has(NodeRole::Watch));
        assert!(!roles.has(NodeRole::Publish) && !roles.has(NodeRole::Hub));
        let all: Vec<_> = NodeRoles::default().names().collect();
        assert_eq!(NodeRoles::parse(&all), Ok(NodeRoles::default()));
    }

    #[test]
    fn wrong_lists_of_roles_are_refused() {
        let refused = |names: &[&str]| NodeRoles::parse(names).unwrap_err().to_string();
        assert_eq!(refused(&[]), "the list is empty");
        assert_eq!(refused(&["api", "Hub"]), "`Hub` is not a role");
        assert_eq!(refused(&["api", "hub", "api"]), "`api` is in the list twice");
    }
}
