package org.cantus.demo

import java.nio.ByteBuffer
import java.nio.ByteOrder
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock
import org.cantus.CantusException
import org.cantus.DeviceInfo
import org.cantus.DeviceKind
import org.cantus.Engine
import org.cantus.EngineOptions
import org.cantus.FieldParams
import org.cantus.Frequency
import org.cantus.devices

/** A device as the picker lists it; the first choice leaves it to the engine. */
data class Choice(val label: String, val backend: String? = null, val device: UInt? = null)

/** The figures of a frame. */
data class Numbers(val device: String, val why: String, val milliseconds: Double, val framesPerSecond: Double, val least: Float, val greatest: Float)

/** The frequencies with names. */
val FREQUENCIES: List<Pair<String, Frequency>> = listOf(
    "Unity, 432 Hz" to Frequency.Unity,
    "Love, 528 Hz" to Frequency.Love,
    "Cascade, 594 Hz" to Frequency.Cascade,
    "Truth, 672 Hz" to Frequency.Truth,
    "Vision, 720 Hz" to Frequency.Vision,
    "Oneness, 768 Hz" to Frequency.Oneness,
)

/** The words for an error of the library. */
fun words(error: Throwable): String = when (error) {
    is CantusException.NoDevice -> error.text
    is CantusException.Device -> error.text
    is CantusException.TensorLost -> error.text
    is CantusException.OutOfMemory -> error.text
    is CantusException.Timeout -> error.text
    else -> error.message ?: error.toString()
}

/**
 * The field as pictures, on a device that can be changed: all of the demo but its views. One call computes at a time, so that a device is not closed
 * under a frame. No class of Android's is used: tests run it on a desktop.
 */
class Field(private val cacheFolder: String, private val configFolder: String) : AutoCloseable {
    private val turn = Mutex()
    private var engine: Engine? = null
    private val ends = ArrayDeque<Long>()

    /** The engine's own choice, then every device of this machine. */
    suspend fun choices(): List<Choice> {
        val survey = devices(options(null))
        val found = survey.backends.flatMap { it.devices }.sortedByDescending { it.priority }
        return listOf(Choice("Automatic")) + found.map { Choice(label(it), it.backend, it.index) }
    }

    /** Opens a device in place of the present one, which goes on where this one does not open. */
    suspend fun open(choice: Choice) = turn.withLock {
        val opened = Engine.open(options(choice))
        engine?.close()
        engine = opened
        ends.clear()
    }

    /** Computes a frame into ARGB pixels, row by row. */
    suspend fun frame(width: Int, height: Int, frequency: Frequency, time: Double, pixels: IntArray): Numbers = turn.withLock {
        require(pixels.size == width * height) { "${pixels.size} pixels are no picture of $width x $height" }
        val engine = checkNotNull(engine) { "no device is open" }
        val start = System.nanoTime()
        val values = engine.field(FieldParams(width.toUInt(), height.toUInt(), frequency, time)).use { it.readBytes() }
        val end = System.nanoTime()
        val floats = ByteBuffer.wrap(values).order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer()
        var least = Float.POSITIVE_INFINITY
        var greatest = Float.NEGATIVE_INFINITY
        for (place in pixels.indices) {
            val value = floats.get(place)
            least = minOf(least, value)
            greatest = maxOf(greatest, value)
            pixels[place] = Palette.color(value)
        }
        ends.addLast(end)
        while (ends.size > 30) ends.removeFirst()
        val rate = if (ends.size < 2) 0.0 else (ends.size - 1) * 1e9 / (ends.last() - ends.first())
        val selected = engine.selected()
        Numbers(selected.device.name, selected.why, (end - start) / 1e6, rate, least, greatest)
    }

    /** Gives memory back: for an app that goes to the background. */
    suspend fun rest() = turn.withLock { engine?.trim() }

    /** Releases the device. Nothing may be computing. */
    override fun close() {
        engine?.close()
        engine = null
    }

    private fun options(choice: Choice?) =
        EngineOptions(backend = choice?.backend, device = choice?.device, lowPower = true, cacheFolder = cacheFolder, configFolder = configFolder)

    private fun label(device: DeviceInfo): String {
        val kind = when (device.kind) {
            DeviceKind.CPU -> "processor"
            DeviceKind.SOFTWARE -> "in software"
            else -> "GPU"
        }
        return "${device.name} (${device.backend}, $kind)"
    }
}

/** Colours from -1 to 1: deep blue, sand in the middle, deep red. */
object Palette {
    private val stops = listOf(0x0b1f4b, 0x2b6ca3, 0xf2e9d8, 0xc9622c, 0x5a1220)
    private val table = IntArray(1024) { place ->
        val at = place / 1023.0 * (stops.size - 1)
        val from = at.toInt().coerceAtMost(stops.size - 2)
        val part = at - from
        fun channel(shift: Int): Int {
            val (a, b) = listOf(stops[from], stops[from + 1]).map { (it shr shift) and 0xff }
            return (a + (b - a) * part + 0.5).toInt()
        }
        (0xff shl 24) or (channel(16) shl 16) or (channel(8) shl 8) or channel(0)
    }

    /** The colour of a value; beyond the ends theirs, NaN the first. */
    fun color(value: Float): Int = table[((value + 1) * 512).toInt().coerceIn(0, table.size - 1)]
}
