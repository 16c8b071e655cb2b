#!/usr/bin/env bash
# Everything that an app takes, into mobile/out: the static libraries for iOS and Android, the Kotlin and Swift bindings, the C header; an
# .xcframework where Xcode is, and an Android library module where the NDK is (ANDROID_NDK_HOME). What is not made is said.
#
#   build.sh                     both, and the iOS simulator where its target is installed or Xcode is there
#   build.sh --profile ci TARGET…   these targets only, with another profile of Cargo.toml
set -euo pipefail
cd "$(dirname "$0")"

profile=release
if [ "${1:-}" = --profile ]; then
    profile=$2
    shift 2
fi
targets=("$@")
if [ ${#targets[@]} = 0 ]; then
    targets=(aarch64-apple-ios aarch64-linux-android)
    if command -v xcodebuild >/dev/null || [ -d "$(rustc --print target-libdir --target aarch64-apple-ios-sim)" ]; then
        targets+=(aarch64-apple-ios-sim)
    fi
fi

rm -rf out
mkdir -p out/kotlin out/swift out/lib
cp -r include out/include

# The bindings are read from the library as built for this machine, where nothing has to be quick. One command, so that dependencies are
# built once.
bindings() {
    cargo build --locked --profile ci --workspace --lib --bins --examples
    local language library
    library=$(find target/ci -maxdepth 1 \( -name 'libcantus_mobile.so' -o -name 'libcantus_mobile.dylib' \) | head -n 1)
    for language in kotlin swift; do
        target/ci/uniffi-bindgen generate "$library" --language "$language" --out-dir "out/$language" --no-format
    done
}

# A static library needs no linker of the platform.
libraries() {
    local target
    for target in "${targets[@]}"; do
        ../.ci/cross "$target" rustc --locked --profile "$profile" --package cantus-mobile --lib --crate-type staticlib
        mkdir -p "out/lib/$target"
        cp "target/cross/$target/$profile/libcantus_mobile.a" "out/lib/$target/"
    done
}

# At the same time: each has long stretches in which one crate waits for another.
bindings &
bindings=$!
libraries &
libraries=$!
wait "$bindings"
wait "$libraries"

apple() {
    local target headers=out/headers libraries=()
    for target in "${targets[@]}"; do
        case $target in *-apple-ios*) libraries+=(-library "out/lib/$target/libcantus_mobile.a" -headers "$headers") ;; esac
    done
    [ ${#libraries[@]} -gt 0 ] || return 0
    mkdir -p "$headers/CantusFFI"
    cp out/swift/CantusFFI.h "$headers/CantusFFI/"
    cp out/swift/CantusFFI.modulemap "$headers/CantusFFI/module.modulemap"
    if ! command -v xcodebuild >/dev/null; then
        echo "not made: Cantus.xcframework (no Xcode here; out/lib, out/headers and out/swift are what it is made of)"
        return 0
    fi
    mkdir -p out/apple/Sources/Cantus
    cp swift/Package.swift out/apple/
    cp out/swift/Cantus.swift out/apple/Sources/Cantus/
    xcodebuild -create-xcframework "${libraries[@]}" -output out/apple/Cantus.xcframework
    echo "made: out/apple, a Swift package"
}

android() {
    local target=aarch64-linux-android ndk=${ANDROID_NDK_HOME:-}
    case " ${targets[*]} " in *" $target "*) ;; *) return 0 ;; esac
    mkdir -p out/android/src/main/kotlin
    cp android/build.gradle.kts out/android/
    cp android/src/main/AndroidManifest.xml out/android/src/main/
    cp -r out/kotlin/. out/android/src/main/kotlin/
    local compiler
    compiler=$(find "$ndk/toolchains/llvm/prebuilt" -name aarch64-linux-android26-clang 2>/dev/null | head -n 1 || true)
    if [ -z "$compiler" ]; then
        echo "not made: out/android/src/main/jniLibs (no NDK: set ANDROID_NDK_HOME); the Kotlin part of the module is there"
        return 0
    fi
    CARGO_TARGET_AARCH64_LINUX_ANDROID_LINKER=$compiler RUSTFLAGS="-C link-arg=-Wl,-z,max-page-size=16384" \
        ../.ci/cross "$target" rustc --locked --profile "$profile" --package cantus-mobile --lib --crate-type cdylib
    mkdir -p out/android/src/main/jniLibs/arm64-v8a
    cp "target/cross/$target/$profile/libcantus_mobile.so" out/android/src/main/jniLibs/arm64-v8a/
    echo "made: out/android, a Gradle module"
}

apple
android
