plugins {
    id("com.android.application")
    id("org.jetbrains.kotlin.android")
}

android {
    namespace = "org.cantus.demo"
    compileSdk = 35
    defaultConfig {
        applicationId = "org.cantus.demo"
        minSdk = 26
        targetSdk = 35
        versionCode = 1
        versionName = "1.0"
    }
    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_17
        targetCompatibility = JavaVersion.VERSION_17
    }
    kotlinOptions { jvmTarget = "17" }
}

dependencies {
    implementation(project(":cantus"))
    implementation("org.jetbrains.kotlinx:kotlinx-coroutines-android:1.9.0")
}
