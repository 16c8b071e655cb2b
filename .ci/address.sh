#!/bin/sh
# As RUSTC_WORKSPACE_WRAPPER: this workspace's crates under AddressSanitizer, an unstable flag of rustc; what they depend on stays as it was built.
RUSTC_BOOTSTRAP=1 exec "$@" -Zsanitizer=address --cfg sanitized -Clink-arg=-rdynamic
