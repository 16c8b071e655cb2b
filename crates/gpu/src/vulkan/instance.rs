//! The Vulkan library, loaded at run time, and one instance of it; validation layers where they are asked for. `mod` makes one for a process and layer
//! setting. The library stays loaded as long as an instance lives. With `CANTUS_VALIDATION=1` messages are collected rather than printed: tests take them
//! and fail on any.

use cantus_base::listed::Listed;
use std::ffi::{CStr, c_void};
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

use ash::{ext, khr, vk};

const VALIDATION_LAYER: &CStr = c"VK_LAYER_KHRONOS_validation";
/// Validation messages kept until they are taken.
const KEPT_MESSAGES: usize = 1000;

/// The validation layers' messages in this process since they were last taken.
static MESSAGES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Takes what the validation layers said in this process so far: warnings and errors of all instances. Empty without validation.
#[must_use]
pub fn take_validation_messages() -> Vec<String> {
    std::mem::take(&mut *MESSAGES.lock().unwrap_or_else(PoisonError::into_inner))
}

/// An instance, and what it needs to stay alive.
pub(super) struct Instance {
    pub(super) raw: ash::Instance,
    /// The highest version of Vulkan that the instance may be used with.
    pub(super) api: u32,
    /// True when the validation layers are on.
    pub(super) validated: bool,
    messenger: Option<(ext::debug_utils::Instance, vk::DebugUtilsMessengerEXT)>,
    /// The library; declared last, so that it is unloaded last.
    entry: ash::Entry,
}

impl Instance {
    /// Loads the library and makes an instance, or says why it cannot. `validation`: with the validation layers.
    pub(super) fn new(validation: bool) -> Result<Self, String> {
        // SAFETY: this loads the system's Vulkan loader; its initialisers are trusted as any driver's are.
        let entry = unsafe { ash::Entry::load() }
            .map_err(|error| format!("the Vulkan loader could not be loaded ({error}): {REMEDY}"))?;
        // SAFETY: the entry is alive.
        let found = unsafe { entry.try_enumerate_instance_version() };
        let found = found.ok().flatten().unwrap_or(vk::API_VERSION_1_0);
        if found < vk::API_VERSION_1_1 {
            return Err("the Vulkan loader knows Vulkan 1.0 only, and 1.1 is needed: update it".to_owned());
        }
        let api = found.min(vk::API_VERSION_1_3);
        // SAFETY: the entry is alive.
        let extensions = unsafe { entry.enumerate_instance_extension_properties(None) };
        let extensions = extensions.map_err(|error| format!("the Vulkan loader lists no extensions: {error}"))?;
        let has = |name: &CStr| extensions.iter().any(|known| known.extension_name_as_c_str() == Ok(name));
        let validated = validation && has_layer(&entry);
        if validation && !validated {
            tracing::warn!("CANTUS_VALIDATION is set, and VK_LAYER_KHRONOS_validation is not installed");
        }
        let (mut names, mut layers) = (Vec::new(), Vec::new());
        let mut flags = vk::InstanceCreateFlags::empty();
        if has(khr::portability_enumeration::NAME) {
            names.push(khr::portability_enumeration::NAME.as_ptr());
            flags |= vk::InstanceCreateFlags::ENUMERATE_PORTABILITY_KHR;
        }
        if validated {
            names.push(ext::debug_utils::NAME.as_ptr());
            layers.push(VALIDATION_LAYER.as_ptr());
        }
        let (synchronization, mut validation_features) = synchronization(&entry);
        if validated && synchronization {
            names.push(ext::validation_features::NAME.as_ptr());
        }
        let application = vk::ApplicationInfo::default().engine_name(c"cantus").api_version(api);
        let mut info = vk::InstanceCreateInfo::default()
            .flags(flags)
            .application_info(&application)
            .enabled_extension_names(&names)
            .enabled_layer_names(&layers);
        if validated && synchronization {
            info = info.push_next(&mut validation_features);
        }
        // SAFETY: what `info` points to lives until the call is over.
        let raw = unsafe { entry.create_instance(&info, None) };
        let raw = raw.map_err(|error| format!("Vulkan makes no instance ({error}): {REMEDY}"))?;
        let messenger = validated.then(|| messenger(&entry, &raw)).flatten();
        Ok(Self { raw, api, validated: messenger.is_some(), messenger, entry })
    }
}

impl Instance {
    /// The products of cooperative matrices that a device of this instance lists; it must have the extension.
    pub(super) fn products(
        &self,
        physical: vk::PhysicalDevice,
    ) -> Result<Vec<vk::CooperativeMatrixPropertiesKHR<'static>>, vk::Result> {
        let functions = khr::cooperative_matrix::Instance::new(&self.entry, &self.raw);
        // SAFETY: the physical device belongs to the instance and has the extension; the driver fills plain structures.
        let listed = unsafe { functions.get_physical_device_cooperative_matrix_properties(physical) }?;
        // Its lists of further structures are empty.
        Ok(listed
            .into_iter()
            .map(|one| vk::CooperativeMatrixPropertiesKHR { _marker: PhantomData, p_next: null_mut(), ..one })
            .listed())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: devices keep an `Arc` of the instance, so none is left; the messenger is its own and goes first.
        unsafe {
            if let Some((functions, messenger)) = self.messenger.take() {
                functions.destroy_debug_utils_messenger(messenger, None);
            }
            self.raw.destroy_instance(None);
        }
    }
}

#[cfg(target_os = "linux")]
pub(super) const REMEDY: &str =
    "install the GPU's driver (a software one on Debian: apt-get install libvulkan1 mesa-vulkan-drivers)";
#[cfg(not(target_os = "linux"))]
pub(super) const REMEDY: &str = "install or update the GPU's driver";

fn has_layer(entry: &ash::Entry) -> bool {
    // SAFETY: the entry is alive.
    let layers = unsafe { entry.enumerate_instance_layer_properties() }.unwrap_or_default();
    layers.iter().any(|layer| layer.layer_name_as_c_str() == Ok(VALIDATION_LAYER))
}

/// Returns whether the layer can find missing barriers too, and how that is asked for.
fn synchronization(entry: &ash::Entry) -> (bool, vk::ValidationFeaturesEXT<'static>) {
    const WANTED: [vk::ValidationFeatureEnableEXT; 1] = [vk::ValidationFeatureEnableEXT::SYNCHRONIZATION_VALIDATION];
    // SAFETY: the entry is alive; a layer that is not there gives an error.
    let known = unsafe { entry.enumerate_instance_extension_properties(Some(VALIDATION_LAYER)) }.unwrap_or_default();
    let known = known.iter().any(|known| known.extension_name_as_c_str() == Ok(ext::validation_features::NAME));
    (known, vk::ValidationFeaturesEXT::default().enabled_validation_features(&WANTED))
}

fn messenger(
    entry: &ash::Entry,
    instance: &ash::Instance,
) -> Option<(ext::debug_utils::Instance, vk::DebugUtilsMessengerEXT)> {
    use vk::{DebugUtilsMessageSeverityFlagsEXT as Severity, DebugUtilsMessageTypeFlagsEXT as Type};
    let functions = ext::debug_utils::Instance::new(entry, instance);
    let info = vk::DebugUtilsMessengerCreateInfoEXT::default()
        .message_severity(Severity::WARNING | Severity::ERROR)
        .message_type(Type::GENERAL | Type::VALIDATION | Type::PERFORMANCE)
        .pfn_user_callback(Some(collect));
    // SAFETY: the extension was enabled; the callback lives as long as the program.
    let messenger = unsafe { functions.create_debug_utils_messenger(&info, None) };
    match messenger {
        Ok(messenger) => Some((functions, messenger)),
        Err(error) => {
            tracing::warn!(%error, "validation messages cannot be collected");
            None
        }
    }
}

/// Keeps a message of the validation layers.
///
/// # Safety
/// To be called by Vulkan, with data as its specification says.
unsafe extern "system" fn collect(
    _severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    _kind: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    _user: *mut c_void,
) -> vk::Bool32 {
    // SAFETY: Vulkan gives a valid structure for the time of the call, or null.
    let text = unsafe { data.as_ref() }.and_then(|data| {
        // SAFETY: the message is a C string that lives for the time of the call.
        (!data.p_message.is_null()).then(|| unsafe { CStr::from_ptr(data.p_message) }.to_string_lossy().into_owned())
    });
    let text = text.unwrap_or_else(|| "a validation message without text".to_owned());
    tracing::warn!(message = %text, "Vulkan validation");
    let mut messages = MESSAGES.lock().unwrap_or_else(PoisonError::into_inner);
    if messages.len() < KEPT_MESSAGES {
        messages.push(text);
    }
    vk::FALSE
}
