//! A device and its vendor's libraries: which are there, and what of the device's they are given.

use std::sync::Arc;

use super::driver::Driver;
use super::product::{ALIGNMENT, LibraryCall, Products};
use super::shared::{Locked, Shared};
use super::vendor::CollectiveLibrary;
use crate::backend::native::ProductShape;
use crate::backend::{Bound, Buffer, Dispatch, SumPart};
use crate::checks::Owner as _;
use crate::error::Result;
use cantus_base::listed::{Listed, Ordered};

impl Shared {
    /// The library, loaded when it is first asked for.
    fn products(&self) -> Option<&Arc<Products>> {
        let library = self.driver.platform.vendor.products.filter(|_| !self.without_native)?;
        let products = self.products.get_or_init(|| match Products::open(&self.driver) {
            Ok(products) => Some(Arc::new(products)),
            Err(reason) => {
                self.takeovers.lack(library.name, &reason);
                None
            }
        });
        products.as_ref().filter(|_| !self.takeovers.is_refused(library.name))
    }

    /// Returns whether the library computes such products.
    pub(super) fn takes_product(&self, shape: &ProductShape) -> bool {
        self.products().is_some_and(|products| products.plan(shape).is_some())
    }

    /// The product that a dispatch states, by the library.
    pub(super) fn library_call(&self, dispatch: &Dispatch) -> Option<LibraryCall> {
        let stated = dispatch.stated.as_ref()?;
        let products = self.products()?;
        let (shape, places) = (&stated.product.matmul, &stated.places);
        let (operand, into) = (shape.dtype.bytes(), stated.product.result.bytes());
        let whole = shape.m.checked_mul(shape.n)?.checked_mul(shape.a.offsets.len())?;
        let reaches = [
            (1, shape.b.reach(shape.k, shape.n)?.checked_mul(operand)?),
            (0, shape.a.reach(shape.m, shape.k)?.checked_mul(operand)?),
            (2, whole.checked_mul(into)?),
        ];
        if shape.a.offsets.len() != shape.b.offsets.len() {
            return None;
        }
        let bound = |place: usize, reach: usize| match dispatch.bindings.get(*places.get(place)?)? {
            Bound::Buffer { buffer, offset, bytes } if reach as u64 <= *bytes => {
                let buffer = self.own_buffer(&**buffer, &dispatch.label).ok()?;
                Some(buffer.address() + offset).filter(|address| address.is_multiple_of(ALIGNMENT as u64))
            }
            _ => None,
        };
        let plan = products.plan(&stated.product)?;
        let mut addresses = [0; 3];
        for (number, (place, reach)) in reaches.into_iter().enumerate() {
            addresses[number] = bound(place, reach)? + plan.offsets[number];
        }
        let bias = match (stated.product.bias, plan.bias) {
            (Some(first), Some(offset)) => Some(bound(3, first.checked_add(shape.n)?.checked_mul(into)?)? + offset),
            _ => None,
        };
        Some(LibraryCall { products: products.clone(), plan, addresses, bias })
    }

    /// Sums over these devices, of which this is the first: what each adds, and where its sum goes. `None` where the library is not there or
    /// fails.
    pub(super) async fn sum_over(
        self: &Arc<Self>,
        members: Vec<(Arc<Self>, SumPart)>,
        count: usize,
    ) -> Option<Result<()>> {
        let library = self.driver.platform.vendor.collectives.filter(|_| !self.without_native)?;
        if self.takeovers.is_refused(library.name) {
            return None;
        }
        let started = {
            // Whoever adds up takes the locks in one order.
            let mut order: Vec<&Arc<Self>> = members.iter().map(|(shared, _)| shared).listed();
            order.order_by_key(|shared| Arc::as_ptr(shared));
            if order.windows(2).any(|pair| Arc::ptr_eq(pair[0], pair[1])) {
                return None;
            }
            let mut locks: Vec<(&Arc<Self>, Locked<'_>)> =
                order.into_iter().map(|shared| (shared, shared.lock())).collect();
            self.start_sum(library, &members, &mut locks, count)
        };
        if let Err(reason) = started {
            self.takeovers.refuse(library.name, &reason);
            return None;
        }
        self.takeovers.ran(library.name);
        // All of them: each device reads the others' parts.
        let mut outcome = Ok(());
        for (shared, _) in &members {
            outcome = outcome.and(shared.finish().await);
        }
        Some(outcome)
    }

    fn start_sum(
        &self,
        library: &CollectiveLibrary,
        members: &[(Arc<Self>, SumPart)],
        locks: &mut [(&Arc<Self>, Locked<'_>)],
        count: usize,
    ) -> std::result::Result<(), String> {
        let drivers: Vec<&Arc<Driver>> = members.iter().map(|(shared, _)| &shared.driver).collect();
        let ring = self.rings.of(library, &drivers)?;
        let bytes = (count as u64).saturating_mul(4);
        let address = |shared: &Self, buffer: &dyn Buffer| {
            let buffer = shared.own_buffer(buffer, "a sum over devices").map_err(|error| error.to_string())?;
            if buffer.padded() < bytes { Err("a part is too small".to_owned()) } else { Ok(buffer.address()) }
        };
        let addresses = members
            .iter()
            .map(|(shared, part)| Ok::<_, String>((address(shared, &*part.from)?, address(shared, &*part.into)?)));
        let addresses = addresses.try_listed()?;
        locks.iter_mut().for_each(|(_, state)| {
            state.enqueue();
        });
        // SAFETY: every buffer was checked; the caller keeps them until all devices have finished, and has their locks.
        let started = unsafe { ring.start(&addresses, count) };
        for (shared, state) in locks.iter_mut() {
            let _current = shared.driver.enter().map_err(|fault| fault.message)?;
            state.mark(&shared.driver).map_err(|fault| fault.message)?;
        }
        started.map_err(|fault| fault.message)
    }
}
