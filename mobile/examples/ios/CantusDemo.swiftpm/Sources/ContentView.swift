import SwiftUI

/// The field, a picker of devices, and the numbers.
struct ContentView: View {
    @ObservedObject var model: FieldModel

    var body: some View {
        GeometryReader { space in
            let wide = space.size.width > space.size.height
            let layout = wide ? AnyLayout(HStackLayout(spacing: 16)) : AnyLayout(VStackLayout(spacing: 16))
            layout {
                picture.frame(maxWidth: .infinity, maxHeight: .infinity)
                controls.frame(maxWidth: .infinity, maxHeight: wide ? .infinity : nil)
            }
            .padding()
        }
    }

    @ViewBuilder private var picture: some View {
        if let image = model.image {
            Image(decorative: image, scale: 1)
                .resizable()
                .interpolation(.none)
                .scaledToFit()
                .accessibilityElement()
                .accessibilityLabel("The field, animated")
        } else {
            ProgressView("Opening a device…")
        }
    }

    private var controls: some View {
        Form {
            Picker("Runs on", selection: $model.choice) {
                ForEach(model.choices) { choice in
                    Text(choice.label).tag(choice)
                }
            }
            Picker("Frequency", selection: $model.frequency) {
                ForEach(Tone.all) { tone in
                    Text(tone.label).tag(tone)
                }
            }
            Toggle("Playing", isOn: $model.isPlaying)
            Section {
                if let problem = model.problem {
                    Text(problem).foregroundColor(.red)
                }
                if let numbers = model.numbers {
                    LabeledContent("Device", value: numbers.device)
                    LabeledContent("Why", value: numbers.why)
                    LabeledContent("Frame", value: String(format: "%.1f ms", numbers.milliseconds))
                    LabeledContent("Frames/s", value: String(format: "%.0f", numbers.framesPerSecond))
                    LabeledContent("Values", value: String(format: "%.3f to %.3f", numbers.least, numbers.greatest))
                }
            }
            .monospacedDigit()
        }
    }
}
