//! Compares look-ups by hash with those by name, and covers names that share a hash.

use router_model::one_or_many::OneOrMany;

use super::*;

fn host(name: &str) -> Arc<VirtualHost> {
    let none = || OneOrMany::from(Vec::new());
    Arc::new(VirtualHost {
        host: HostMatch::Exact(Hostname::parse(name).unwrap()),
        passthrough: None,
        terminated: none(),
        cleartext: none(),
        certificate: None,
        rules: None,
    })
}

fn name(text: &str) -> Hostname {
    Hostname::parse(text).unwrap()
}

#[test]
fn hosts_are_found_as_in_the_map_by_name() {
    let hosts: Vec<_> = (0..2_000).map(|number| host(&format!("h{number}.test"))).collect();
    let mut built = HostTable::default();
    built.extend(hosts.clone());
    let mut grown = HostTable::default();
    hosts.iter().for_each(|host| grown.insert(Arc::clone(host)));
    for index in [&built, &grown] {
        assert_eq!((index.len(), index.by_hash.len(), index.shared.len()), (2_000, 2_000, 0));
        for host in &hosts {
            assert!(Arc::ptr_eq(index.get(host.key()).unwrap(), host));
        }
        assert!(index.get("h2000.test").is_none() && index.get("").is_none());
    }
    let newer = host("h7.test");
    built.extend([Arc::clone(&newer)]);
    assert!(Arc::ptr_eq(built.get("h7.test").unwrap(), &newer));
    for host in &hosts {
        built.remove(host.key());
        assert!(built.get(host.key()).is_none());
    }
    assert_eq!((built.len(), built.by_hash.len()), (0, 0));
    assert_eq!(grown.len(), 2_000, "versions are apart");
}

/// Adds and removes three names with the same hash in every order.
#[test]
fn names_that_share_a_hash_are_distinguished() {
    let all = ["a.test", "b.test", "c.test"];
    let one = |name: &str| Hash128 { h1: 7, h2: u64::from(name.as_bytes()[0]) };
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut hosts = HostTable::default();
        for known in all {
            hosts.insert_by(one(known), host(known));
        }
        for (gone, index) in order.into_iter().enumerate() {
            for (i, known) in all.iter().enumerate() {
                let is_there = !order[..gone].contains(&i);
                let found = hosts.get_by(one(known), known).map(|(host, _)| host.key().as_str().to_owned());
                assert_eq!(found.as_deref(), is_there.then_some(*known), "{order:?}, {gone} gone");
            }
            hosts.remove_by(one, &name(all[index]));
            hosts.remove_by(one, &name("d.test"));
        }
        assert!(hosts.is_empty() && hosts.by_hash.is_empty());
        let newer = host("b.test");
        hosts.insert_by(one("b.test"), Arc::clone(&newer));
        assert!(Arc::ptr_eq(hosts.get_by(one("b.test"), "b.test").unwrap().0, &newer));
    }
}
