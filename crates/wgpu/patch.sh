#!/bin/sh
# Lets programs that know nothing of Cantus compute on its CPU device: copies wgpu-core from Cargo's registry to a folder, and adds a few lines to it.
# Afterwards, CANTUS_WGPU=1 makes every wgpu::Instance of the program one of that device; without it nothing changes.
#
#     sh patch.sh wgpu-core-with-cantus [version of wgpu-core]
#
# and in the program's Cargo.toml: [patch.crates-io] wgpu-core = { path = "wgpu-core-with-cantus" }
# CANTUS_HAL is the folder of cantus-hal; without it, the published crate is taken.
set -eu
target=${1:?"the folder to create"}
version=${2:-30.0.1}
source=$(ls -d "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/wgpu-core-"$version" 2>/dev/null | head -1)
[ -n "$source" ] || { echo "wgpu-core $version is not in Cargo's registry: run cargo fetch in the program's folder first" >&2; exit 1; }
[ ! -e "$target" ] || { echo "$target exists already" >&2; exit 1; }
cp -R "$source" "$target"
if [ -n "${CANTUS_HAL:-}" ]; then hal="path = \"$CANTUS_HAL\""; else hal='version = "0.1"'; fi
printf '\n[target."cfg(not(target_arch = \\"wasm32\\"))".dependencies.cantus-hal]\n%s\n' "$hal" >> "$target/Cargo.toml"
file=$target/src/instance.rs
awk '
    # The first backend that is added: before it, ours in place of all that were asked for.
    /#\[cfg\(all\(vulkan, not\(target_os = "netbsd"\)\)\)\]/ && !added {
        added = 1
        print "        #[cfg(not(target_arch = \"wasm32\"))]"
        print "        if cantus_hal::is_asked_for() {"
        print "            for backend in [Backend::Vulkan, Backend::Metal, Backend::Dx12, Backend::Gl, Backend::Noop] {"
        print "                if instance_desc.backends.contains(backend.into()) {"
        print "                    let instance = cantus_hal::Instance::answering(backend);"
        print "                    this.supported_backends |= backend.into();"
        print "                    this.instance_per_backend.push((backend, Box::new(instance)));"
        print "                }"
        print "            }"
        print "            return this;"
        print "        }"
    }
    # Who asks for an instance of that backend gets None.
    /pub unsafe fn as_hal<A: hal::Api>/ { inside = 1 }
    inside && /self.raw\(A::VARIANT\).map\(/ { sub(/\.map\(/, ".and_then("); changed++ }
    inside && /\.expect\("Stored instance is not of the correct type"\)/ { inside = 0; changed++; next }
    { print }
    END { if (added + changed != 3) exit 1 }
' "$source/src/instance.rs" > "$file" || { rm -r "$target"; echo "wgpu-core $version is not as this script expects it" >&2; exit 1; }
echo "$target: wgpu-core $version with the CPU device of Cantus"
