#!/bin/sh
# As RUSTC_WORKSPACE_WRAPPER: this workspace's crates count which lines run; what they depend on stays as it was built. `sanitized` brings the
# program that forks, for its arguments.
exec "$@" -Cinstrument-coverage --cfg sanitized
