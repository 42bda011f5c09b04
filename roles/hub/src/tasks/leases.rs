//! Expiry of subscriptions: leases end, and the hub enforces this [websub §5.3.1].

use crate::deliver::Engine;
use std::sync::Arc;

/// Ends expired leases periodically. The engine also checks the lease before each delivery.
pub(crate) async fn sweep(engine: Arc<Engine>) {
    let mut ticks =
        tokio::time::interval(engine.options.lease_sweep.max(std::time::Duration::from_millis(10)));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        engine.end_leases();
    }
}
