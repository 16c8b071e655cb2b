// Cantus from Kotlin: what examples/reference.rs prints, and what only an app can ask: coroutines, typed errors, folders, cancelling.
// `ResultsKt BACKEND KERNELS SCRATCH`, with the folder of the kernels and an empty one.

import java.io.File
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import org.cantus.*

inline fun need(holds: Boolean, text: () -> String) {
    if (!holds) throw IllegalStateException(text())
}

/** Every bit counts: the first bytes, and FNV-1a of all. */
fun show(name: String, bytes: ByteArray) {
    val hash = bytes.fold(0xcbf29ce484222325uL) { hash, byte -> (hash xor byte.toUByte().toULong()) * 0x100000001b3uL }
    val first = bytes.take(8).joinToString("") { "%02x".format(it) }
    println("$name ${bytes.size} $first ${hash.toString(16).padStart(16, '0')}")
}

fun bytesOf(value: Float): ByteArray {
    val bits = value.toRawBits()
    return ByteArray(4) { (bits shr (8 * it)).toByte() }
}

/** The error of that type, whose text is printed; anything else ends the program. */
suspend inline fun <reified E : CantusException> refused(name: String, text: (E) -> String, crossinline work: suspend () -> Unit): E {
    try {
        work()
    } catch (error: CantusException) {
        need(error is E) { "$name: ${error.javaClass} $error" }
        println("error $name: ${text(error as E)}")
        return error
    }
    throw IllegalStateException("$name: nothing was refused")
}

suspend fun results(backend: String, kernels: File, scratch: File) {
    val options = EngineOptions(backend = backend, configFolder = scratch.path, cacheFolder = File(scratch, "cache").path)
    val engine = Engine.open(options)
    val selected = engine.selected()
    println("device ${selected.device.backend} ${selected.device.index}: ${selected.device.name}; ${selected.why}")
    need(engine.events().first().kind == EventKind.OPENED) { "no event of opening" }

    val saxpy = Kernel(File(kernels, "saxpy.wgsl").readText())
    val info = saxpy.info()
    need(info.entryPoint == "saxpy" && info.workgroupSize == listOf(64u, 1u, 1u)) { "$info" }
    need(info.bindings.map { "${it.name}: ${it.wgslType} ${it.uniform} ${it.writable}" } ==
        listOf("params: Params true false", "x: array<f32> false false", "y: array<f32> false true")) { "${info.bindings}" }
    val values = List(1000) { it.toFloat() * 0.37f - 91.0f }
    val shape = listOf(10uL, 100uL)
    val x = engine.tensor(values, shape)
    val y = engine.tensor(values.map { it * it }, shape)
    need(y.shape() == shape && y.dtype() == DType.F32 && y.length() == 1000uL) { "${y.shape()}" }
    fun saxpyOf(tensors: Map<String, Tensor>, count: ULong) =
        Dispatch(saxpy, tensors, mapOf("params.a" to Uniform.Float(1.7)), Amount.Invocations(count))
    engine.dispatch(saxpyOf(mapOf("x" to x, "y" to y), 1000uL))
    show("saxpy", y.readBytes())
    need(y.read().zip(y.readBytes().asList().chunked(4)).all { (value, bytes) -> bytesOf(value).asList() == bytes }) { "read" }

    val twoEntries = Kernel(File(kernels, "steps.wgsl").readText())
    val steps = twoEntries.entryPoint("steps").setOverride("factor", 3.0)
    val counts = engine.zeros(DType.U32, listOf(6uL, 8uL))
    val groups = Amount.Workgroups(2uL, 3uL)
    engine.dispatch(Dispatch(steps, mapOf("counts" to counts), mapOf("grid.weights" to Uniform.Ints(listOf(5L, 7L))), groups))
    show("steps", counts.readBytes())
    val whole = Uniform.Bytes(byteArrayOf(9, 0, 0, 0, 2, 0, 0, 0))
    engine.dispatch(Dispatch(steps, mapOf("counts" to counts), mapOf("grid" to whole), groups, label = "again"))
    engine.finish()
    show("steps again", counts.readBytes())
    need(counts.readU32()[47] == 3u * (5u * 7u + 7u * 5u) + 3u * (9u * 7u + 2u * 5u)) { "${counts.readU32()}" }
    need(engine.metrics().single { it.operation == "again" }.count == 1uL) { "${engine.metrics()}" }

    val halves = engine.tensorFromBytes(DType.F16, listOf(7uL), ByteArray(14) { (it * 17).toByte() })
    show("halves", halves.readBytes())

    val field = engine.field(FieldParams(97u, 61u, Frequency.Unity, 1.25))
    show("field", field.readBytes())
    val noise = engine.tensor(List(1000) { (it % 97 / 90).toFloat() }, listOf(25uL, 40uL))
    show("coherence", bytesOf(engine.coherence(noise)))
    show("phi", engine.phiPattern(Grid(40u, 33u)).readBytes())

    // An image as a camera gives it: 13 texels of four bytes in rows of 64. The last row has no padding.
    val shrink = Kernel(File(kernels, "shrink.wgsl").readText())
    need(shrink.info().bindings.map { "${it.name}: ${it.wgslType} ${it.uniform} ${it.writable}" } ==
        listOf("image: texture_2d<f32> false false", "small: texture_storage_2d<rgba8unorm, write> false true", "smp: sampler false false")) {
        "${shrink.info().bindings}"
    }
    val padded = ByteArray(64 * 7) { (it * 37 % 251).toByte() }
    val photo = engine.textureFromBytes(ImageSize("rgba8unorm", 13u, 7u), padded.copyOf(padded.size - 12), 64u)
    val small = engine.texture(ImageSize("rgba8unorm", 6u, 3u))
    val images = mapOf("image" to photo, "small" to small)
    val amount = Amount.Invocations(6uL, 3uL)
    // A sampler without a value is linear.
    engine.dispatch(Dispatch(shrink, emptyMap(), amount = amount, textures = images))
    show("shrunk", small.readBytes())
    val nearest = Sampler(FilterMode.NEAREST, AddressMode.MIRROR_REPEAT)
    engine.dispatch(Dispatch(shrink, emptyMap(), amount = amount, textures = images, samplers = mapOf("smp" to nearest)))
    show("nearest", small.readBytes())
    photo.writeBytes(ByteArray(padded.size) { (255 - padded[it].toUByte().toInt()).toByte() }, 64u)
    engine.dispatch(Dispatch(shrink, emptyMap(), amount = amount, textures = images))
    show("negative", small.readBytes())
    need(photo.withAllLevels().levels() == 4u && small.size() == ImageSize("rgba8unorm", 6u, 3u)) { "${small.size()}" }
    try {
        photo.writeBytes(ByteArray(100), 64u)
        throw IllegalStateException("a texture took a cut picture")
    } catch (error: CantusException.Shape) {
        need("row pitch of 64" in error.text) { error.text }
    }

    val invalid = refused<CantusException.InvalidWgsl>("wgsl", { it.text }) { Kernel("fn main( {") }
    need("wgsl:1:10" in invalid.report) { invalid.report }
    val entry = refused<CantusException.EntryPoint>("entry", { it.text }) { twoEntries.entryPoint("stairs") }
    need(entry.available == listOf("steps", "clear")) { "${entry.available}" }
    refused<CantusException.Override>("override", { it.text }) { steps.setOverride("divisor", 1.0) }
    val binding = refused<CantusException.Binding>("binding", { it.text }) { engine.dispatch(saxpyOf(mapOf("x" to x), 1000uL)) }
    need(binding.kernel == "saxpy" && binding.binding == "y") { "$binding" }
    refused<CantusException.InvalidInput>("empty", { it.text }) { engine.dispatch(saxpyOf(mapOf("x" to x, "y" to y), 0uL)) }
    refused<CantusException.Shape>("shape", { it.text }) { engine.tensorFromBytes(DType.F32, listOf(3uL), ByteArray(8)) }
    refused<CantusException.Shape>("picture", { it.text }) { engine.texture(ImageSize("r8unorm", 0u, 5u)) }
    refused<CantusException.Binding>("texture", { it.text }) {
        engine.dispatch(Dispatch(shrink, emptyMap(), amount = amount, textures = mapOf("image" to photo, "small" to photo)))
    }
    refused<CantusException.InvalidInput>("frequency", { it.text }) {
        engine.field(FieldParams(4u, 4u, Frequency.Hertz(-1.0)))
    }
    refused<CantusException.NoDevice>("backend", { it.text }) { Engine.open(options.copy(backend = "abacus")) }

    need(parseFrequency("Truth") == Frequency.Truth && parseFrequency("12.5") == Frequency.Hertz(12.5)) { "frequencies" }
    many(engine)
    written(engine)
    engine.trim() // what an app calls when it goes to the background: pipelines are kept
    if (backend == "vulkan") {
        need(File(scratch, "cache").walk().any { it.isFile }) { "nothing in the cache folder" }
    }
    listOf(x, y, counts, halves, field, noise).forEach { it.close() }
    listOf(photo, small).forEach { it.close() }
    engine.close()
}

/** Calls at the same time do not disturb each other. */
suspend fun many(engine: Engine) = kotlinx.coroutines.coroutineScope {
    val alone = List(8) { engine.field(FieldParams(64u, 16u, Frequency.Love, it.toDouble())).readBytes() }
    val together = List(8) { async { engine.field(FieldParams(64u, 16u, Frequency.Love, it.toDouble())).readBytes() } }.awaitAll()
    need(alone.zip(together).all { (one, other) -> one.contentEquals(other) }) { "concurrent fields differ" }
    need(alone.map { it.asList() }.toSet().size == 8) { "all times look alike" }
}

/** Written values are read back; a wrong size is refused. */
suspend fun written(engine: Engine) {
    val tensor = engine.tensorI32(listOf(1, -2, 3), listOf(3uL))
    tensor.writeBytes(byteArrayOf(-1, -1, -1, -1, 5, 0, 0, 0, 0, 0, 0, -128))
    need(tensor.readI32() == listOf(-1, 5, Int.MIN_VALUE)) { "${tensor.readI32()}" }
    for (work in listOf<suspend () -> Unit>({ tensor.writeBytes(ByteArray(8)) }, { tensor.write(listOf(1.0f, 2.0f, 3.0f)) }, { tensor.read() })) {
        try {
            work()
        } catch (error: CantusException) {
            need(error is CantusException.Shape || error is CantusException.Dtype) { "$error" }
            continue
        }
        throw IllegalStateException("a tensor took or gave what it is not")
    }
}

/** The folder of the app is read: a backend chosen there is taken, and a mistake there is an error that names the file. */
suspend fun configured(scratch: File) {
    val folder = File(scratch, "config").apply { mkdirs() }
    val file = File(folder, "config.toml").apply { writeText("backend = \"cpu\"\nlow_power = true\n") }
    val engine = Engine.open(EngineOptions(configFolder = folder.path))
    need(engine.selected().device.kind == DeviceKind.CPU && "asked for" in engine.selected().why) { engine.selected().why }
    engine.close()
    file.writeText("backend = 7\n")
    try {
        Engine.open(EngineOptions(configFolder = folder.path))
    } catch (error: CantusException.InvalidInput) {
        need(file.path in error.text) { error.text }
        val survey = devices(EngineOptions(lowPower = true, configFolder = scratch.path))
        val processor = survey.backends.single { it.name == "cpu" }.devices.single()
        need(processor.kind == DeviceKind.CPU && survey.selected != null && survey.refusal == null) { "$survey" }
        return
    }
    throw IllegalStateException("a mistake in the configuration was overlooked")
}

/** Long work is awaited on one thread, which stays free, and stopped from it. */
suspend fun cancelled(scratch: File) = kotlinx.coroutines.coroutineScope {
    val engine = Engine.open(EngineOptions(backend = "cpu", configFolder = scratch.path))
    val long = Kernel("""
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(1)
        fn long() {
            for (var i = 0u; i < 4000000000u; i++) { y[0] = y[0] * 1664525u + i; }
        }
    """)
    val y = engine.zeros(DType.U32, listOf(1uL))
    val flag = Cancel()
    var turns = 0
    val clock = launch { while (true) { delay(5); turns++ } }
    launch { delay(200); flag.cancel() }
    try {
        engine.dispatch(Dispatch(long, mapOf("y" to y), amount = Amount.Workgroups(1uL), cancel = flag))
        y.readU32()
    } catch (error: CantusException) {
        need(error is CantusException.Cancelled || error is CantusException.TensorLost) { "$error" }
        need("cancelled" in "$error") { "$error" }
        need(turns >= 10) { "the thread was blocked: $turns turns" }
        clock.cancel()
        return@coroutineScope
    }
    throw IllegalStateException("cancelled work gave a result")
}

fun main(arguments: Array<String>) {
    val (backend, kernels, scratch) = arguments
    runBlocking {
        results(backend, File(kernels), File(scratch))
        configured(File(scratch))
        cancelled(File(scratch))
    }
}
