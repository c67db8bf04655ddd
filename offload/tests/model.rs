//! Random operations against a map, with reopening and power loss at random points.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::sim::SimDisk;
use common::{document, noise, small};
use proptest::prelude::*;
use toastrack_offload::{Kind, Reference, Store, ValueKind};

#[derive(Debug, Clone)]
enum Op {
    /// Equal contents are equal values, so deduplication has something to find.
    Put {
        kind: ValueKind,
        len: usize,
        content: u64,
        wait: bool,
    },
    Get(usize),
    GetMany(Vec<usize>),
    Reopen,
    PowerLoss(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let kind = (1u8..=5).prop_map(|code| ValueKind::from_code(code).expect("1 to 5 are kinds"));
    let len = prop_oneof![0usize..200, 200usize..9000, Just(30_000)];
    prop_oneof![
        12 => (kind, len, 0u64..20, any::<bool>())
            .prop_map(|(kind, len, content, wait)| Op::Put { kind, len, content, wait }),
        6 => any::<usize>().prop_map(Op::Get),
        2 => prop::collection::vec(any::<usize>(), 0..20).prop_map(Op::GetMany),
        1 => Just(Op::Reopen),
        1 => any::<u64>().prop_map(Op::PowerLoss),
    ]
}

fn value(len: usize, content: u64) -> Vec<u8> {
    match content % 3 {
        0 => noise(len, content),
        1 => document(len, content),
        _ => vec![content as u8; len],
    }
}

struct Model {
    disk: SimDisk,
    store: Option<Store>,
    durable: BTreeMap<usize, (Reference, Vec<u8>)>,
    waiting: Vec<(toastrack_offload::Put, Vec<u8>)>,
}

impl Model {
    fn new() -> Model {
        let disk = SimDisk::default();
        Model {
            store: Some(open(&disk)),
            disk,
            durable: BTreeMap::new(),
            waiting: Vec::new(),
        }
    }

    fn store(&self) -> &Store {
        self.store.as_ref().expect("open between operations")
    }

    async fn run(&mut self, op: Op) {
        match op {
            Op::Put {
                kind,
                len,
                content,
                wait,
            } => self.put(kind, value(len, content), wait).await,
            Op::Get(n) => {
                if let Some((reference, value)) = self.pick(n) {
                    assert_eq!(self.store().get(&reference).await.unwrap(), value);
                }
            }
            Op::GetMany(ns) => {
                let picked: Vec<_> = ns.into_iter().filter_map(|n| self.pick(n)).collect();
                let references: Vec<_> = picked.iter().map(|(reference, _)| *reference).collect();
                let values = self.store().get_many(&references).await;
                assert_eq!(values.len(), picked.len());
                for (value, (_, expected)) in values.into_iter().zip(picked) {
                    assert_eq!(value.unwrap(), expected);
                }
            }
            Op::Reopen => {
                // Closing makes everything durable that was put.
                self.store.take().expect("open").close();
                for (put, value) in self.waiting.drain(..) {
                    self.durable
                        .insert(self.durable.len(), (put.reference, value));
                }
                self.store = Some(open(&self.disk));
            }
            Op::PowerLoss(seed) => {
                let after = self.disk.after_power_loss(seed);
                drop(self.store.take());
                self.waiting.clear();
                self.disk = after;
                self.store = Some(open(&self.disk));
            }
        }
    }

    async fn put(&mut self, kind: ValueKind, value: Vec<u8>, wait: bool) {
        let put = loop {
            match self.store().put(kind, value.len() as u32, &value) {
                Ok(put) => break put,
                Err(error) if error.kind() == Kind::Retry => self.store().room().await.unwrap(),
                Err(error) => panic!("{error}"),
            }
        };
        // It can be read at once.
        assert_eq!(self.store().get(&put.reference).await.unwrap(), value);
        let spelling = put.reference.spelling();
        assert_eq!(self.store().parse(kind, &spelling), Some(put.reference));
        self.waiting.push((put, value));
        if wait {
            for (put, value) in self.waiting.drain(..) {
                self.store
                    .as_ref()
                    .expect("open")
                    .durable(put.ticket)
                    .await
                    .unwrap();
                self.durable
                    .insert(self.durable.len(), (put.reference, value));
            }
        }
    }

    fn pick(&self, n: usize) -> Option<(Reference, Vec<u8>)> {
        let len = self.durable.len();
        (len > 0).then(|| self.durable[&(n % len)].clone())
    }

    async fn check_all(&self) {
        for (reference, value) in self.durable.values() {
            assert_eq!(self.store().get(reference).await.unwrap(), *value);
        }
    }
}

fn open(disk: &SimDisk) -> Store {
    Store::open_on(Arc::new(disk.clone()), small("simulated".as_ref())).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Proves: whatever is durable reads back as it was put, whatever happens in between.
    #[test]
    fn the_store_is_a_map(ops in prop::collection::vec(op(), 1..120)) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut model = Model::new();
            for op in ops {
                model.run(op).await;
            }
            model.check_all().await;
        });
    }
}
