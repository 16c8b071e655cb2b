//! A sentence where a driver ends the program: some do, by an access that the system forbids, and a shell says at most "Segmentation fault".

use std::sync::OnceLock;

/// The end of the sentence, after the signal's name: on which device the program computes.
static PLACE: OnceLock<String> = OnceLock::new();

/// Names the device that the program computes on.
pub fn on(device: &str) {
    let _ = PLACE.set(format!(
        " while it computed on {device}. A driver may be at fault: choose another device (--backend cpu), and `cantus verify` tests this one\n"
    ));
}

/// The signals of defects.
#[cfg(unix)]
pub const SIGNALS: [libc::c_int; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT];

/// The signals of defects, and the handler that each had before: Rust reports a stack that overflows.
#[cfg(unix)]
static BEFORE: [(libc::c_int, &str, OnceLock<libc::sigaction>); 5] = [
    (libc::SIGSEGV, "SIGSEGV", OnceLock::new()),
    (libc::SIGBUS, "SIGBUS", OnceLock::new()),
    (libc::SIGILL, "SIGILL", OnceLock::new()),
    (libc::SIGFPE, "SIGFPE", OnceLock::new()),
    (libc::SIGABRT, "SIGABRT", OnceLock::new()),
];

/// Says a sentence where a signal of a defect ends the program. It ends by the signal all the same.
pub fn explain() {
    #[cfg(unix)]
    for (signal, _, before) in &BEFORE {
        // SAFETY: the structures are zeroed, which is a value of theirs, and the handler calls only what a handler may call.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let mut old: libc::sigaction = std::mem::zeroed();
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = handle;
            action.sa_sigaction = handler as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            if libc::sigaction(*signal, &raw const action, &raw mut old) == 0 {
                let _ = before.set(old);
            }
        }
    }
}

/// Writes the sentence, and gives the signal to the handler that it had before.
#[cfg(unix)]
extern "C" fn handle(signal: libc::c_int, facts: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let Some((_, name, before)) = BEFORE.iter().find(|(of, ..)| *of == signal) else { return };
    let place = PLACE.get().map_or(".\n", String::as_str);
    for text in ["error: the program was ended by ", *name, place] {
        // SAFETY: the text is there, and `write` may be called here.
        let _ = unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
    }
    let default = libc::SIG_DFL;
    let handler = before.get().map_or(default, |before| before.sa_sigaction);
    // SAFETY: what was there before is a handler of this kind if its flags say so.
    unsafe {
        libc::signal(signal, default);
        if let Some(before) = before.get()
            && handler != default
            && handler != libc::SIG_IGN
            && before.sa_flags & libc::SA_SIGINFO != 0
        {
            let next: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                std::mem::transmute(handler);
            next(signal, facts, context);
        }
        // It waits until this handler has returned, and ends the program then. What was sent would not come again by itself.
        libc::raise(signal);
    }
}
