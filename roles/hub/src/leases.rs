//! When does a subscription end by itself? Leases are finite, and they are held [websub §5.3.1].

use crate::deliver::Engine;
use std::sync::Arc;

/// Looks for leases that are over, again and again. Before a delivery the engine looks as well.
pub(crate) async fn sweep(engine: Arc<Engine>) {
    let mut ticks = tokio::time::interval(engine.options.lease_sweep.max(std::time::Duration::from_millis(10)));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        engine.end_leases();
    }
}
