// swift-tools-version:5.9
// The package that `build.sh` fills: the generated Swift in Sources/Cantus, the libraries in Cantus.xcframework.
import PackageDescription

let package = Package(
    name: "Cantus",
    platforms: [.iOS(.v15)],
    products: [.library(name: "Cantus", targets: ["Cantus"])],
    targets: [
        .binaryTarget(name: "CantusFFI", path: "Cantus.xcframework"),
        .target(
            name: "Cantus",
            dependencies: ["CantusFFI"],
            linkerSettings: ["Foundation", "Metal", "QuartzCore", "CoreGraphics"].map { .linkedFramework($0) }
        ),
    ]
)
