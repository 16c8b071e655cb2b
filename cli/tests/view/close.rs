//! Asks a window to close, by the message that window managers send (ICCCM, 4.2.8.1): xdotool of that age cannot.

use std::ffi::{CString, c_char, c_int, c_long, c_ulong, c_void};

/// `XClientMessageEvent` in the union `XEvent`, which is 24 longs long.
#[repr(C)]
struct ClientMessage {
    kind: c_int,
    serial: c_ulong,
    send_event: c_int,
    display: *mut c_void,
    window: c_ulong,
    message_type: c_ulong,
    format: c_int,
    data: [c_long; 5],
    rest: [c_long; 12],
}

const CLIENT_MESSAGE: c_int = 33;

/// Sends the message to a window of a display.
pub fn ask(display: &str, window: u64) {
    let name = CString::new(display).unwrap();
    // SAFETY: the signatures are Xlib's; the display is open between XOpenDisplay and XCloseDisplay, and the event is as large as XEvent.
    unsafe {
        let library = libloading::Library::new("libX11.so.6").unwrap();
        let open: libloading::Symbol<'_, unsafe extern "C" fn(*const c_char) -> *mut c_void> =
            library.get(b"XOpenDisplay\0").unwrap();
        let atom: libloading::Symbol<'_, unsafe extern "C" fn(*mut c_void, *const c_char, c_int) -> c_ulong> =
            library.get(b"XInternAtom\0").unwrap();
        let send: libloading::Symbol<
            '_,
            unsafe extern "C" fn(*mut c_void, c_ulong, c_int, c_long, *mut ClientMessage) -> c_int,
        > = library.get(b"XSendEvent\0").unwrap();
        let close: libloading::Symbol<'_, unsafe extern "C" fn(*mut c_void) -> c_int> =
            library.get(b"XCloseDisplay\0").unwrap();
        let connection = open(name.as_ptr());
        assert!(!connection.is_null(), "no connection to {display}");
        let protocols = atom(connection, c"WM_PROTOCOLS".as_ptr(), 0);
        let delete = atom(connection, c"WM_DELETE_WINDOW".as_ptr(), 0);
        let mut event = ClientMessage {
            kind: CLIENT_MESSAGE,
            serial: 0,
            send_event: 1,
            display: connection,
            window,
            message_type: protocols,
            format: 32,
            data: [delete as c_long, 0, 0, 0, 0],
            rest: [0; 12],
        };
        send(connection, window, 0, 0, &mut event);
        close(connection);
    }
}
