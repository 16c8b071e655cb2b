// What `metal_stdlib` beside this folder declares.
