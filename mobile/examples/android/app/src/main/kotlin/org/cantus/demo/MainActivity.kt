package org.cantus.demo

import android.app.Activity
import android.content.res.Configuration
import android.graphics.Bitmap
import android.os.Bundle
import android.view.Gravity
import android.view.View
import android.view.ViewGroup.LayoutParams.MATCH_PARENT
import android.view.ViewGroup.LayoutParams.WRAP_CONTENT
import android.widget.AdapterView
import android.widget.ArrayAdapter
import android.widget.Button
import android.widget.ImageView
import android.widget.LinearLayout
import android.widget.Spinner
import android.widget.TextView
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.MainScope
import kotlinx.coroutines.cancel
import kotlinx.coroutines.launch
import kotlinx.coroutines.withContext

/** The field, a picker of devices, and the numbers. */
class MainActivity : Activity() {
    private val scope: CoroutineScope = MainScope()
    private lateinit var field: Field
    private lateinit var image: ImageView
    private lateinit var numbers: TextView
    private lateinit var play: Button
    private lateinit var picker: Spinner
    private lateinit var content: LinearLayout
    private var choices: List<Choice> = emptyList()
    private var frequency = FREQUENCIES[1].second
    private var playing = true
    private var time = 0.0
    private var loop: Job? = null

    override fun onCreate(state: Bundle?) {
        super.onCreate(state)
        field = Field(cacheDir.path, filesDir.path)
        build()
        scope.launch {
            try {
                choices = field.choices()
                field.open(choices.first())
                picker.adapter = adapterOf(choices.map { it.label })
                picker.onItem { index -> open(choices[index]) }
            } catch (error: CancellationException) {
                throw error
            } catch (error: Exception) {
                numbers.text = words(error)
            }
        }
    }

    override fun onStart() {
        super.onStart()
        loop = scope.launch { animate() }
    }

    override fun onStop() {
        super.onStop()
        loop?.cancel()
        scope.launch { field.rest() }
    }

    override fun onDestroy() {
        super.onDestroy()
        scope.cancel()
        field.close()
    }

    override fun onConfigurationChanged(configuration: Configuration) {
        super.onConfigurationChanged(configuration)
        turn()
    }

    private fun open(choice: Choice) {
        scope.launch {
            try {
                field.open(choice)
            } catch (error: CancellationException) {
                throw error
            } catch (error: Exception) {
                numbers.text = words(error)
            }
        }
    }

    /** A frame after the other; what fails is said, and tried again. */
    private suspend fun animate() {
        val pixels = IntArray(SIDE * SIDE)
        val bitmaps = List(2) { Bitmap.createBitmap(SIDE, SIDE, Bitmap.Config.ARGB_8888) }
        var frames = 0
        var before = System.nanoTime()
        while (true) {
            val now = System.nanoTime()
            if (playing) time += (now - before) / 1e9
            before = now
            try {
                val seen = withContext(Dispatchers.Default) { field.frame(SIDE, SIDE, frequency, time, pixels) }
                val bitmap = bitmaps[frames++ % 2]
                bitmap.setPixels(pixels, 0, SIDE, 0, 0, SIDE, SIDE)
                image.setImageBitmap(bitmap)
                val (device, why, milliseconds, rate, least, greatest) = seen
                numbers.text = "%s\n%s\n%.1f ms, %.0f frames/s\n%.3f to %.3f at %.1f s".format(device, why, milliseconds, rate, least, greatest, time)
                if (!playing) kotlinx.coroutines.delay(100)
            } catch (error: CancellationException) {
                throw error
            } catch (error: IllegalStateException) {
                numbers.setText(R.string.opening)
                kotlinx.coroutines.delay(100)
            } catch (error: Exception) {
                numbers.text = words(error)
                kotlinx.coroutines.delay(1000)
            }
        }
    }

    private fun build() {
        image = ImageView(this).apply {
            contentDescription = getString(R.string.picture)
            scaleType = ImageView.ScaleType.FIT_CENTER
        }
        numbers = TextView(this).apply {
            textSize = 16f
            setText(R.string.opening)
            accessibilityLiveRegion = View.ACCESSIBILITY_LIVE_REGION_NONE
        }
        picker = Spinner(this).apply { contentDescription = getString(R.string.runs_on) }
        val frequencies = Spinner(this).apply {
            contentDescription = getString(R.string.frequency)
            adapter = adapterOf(FREQUENCIES.map { it.first })
            setSelection(1)
            onItem { index -> frequency = FREQUENCIES[index].second }
        }
        play = Button(this).apply {
            setText(R.string.pause)
            setOnClickListener {
                playing = !playing
                setText(if (playing) R.string.pause else R.string.play)
            }
        }
        val side = LinearLayout(this).apply {
            orientation = LinearLayout.VERTICAL
            for (view in listOf(picker, frequencies, play, numbers)) addView(view, LinearLayout.LayoutParams(MATCH_PARENT, WRAP_CONTENT))
        }
        val pad = (16 * resources.displayMetrics.density).toInt()
        content = LinearLayout(this).apply {
            gravity = Gravity.CENTER
            setPadding(pad, pad, pad, pad)
            fitsSystemWindows = true
            addView(image)
            addView(side)
        }
        turn()
        setContentView(content)
    }

    /** The picture above the controls, or beside them where the screen lies on its side. */
    private fun turn() {
        val wide = resources.configuration.orientation == Configuration.ORIENTATION_LANDSCAPE
        content.orientation = if (wide) LinearLayout.HORIZONTAL else LinearLayout.VERTICAL
        val size = if (wide) 0 to MATCH_PARENT else MATCH_PARENT to 0
        for (view in listOf(image, content.getChildAt(1))) view.layoutParams = LinearLayout.LayoutParams(size.first, size.second, 1f)
    }

    private fun adapterOf(labels: List<String>) = ArrayAdapter(this, android.R.layout.simple_spinner_dropdown_item, labels)

    private fun Spinner.onItem(chosen: (Int) -> Unit) {
        // The first call is for what is chosen already.
        var first = true
        onItemSelectedListener = object : AdapterView.OnItemSelectedListener {
            override fun onItemSelected(parent: AdapterView<*>?, view: View?, position: Int, id: Long) {
                if (!first) chosen(position)
                first = false
            }

            override fun onNothingSelected(parent: AdapterView<*>?) = Unit
        }
    }

    private companion object {
        const val SIDE = 512
    }
}
