// The demo app without its views: every device that it lists makes the same picture. `DemoKt SCRATCH`, with an empty folder.

import java.io.File
import kotlin.math.abs
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.runBlocking
import org.cantus.CantusException
import org.cantus.demo.Choice
import org.cantus.demo.FREQUENCIES
import org.cantus.demo.Field
import org.cantus.demo.Palette
import org.cantus.demo.words

private fun check(holds: Boolean, text: () -> String) {
    if (!holds) throw IllegalStateException(text())
}

private fun channels(color: Int) = listOf(16, 8, 0).map { (color shr it) and 0xff }

fun main(arguments: Array<String>) = runBlocking {
    val scratch = File(arguments[0])
    check(channels(Palette.color(-1f)) == listOf(0x0b, 0x1f, 0x4b)) { "the first colour" }
    check(channels(Palette.color(1f)) == listOf(0x5a, 0x12, 0x20)) { "the last colour" }
    check(Palette.color(-9f) == Palette.color(-1f) && Palette.color(Float.NaN) == Palette.color(-1f)) { "beyond the ends" }

    Field(File(scratch, "cache").path, scratch.path).use { field ->
        val early = try {
            field.frame(4, 4, FREQUENCIES[0].second, 0.0, IntArray(16))
            null
        } catch (error: IllegalStateException) {
            error
        }
        check(early != null) { "a frame without a device" }
        val choices = field.choices()
        check(choices.size > 1 && choices.first() == Choice("Automatic") && choices.any { it.backend == "cpu" }) { "$choices" }
        val (width, height) = 96 to 64
        var first: IntArray? = null
        for (choice in choices) {
            field.open(choice)
            val pixels = IntArray(width * height)
            val numbers = field.frame(width, height, FREQUENCIES[1].second, 1.5, pixels)
            check(numbers.least >= -1 && numbers.least < -0.2 && numbers.greatest <= 1 && numbers.greatest > 0.2) { "$numbers" }
            check(pixels.toSet().size > 50 && pixels.all { it ushr 24 == 0xff }) { "${choice.label}: no picture" }
            first?.let { known ->
                val far = pixels.indices.count { place -> channels(pixels[place]).zip(channels(known[place])).any { (a, b) -> abs(a - b) > 2 } }
                check(far <= width * height / 100) { "${choice.label}: $far pixels differ" }
            }
            first = first ?: pixels
            println("${choice.label}: ${numbers.device}, %.2f to %.2f".format(numbers.least, numbers.greatest))
        }
        // Where a device does not open, the present one goes on; frames at the same time take turns.
        val refused = try {
            field.open(Choice("none", "cpu", 9u))
            null
        } catch (error: CantusException.NoDevice) {
            error
        }
        check(refused != null && "9" in words(refused)) { "$refused" }
        val frames = coroutineScope { List(6) { async { field.frame(width, height, FREQUENCIES[it].second, 1.5, IntArray(width * height)) } }.awaitAll() }
        check(frames.map { it.least }.toSet().size == 6) { "all frequencies look alike" }
        check(frames.maxOf { it.framesPerSecond } > 0) { "$frames" }
        field.rest()
        field.frame(width, height, FREQUENCIES[0].second, 0.0, IntArray(width * height))
    }
    println("the demo's field: ${FREQUENCIES.size} frequencies, every device")
}
