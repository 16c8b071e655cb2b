//! The kernel beside plain Rust, on the processor.

use cantus_wgpu::{Options, Order};

fn sums(instance: wgpu::Instance) -> {{crate}}::Sums {
    let adapter = pollster::block_on(instance.request_adapter(&Default::default())).expect("an adapter");
    let (device, queue) = pollster::block_on(adapter.request_device(&Default::default())).expect("a device");
    {{crate}}::Sums::new(device, queue)
}

fn check(sums: &{{crate}}::Sums) {
    for count in [1, 63, 64, 65, 10_000] {
        let numbers: Vec<u32> = (0..count).map(|i| i * i % 97).collect();
        let expected: Vec<u32> = numbers.chunks(64).map(|block| block.iter().sum()).collect();
        assert_eq!(sums.of(&numbers), expected, "{count} numbers");
    }
}

#[test]
fn sums_are_those_of_plain_rust() {
    check(&sums(cantus_wgpu::instance()));
}

/// Results that depend on the order of workgroups come from a race; a store out of range would be dropped by some devices, and not by others.
#[test]
fn no_order_changes_them_and_no_store_is_out_of_range() {
    let orders = [Order::Forward, Order::Reversed].into_iter().chain((0..5).map(Order::Random));
    for order in orders {
        let mut options = Options::default();
        options.order = Some(order);
        options.check_stores = true;
        check(&sums(cantus_wgpu::instance_with(options)));
    }
}
