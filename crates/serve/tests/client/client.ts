// The client that openapi-typescript and openapi-fetch make of the description, at work on a running service.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

const client = createClient<paths, "application/json" | "application/problem+json">({ baseUrl: process.argv[2] ?? "" });
const addition: components["schemas"]["Work"] = { kind: "field", field: "bn254-fr", function: "add", a: [1, "2"], b: ["0x10", 5] };

const computed = await client.POST("/v1/compute", { body: addition });
assert.ok(computed.data, JSON.stringify(computed.error));
assert.deepEqual(computed.data.shape, [2]);
assert.equal(BigInt(String(computed.data.data[0])), 17n);

const accepted = await client.POST("/v1/jobs", {
    body: { kind: "expression", inputs: { x: { dtype: "f32", data: [1, 2, 3] } }, expression: ["sum", ["mul", "x", 2]] },
    params: { header: { "Idempotency-Key": "typescript" } },
});
assert.ok(accepted.data, JSON.stringify(accepted.error));
const path = { id: accepted.data.id };
for (;;) {
    const { data } = await client.GET("/v1/jobs/{id}", { params: { path } });
    assert.ok(data);
    if (data.state === "done") break;
    assert.ok(data.state === "queued" || data.state === "running");
    await new Promise((resolve) => setTimeout(resolve, 20));
}
const result = await client.GET("/v1/jobs/{id}/result", { params: { path } });
assert.deepEqual(result.data?.data, [12]);

const wrong = await client.POST("/v1/compute", { body: { ...addition, a: ["no number", 1] } as typeof addition });
assert.equal(wrong.error?.status, 422);
assert.equal(wrong.error?.pointer, "/a/0");
console.log("the client for TypeScript works");
