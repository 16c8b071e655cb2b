//! Sums of multiples of points, by bytes as Ethereum writes them.

use cantus::zk::{Bn254Fr, Bn254G1, Check, FieldTensor, PointEncoding, PointTensor, multi_scalar_mul_async};
use js_sys::{Promise, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::engine::RawEngine;
use crate::error::thrown;
use crate::promise::promise;

#[wasm_bindgen]
impl RawEngine {
    /// The sum of BN254's points times the scalars at their places: 64 bytes a point and 32 a scalar, as in EIP-196.
    #[wasm_bindgen(js_name = multiScalarMul)]
    pub fn multi_scalar_mul(&self, scalars: Vec<u8>, points: Vec<u8>) -> Promise {
        let engine = self.engine.clone();
        let sum = async move {
            let scalars = FieldTensor::<Bn254Fr>::from_be_bytes_async(&engine, &scalars, Check::Strict).await?;
            let points =
                PointTensor::<Bn254G1>::from_bytes_async(&engine, &points, PointEncoding::Eip, Check::Strict).await?;
            Ok(multi_scalar_mul_async(&scalars, &points).await?.to_bytes(PointEncoding::Eip))
        };
        promise(async move {
            let bytes: cantus::Result<Vec<u8>> = sum.await;
            bytes.map(|bytes| Uint8Array::from(&*bytes).into()).map_err(|error| thrown(&error))
        })
    }
}
