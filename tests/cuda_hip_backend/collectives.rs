//! Sums over devices: by the vendor's library, and through the host where they have no library.

use cantus::group::Group;
use cantus::{Engine, Fallback, Tensor};

use kit::inputs::floats;

use crate::Scenario;
use crate::double::Vendor;

pub const ALL: &[Scenario] = &[
    ("sums over two devices by the library", &[], two),
    ("a sum over one device by the library", &[], one),
    ("a device that is two members", &[], twice),
    ("a sum over devices of two kinds", &[], mixed),
    (
        "no library of sums over devices",
        &[("CANTUS_NCCL_LIBRARY", "/nowhere/a"), ("CANTUS_RCCL_LIBRARY", "/nowhere/b")],
        missing,
    ),
    ("a sum over devices whose start fails", &[], start_fails),
];

const SHAPE: [usize; 2] = [37, 53];

fn member(vendor: &Vendor, device: usize) -> Engine {
    vendor.builder().backend(vendor.name).device(device).fallback(Fallback::Never).build().unwrap()
}

/// Each member's part is computed there, so the sum comes behind it.
fn parts(group: &Group) -> Vec<Tensor> {
    let part = |(seed, engine): (u64, &Engine)| {
        let x = engine.tensor_from(&floats(seed, SHAPE[0] * SHAPE[1], -4.0, 4.0), &SHAPE).unwrap();
        (x.expr() * 3.0).eval().unwrap()
    };
    (1..).zip(group.members()).map(part).collect()
}

/// The sums on all members, and what follows them there, against the numbers themselves.
fn check(group: &Group) {
    let sums = group.all_sum(&parts(group)).unwrap();
    assert_eq!(sums.len(), group.members().len());
    let all: Vec<Vec<f32>> = (1..).take(sums.len()).map(|seed| floats(seed, SHAPE[0] * SHAPE[1], -4.0, 4.0)).collect();
    for sum in sums {
        assert_eq!(sum.shape(), SHAPE);
        let doubled = (sum.expr() * 2.0).eval().unwrap().to_vec::<f32>().unwrap();
        for (place, value) in doubled.iter().enumerate() {
            let exact: f64 = all.iter().map(|part| 6.0 * f64::from(part[place])).sum();
            assert!((f64::from(*value) - exact).abs() < 1e-4, "element {place} is {value}, exactly {exact}");
        }
    }
}

fn told(engine: &Engine) -> Option<String> {
    engine.takeovers().into_iter().find_map(|(_, figures)| figures.refusal)
}

fn two(vendor: &Vendor) {
    let group = Group::new([member(vendor, 0), member(vendor, 1)]).unwrap();
    let before = vendor.current();
    for _ in 0..3 {
        check(&group);
    }
    assert_eq!((vendor.calls("ring"), vendor.calls("all_reduce")), (1, 6));
    // What an app had made current is so again.
    assert_eq!(vendor.current(), before);
    let [first, second] = group.members() else { panic!("two members") };
    assert!(first.takeovers().iter().any(|(_, figures)| figures.launches == 3), "{:?}", first.takeovers());
    // Misuse, told before anything is started.
    let parts = parts(&group);
    assert!(group.all_sum(&parts[..1]).is_err());
    assert!(group.all_sum(&[parts[1].clone(), parts[0].clone()]).is_err());
    let other = second.zeros::<f32>(&[2]).unwrap();
    assert!(group.all_sum(&[parts[0].clone(), other]).is_err());
    let whole = second.zeros::<i32>(&SHAPE).unwrap();
    assert!(group.all_sum(&[parts[0].clone(), whole]).is_err());
    assert_eq!(vendor.calls("all_reduce"), 6);
    drop((group, parts));
    vendor.assert_clean();
}

fn one(vendor: &Vendor) {
    let group = Group::new([member(vendor, 1)]).unwrap();
    check(&group);
    assert_eq!((vendor.calls("ring"), vendor.calls("all_reduce")), (1, 1));
    drop(group);
    vendor.assert_clean();
}

/// Through the host, with this reason, and not tried again.
fn by_host(vendor: &Vendor, group: Group, reason: Option<&str>) {
    check(&group);
    check(&group);
    let told = told(&group.members()[0]);
    match reason {
        Some(reason) => assert!(told.as_deref().is_some_and(|told| told.contains(reason)), "{told:?}"),
        None => assert_eq!(told, None),
    }
    drop(group);
    vendor.assert_clean();
}

fn twice(vendor: &Vendor) {
    by_host(vendor, Group::new([member(vendor, 0), member(vendor, 0)]).unwrap(), Some("two of the devices may be one"));
    assert_eq!((vendor.calls("ring"), vendor.calls("all_reduce")), (1, 0));
    let engine = member(vendor, 0);
    by_host(vendor, Group::new([engine.clone(), engine]).unwrap(), None);
}

fn mixed(vendor: &Vendor) {
    let cpu = Engine::builder().backend("cpu").build().unwrap();
    by_host(vendor, Group::new([member(vendor, 0), cpu]).unwrap(), None);
    assert_eq!(vendor.calls("ring"), 0);
}

fn missing(vendor: &Vendor) {
    by_host(vendor, Group::new([member(vendor, 0), member(vendor, 1)]).unwrap(), Some("/nowhere/"));
}

fn start_fails(vendor: &Vendor) {
    vendor.fail("all_reduce", 2, 3);
    let group = Group::new([member(vendor, 0), member(vendor, 1)]).unwrap();
    by_host(vendor, group, Some("an internal error"));
    assert_eq!(vendor.calls("all_reduce"), 2);
}
