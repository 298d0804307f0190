//! What nodes can find out about each other: which of them are alive, and which one leads.

use tollgate_core::clock::SECOND;
use tollgate_store::NodeRecord;

use crate::databases::{Db, on_both};
use crate::fixtures::NOW;
use futures_util::future::join_all;

on_both!(
    live_nodes_are_listed_with_their_records,
    one_node_leads_until_it_ends_or_its_lease_expires,
);

fn record(id: &str) -> NodeRecord {
    NodeRecord {
        id: id.to_owned(),
        version: "1.2.3".to_owned(),
        started_at: NOW,
        last_seen_at: NOW,
        config_version: 4,
        config_error: None,
        schema_version: Some(23),
        clock_offset: Some(-7),
        settings: Some("{}".to_owned()),
        not_ready: Some("its clock is wrong".to_owned()),
        is_leader: false,
    }
}

async fn live_nodes_are_listed_with_their_records(db: &Db) {
    let store = db.open().await;
    let (a, b) = (record("node_a"), record("node_b"));
    for node in [&a, &b] {
        store.heartbeat(&node.id, NOW + 2 * SECOND).await.unwrap();
        store.record_node(node.clone()).await.unwrap();
    }
    let leads = store.acquire_leadership("node_a", NOW + 2 * SECOND, NOW);
    assert!(leads.await.unwrap());
    let leader = NodeRecord {
        is_leader: true,
        ..a.clone()
    };
    assert_eq!(store.live_nodes(NOW).await.unwrap(), [b.clone(), leader]);
    store.end_node("node_a", NOW + SECOND).await.unwrap();
    assert_eq!(store.live_nodes(NOW + SECOND).await.unwrap(), [b]);
    assert_eq!(store.live_nodes(NOW + 2 * SECOND).await.unwrap(), []);
}

async fn one_node_leads_until_it_ends_or_its_lease_expires(db: &Db) {
    let (store, other) = (db.open().await, db.open().await);
    let lease = 2 * SECOND;
    let lead = async |node: String, now| {
        let store = if node.as_str() < "c" { &store } else { &other };
        let leads = store.acquire_leadership(&node, now + lease, now);
        leads.await.unwrap()
    };
    let names = ["a", "b", "c", "d"].map(str::to_owned);
    let leads = join_all(names.clone().map(|name| lead(name, NOW))).await;
    let leaders = || leads.iter().enumerate().filter(|(_, leads)| **leads);
    assert_eq!(leaders().count(), 1, "{leads:?}");
    let (first, _) = leaders().next().unwrap();
    let (leader, successor) = (&names[first], &names[(first + 1) % 4]);
    // The leader renews its lease; the other nodes wait for the lease's end.
    assert!(lead(leader.clone(), NOW + SECOND).await);
    assert!(!lead(successor.clone(), NOW + lease).await);
    assert!(lead(successor.clone(), NOW + SECOND + lease).await);
    // When the previous leader continues, it finds that it does not lead any more.
    assert!(!lead(leader.clone(), NOW + SECOND + lease).await);
    // A leader that ends gives up the lead at once.
    store.end_node(successor, NOW).await.unwrap();
    assert!(lead(leader.clone(), NOW + SECOND + lease).await);
}
