// Keeps the page for use without a connection, and isolates it where the host sets no headers: files with a hash in their name are taken from
// the store, others from the network first. Nothing is fetched that the page does not ask for.
const STORE = "cantus-1";

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

/** The answer with the headers of an isolated page. */
function isolated(response) {
  if (response.status === 0 || response.headers.has("cross-origin-embedder-policy")) return response;
  const headers = new Headers(response.headers);
  headers.set("cross-origin-opener-policy", "same-origin");
  headers.set("cross-origin-embedder-policy", "require-corp");
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}

/** A browser may keep nothing: its storage is blocked, or the disk is nearly full. The network answers then. */
const nothing = () => undefined;

async function forget() {
  const store = await caches.open(STORE);
  for (const request of await store.keys()) await store.delete(request);
}

async function answer(event) {
  const { request } = event;
  const store = await caches.open(STORE).catch(nothing);
  const fixed = new URL(request.url).pathname.includes("/assets/");
  const known = await store?.match(request).catch(nothing);
  if (fixed && known) return isolated(known);
  try {
    const response = await fetch(request);
    // Another release: nobody asks for the older one's files again.
    if (request.mode === "navigate" && response.ok && known && (await known.clone().text()) !== (await response.clone().text())) await forget().catch(nothing);
    if (response.ok && store) event.waitUntil(store.put(request, response.clone()).catch(nothing));
    return isolated(response);
  } catch (error) {
    if (known) return isolated(known);
    throw error;
  }
}

self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method === "GET" && new URL(request.url).origin === self.location.origin) event.respondWith(answer(event));
});
