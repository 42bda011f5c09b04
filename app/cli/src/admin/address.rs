//! Listening on the address for operators.

use crate::config::admin::AdminConfig;
use abreast_server::{AdminServer, Observed};
use anyhow::{Context as _, Result};
use std::net::SocketAddr;
use std::sync::Arc;

/// Answers operators on an address.
///
/// # Errors
/// The address is in use, or the token cannot be read.
pub(crate) fn answer_at(
    server: &AdminServer,
    config: &AdminConfig,
    observed: Arc<dyn Observed>,
) -> Result<SocketAddr> {
    let token = config.token()?;
    let listener = std::net::TcpListener::bind(config.address).with_context(|| {
        format!(
            "cannot listen on {} for operators (help: if the address is in use, choose another with --admin-listen)",
            config.address
        )
    })?;
    let address = listener.local_addr().context("cannot learn the address listened on")?;
    server.answer_at(listener, token, observed).context("cannot use the address for operators")?;
    Ok(address)
}
