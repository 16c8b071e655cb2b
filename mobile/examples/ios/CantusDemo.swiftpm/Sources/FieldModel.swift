import Cantus
import CoreGraphics
import Foundation

/// A device as the picker lists it; the first choice leaves it to the engine.
struct Choice: Identifiable, Hashable {
    var label = "Automatic"
    var backend: String?
    var device: UInt32?

    var id: String { "\(backend ?? "") \(device ?? 0)" }
}

/// A frequency with its name.
struct Tone: Identifiable, Hashable {
    let label: String
    let frequency: Frequency

    var id: String { label }

    static let all = [
        Tone(label: "Unity, 432 Hz", frequency: .unity),
        Tone(label: "Love, 528 Hz", frequency: .love),
        Tone(label: "Cascade, 594 Hz", frequency: .cascade),
        Tone(label: "Truth, 672 Hz", frequency: .truth),
        Tone(label: "Vision, 720 Hz", frequency: .vision),
        Tone(label: "Oneness, 768 Hz", frequency: .oneness),
    ]
}

/// What a frame says of itself.
struct Numbers {
    let device: String
    let why: String
    let milliseconds: Double
    let framesPerSecond: Double
    let least: Float
    let greatest: Float
}

/// The field as pictures, on a device that can be changed. Calls of the library compute on threads of their own; this stays on the main actor.
@MainActor
final class FieldModel: ObservableObject {
    @Published private(set) var choices = [Choice()]
    @Published private(set) var image: CGImage?
    @Published private(set) var numbers: Numbers?
    @Published private(set) var problem: String?
    @Published var frequency = Tone.all[1]
    @Published var isPlaying = true
    @Published var choice = Choice() {
        didSet { if choice != oldValue { wanted = choice } }
    }

    private static let side = 512
    private var engine: Engine?
    /// The device to open before the next frame.
    private var wanted: Choice? = Choice()
    private var time = 0.0
    private var ends: [ContinuousClock.Instant] = []
    private var loop: Task<Void, Never>?

    /// Begins, or goes on.
    func wake() {
        guard loop == nil else { return }
        loop = Task { await animate() }
    }

    /// Stops, and gives memory back: for an app that goes to the background.
    func rest() {
        loop?.cancel()
        loop = nil
        engine?.trim()
    }

    private func animate() async {
        if choices.count == 1 { await list() }
        let clock = ContinuousClock()
        var before = clock.now
        while !Task.isCancelled {
            let now = clock.now
            if isPlaying { time += Double((now - before) / .milliseconds(1)) / 1000 }
            before = now
            do {
                try await openWanted()
                try await frame(clock)
                problem = nil
                if !isPlaying { try await Task.sleep(for: .milliseconds(100)) }
            } catch is CancellationError {
                return
            } catch {
                problem = (error as? LocalizedError)?.errorDescription ?? error.localizedDescription
                try? await Task.sleep(for: .seconds(1))
            }
        }
    }

    /// The engine's own choice, then every device of this phone.
    private func list() async {
        guard let survey = try? await devices(options: options(Choice())) else { return }
        let found = survey.backends.flatMap(\.devices).sorted { $0.priority > $1.priority }
        choices = [Choice()] + found.map { Choice(label: "\($0.name) (\($0.backend))", backend: $0.backend, device: $0.index) }
    }

    /// Opens the device that was chosen. Where it does not open, the present one goes on.
    private func openWanted() async throws {
        guard let chosen = wanted else { return }
        wanted = nil
        engine = try await Engine.open(options: options(chosen))
        ends = []
    }

    private func frame(_ clock: ContinuousClock) async throws {
        guard let engine else { return }
        let start = clock.now
        let side = UInt32(Self.side)
        let tensor = try await engine.field(params: FieldParams(width: side, height: side, frequency: frequency.frequency, time: time))
        let bytes = try await tensor.readBytes()
        let end = clock.now
        let picture = await Task.detached(priority: .userInitiated) { Picture(values: bytes, side: Self.side) }.value
        image = picture.image
        ends = (ends + [end]).suffix(30)
        let span = ends.last.map { ($0 - ends[0]) / .milliseconds(1) } ?? 0
        let selected = engine.selected()
        numbers = Numbers(
            device: selected.device.name,
            why: selected.why,
            milliseconds: (end - start) / .milliseconds(1),
            framesPerSecond: span > 0 ? Double(ends.count - 1) * 1000 / span : 0,
            least: picture.least,
            greatest: picture.greatest
        )
    }

    private func options(_ choice: Choice) -> EngineOptions {
        let files = FileManager.default
        return EngineOptions(
            backend: choice.backend,
            device: choice.device,
            lowPower: true,
            cacheFolder: files.urls(for: .cachesDirectory, in: .userDomainMask).first?.path,
            configFolder: files.urls(for: .applicationSupportDirectory, in: .userDomainMask).first?.path
        )
    }
}

/// Values from -1 to 1 in colours: deep blue, sand in the middle, deep red.
struct Picture: @unchecked Sendable {
    let image: CGImage?
    let least: Float
    let greatest: Float

    init(values: Data, side: Int) {
        var pixels = [UInt32](repeating: 0, count: side * side)
        var (least, greatest) = (Float.infinity, -Float.infinity)
        values.withUnsafeBytes { raw in
            for place in 0..<min(pixels.count, raw.count / 4) {
                let value = Float(bitPattern: UInt32(littleEndian: raw.loadUnaligned(fromByteOffset: place * 4, as: UInt32.self)))
                least = min(least, value)
                greatest = max(greatest, value)
                pixels[place] = Self.color(value)
            }
        }
        (self.least, self.greatest) = (least, greatest)
        let data = pixels.withUnsafeBytes { Data($0) }
        let info = CGBitmapInfo(rawValue: CGImageAlphaInfo.noneSkipFirst.rawValue | CGBitmapInfo.byteOrder32Little.rawValue)
        image = CGDataProvider(data: data as CFData).flatMap {
            CGImage(
                width: side, height: side, bitsPerComponent: 8, bitsPerPixel: 32, bytesPerRow: side * 4, space: CGColorSpaceCreateDeviceRGB(),
                bitmapInfo: info, provider: $0, decode: nil, shouldInterpolate: false, intent: .defaultIntent
            )
        }
    }

    private static let stops: [UInt32] = [0x0b1f4b, 0x2b6ca3, 0xf2e9d8, 0xc9622c, 0x5a1220]
    private static let table: [UInt32] = (0..<1024).map { place in
        let at = Double(place) / 1023 * Double(stops.count - 1)
        let from = min(Int(at), stops.count - 2)
        let part = at - Double(from)
        func channel(_ shift: UInt32) -> UInt32 {
            let (a, b) = (Double(stops[from] >> shift & 0xff), Double(stops[from + 1] >> shift & 0xff))
            return UInt32(a + (b - a) * part + 0.5)
        }
        return channel(16) << 16 | channel(8) << 8 | channel(0)
    }

    /// The colour of a value; beyond the ends theirs, NaN the first.
    private static func color(_ value: Float) -> UInt32 {
        let place = (value + 1) * 512
        return table[place > 0 ? min(Int(min(place, 2048)), table.count - 1) : 0]
    }
}
