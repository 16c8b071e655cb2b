// swift-tools-version: 5.9
// The demo app: open the folder in Xcode, after `mobile/build.sh` has filled out/apple on this Mac.
import AppleProductTypes
import PackageDescription

let package = Package(
    name: "CantusDemo",
    platforms: [.iOS("16.0")],
    products: [
        .iOSApplication(
            name: "CantusDemo",
            targets: ["AppModule"],
            bundleIdentifier: "org.cantus.demo",
            displayVersion: "1.0",
            bundleVersion: "1",
            appIcon: .placeholder(icon: .sparkle),
            accentColor: .presetColor(.orange),
            supportedDeviceFamilies: [.pad, .phone],
            supportedInterfaceOrientations: [
                .portrait,
                .landscapeRight,
                .landscapeLeft,
                .portraitUpsideDown(.when(deviceFamilies: [.pad])),
            ]
        ),
    ],
    dependencies: [.package(path: "../../../out/apple")],
    targets: [
        .executableTarget(name: "AppModule", dependencies: [.product(name: "Cantus", package: "apple")], path: "Sources"),
    ]
)
