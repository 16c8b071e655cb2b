import SwiftUI

@main
struct DemoApp: App {
    @StateObject private var model = FieldModel()
    @Environment(\.scenePhase) private var phase

    var body: some Scene {
        WindowGroup {
            ContentView(model: model)
        }
        .onChange(of: phase) { phase in
            switch phase {
            case .active: model.wake()
            case .background: model.rest()
            default: break
            }
        }
    }
}
