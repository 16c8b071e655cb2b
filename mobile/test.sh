#!/usr/bin/env bash
# What apps get, tested: both static libraries are built and their symbols checked; the Kotlin binding is compiled and run on the JVM, the
# C example compiled and run, and both give what the Rust API gives, bit for bit. On Debian as root it installs what it needs. Arguments are
# the targets of the static libraries, where not both are wanted.
set -euo pipefail
cd "$(dirname "$0")"

targets=("$@")
[ ${#targets[@]} != 0 ] || targets=(aarch64-apple-ios aarch64-linux-android)

started=$SECONDS
. ../.ci/shell.sh

fail() {
    echo "$*" >&2
    exit 1
}

# Debian's own Kotlin is too old for UniFFI's output; a Python package has a compiler with its coroutines.
kotlin=target/kotlin-compiler
compiler() {
    packages gcc libc6-dev libjna-java libjna-jni openjdk-17-jdk-headless python3-venv libvulkan1 mesa-vulkan-drivers
    [ -e "$kotlin/done" ] && return
    rm -rf "$kotlin"
    python3 -m venv "$kotlin/venv"
    "$kotlin/venv/bin/pip" download --quiet --no-deps --dest "$kotlin" 'kotlin-jupyter-kernel==0.19.0.944'
    "$kotlin/venv/bin/python" -m zipfile -e "$kotlin"/kotlin_jupyter_kernel-*.whl "$kotlin/wheel"
    rm -rf "$kotlin/venv" "$kotlin"/*.whl
    touch "$kotlin/done"
}

# Names that the archives must define: what the header and the bindings declare.
declared() {
    grep -ohE '\b(cantus|uniffi_cantus_mobile|ffi_cantus_mobile)_[a-z0-9_]+\(' include/cantus.h out/swift/CantusFFI.h | tr -d '(' | sort -u
}

symbols() {
    local nm target archive defined missing wanted prefix
    nm=$(command -v llvm-nm || find /usr/lib/llvm-*/bin "$(rustc --print sysroot)" -name llvm-nm 2>/dev/null | head -n 1)
    [ -n "$nm" ] || fail "no llvm-nm"
    mkdir -p target/symbols
    declared >target/symbols/declared
    wanted=$(wc -l <target/symbols/declared)
    [ "$wanted" -gt 100 ] || fail "only $wanted names are declared"
    for target in "${targets[@]}"; do
        archive=out/lib/$target/libcantus_mobile.a
        case $target in *apple*) prefix=_ ;; *) prefix= ;; esac
        "$nm" --format=posix --defined-only --extern-only "$archive" 2>/dev/null | awk 'NF > 1 { print $1 }' | sort -u >target/symbols/defined
        "$nm" --format=posix --undefined-only "$archive" 2>/dev/null | awk 'NF > 1 { print $1 }' | sort -u >target/symbols/undefined
        defined=$(sed "s/^/$prefix/" target/symbols/declared | sort -u | comm -12 - target/symbols/defined | wc -l)
        [ "$defined" = "$wanted" ] || fail "$archive defines $defined of $wanted names: $(sed "s/^/$prefix/" target/symbols/declared |
            sort -u | comm -23 - target/symbols/defined | head -n 5)"
        # Nothing of Rust may be left for the app's linker to find.
        missing=$(comm -23 target/symbols/undefined target/symbols/defined | grep -E '^_{1,2}(R|ZN)' | head -n 5 || true)
        [ -z "$missing" ] || fail "$archive lacks $missing"
        case $target in
        *apple*) grep -qx _MTLCreateSystemDefaultDevice target/symbols/undefined || fail "$archive has no Metal" ;;
        *) grep -qx dlopen target/symbols/undefined || fail "$archive cannot load Vulkan" ;;
        esac
        echo "$archive: $(stat -c %s "$archive") bytes, $wanted names"
    done
}

header() {
    target/ci/header --check
    # What Swift imports is C as well, but for clang's words on null.
    gcc -x c -std=c11 -fsyntax-only -Wall -Werror -D_Nullable= -D_Nonnull= -include out/swift/CantusFFI.h /dev/null
    gcc -std=c11 -Wall -Wextra -Werror -Iinclude examples/c/results.c -o target/test/results target/ci/libcantus_mobile.a -lm -lpthread -ldl
}

classes() {
    local jars=$kotlin/wheel/run_kotlin_kernel/jars
    local stdlib all
    stdlib=$(find "$PWD/$jars" -name 'kotlin-stdlib-*.jar')
    all=$(find "$PWD/$jars" -name 'kotlin-jupyter-kernel-*-all.jar')
    classpath=$stdlib:$all:/usr/share/java/jna.jar
    java -Xmx2g -cp "$classpath:$jars/*" org.jetbrains.kotlin.cli.jvm.K2JVMCompiler -no-stdlib -no-reflect -nowarn \
        -classpath "$classpath" -d target/test/results.jar out/kotlin/org/cantus/cantus.kt tests/kotlin/Results.kt \
        tests/kotlin/Demo.kt examples/android/app/src/main/kotlin/org/cantus/demo/Field.kt
}

# The demo app without its views, on every device that it lists.
demo() {
    rm -rf target/test/scratch
    mkdir -p target/test/scratch
    timeout 240 java -Djna.library.path=target/ci -Djava.library.path=/usr/lib/x86_64-linux-gnu/jni \
        -cp "target/test/results.jar:$classpath" DemoKt target/test/scratch
}

# Every backend of this machine, by the Rust API, from C and from Kotlin.
results() {
    local backend
    target/ci/examples/reference >target/test/backends
    grep -qx cpu target/test/backends || fail "no CPU backend"
    while read -r backend; do
        rm -rf target/test/scratch
        mkdir -p target/test/scratch
        target/ci/examples/reference "$backend" >target/test/rust.txt
        [ "$(grep -c '^error ' target/test/rust.txt)" = 10 ] || fail "the Rust API refused something else"
        timeout 120 target/test/results "$backend" examples >target/test/c.txt
        timeout 240 java -Djna.library.path=target/ci -Djava.library.path=/usr/lib/x86_64-linux-gnu/jni \
            -cp "target/test/results.jar:$classpath" ResultsKt "$backend" examples target/test/scratch >target/test/kotlin.txt
        diff target/test/rust.txt target/test/c.txt || fail "C gives something else on $backend"
        diff target/test/rust.txt target/test/kotlin.txt || fail "Kotlin gives something else on $backend"
        echo "$(head -n 1 target/test/rust.txt): $(wc -l <target/test/rust.txt) lines from Rust, C and Kotlin, the same"
    done <target/test/backends
}

# stage WHAT COMMAND…: says what comes, and how long it took.
stage() {
    local what=$1 begin=$SECONDS
    shift
    printf '\n-- %s\n' "$what"
    "$@"
    printf -- '-- %s: %d s\n' "$what" $((SECONDS - begin))
}

mkdir -p target/test
stage "compilers and drivers" compiler
stage "libraries and bindings" ./build.sh --profile ci "${targets[@]}"
stage "symbols of the static libraries" symbols
stage "C headers and example" header
stage "Kotlin binding" classes
stage "results" results
stage "the demo app without its views" demo
printf '\nmobile: all stages passed in %d s\n' $((SECONDS - started))
