// The demo app, and the library module that `mobile/build.sh` fills.
pluginManagement {
    repositories {
        google()
        mavenCentral()
        gradlePluginPortal()
    }
}
dependencyResolutionManagement {
    repositories {
        google()
        mavenCentral()
    }
}
rootProject.name = "cantus-demo"
include(":app", ":cantus")
project(":cantus").projectDir = file("../../out/android")
