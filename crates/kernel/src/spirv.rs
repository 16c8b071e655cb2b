//! Corrects naga's SPIR-V of cooperative matrices. They need their extension and Vulkan's memory model, which naga 30 declares only where a variable holds
//! a matrix. Under that model an access is private to its invocation unless it says otherwise, and a barrier passes on nothing unless it says so. Without
//! both, what one invocation wrote to workgroup memory need not be seen by another.

use std::collections::HashMap;

/// `NonPrivatePointer`
const SHARED: u32 = 0x20;
/// `MakeAvailable` and `MakeVisible`
const PASSED_ON: u32 = 0x2000 | 0x4000;
/// `AcquireRelease`
const ORDERED: u32 = 0x8;
const HEADER: usize = 5;
/// The capability `VulkanMemoryModel`, and the memory model of its name.
const VULKAN_MEMORY_MODEL: u32 = 5345;
const VULKAN: u32 = 3;
const EXTENSIONS: [&str; 2] = ["SPV_KHR_cooperative_matrix", "SPV_KHR_vulkan_memory_model"];

/// `OpExtension` with this name.
fn extension(name: &str) -> Vec<u32> {
    let bytes = name.as_bytes();
    // A string ends in a zero.
    let word = |place: usize| {
        (0..4).fold(0, |word, byte| word | u32::from(bytes.get(4 * place + byte).copied().unwrap_or(0)) << (8 * byte))
    };
    let mut instruction = vec![0];
    instruction.extend((0..=bytes.len() / 4).map(word));
    instruction[0] = 10 | (instruction.len() as u32) << 16;
    instruction
}

/// `StorageBuffer` and `Workgroup`
fn is_shared(class: u32) -> bool {
    matches!(class, 12 | 4)
}

fn is_atomic(operation: u32) -> bool {
    matches!(operation, 227..=242 | 318 | 319 | 5614 | 5615 | 6035)
}

/// Returns whether instructions give their result's type and number as the first two words, and the type may be a pointer.
fn makes_pointer(operation: u32) -> bool {
    // OpFunctionParameter, OpVariable, OpAccessChain, OpInBoundsAccessChain, OpCopyObject, OpSelect, OpPhi.
    matches!(operation, 55 | 59 | 65 | 66 | 83 | 169 | 245)
}

/// The instructions behind the header: operation, and all its words.
fn instructions(words: &[u32]) -> impl Iterator<Item = (u32, &[u32])> {
    let mut rest = words.get(HEADER..).unwrap_or_default();
    std::iter::from_fn(move || {
        let first = *rest.first()?;
        let (instruction, after) = rest.split_at_checked((first >> 16).max(1) as usize)?;
        rest = after;
        Some((first & 0xffff, instruction))
    })
}

/// Declares what matrices need, and marks accesses that other invocations see, and barriers that pass them on. An error names what this is not known for.
#[doc(hidden)]
pub fn share(words: &[u32]) -> Result<Vec<u32>, &'static str> {
    // Storage classes of pointers' types, then of pointers; what barriers say, by the number of the constant.
    let (mut types, mut classes) = (HashMap::new(), HashMap::new());
    // What is declared, which stands before everything else.
    let mut declared = EXTENSIONS.map(extension).to_vec();
    declared.insert(0, vec![17 | 2 << 16, VULKAN_MEMORY_MODEL]);
    let mut semantics: HashMap<u32, u32> = HashMap::new();
    let mut bound = *words.get(3).ok_or("SPIR-V without a header")?;
    for (operation, instruction) in instructions(words) {
        match (operation, instruction) {
            (operation, _) if is_atomic(operation) => return Err("atomic operations beside cooperative matrices"),
            (10 | 17, known) => declared.retain(|one| one != known),
            (32, &[_, id, class, ..]) => {
                types.insert(id, class);
            }
            (operation, &[_, ty, id, ..]) if makes_pointer(operation) => {
                if let Some(&class) = types.get(&ty) {
                    classes.insert(id, class);
                }
            }
            (224, &[.., semantics_id]) | (225, &[.., semantics_id]) if !semantics.contains_key(&semantics_id) => {
                semantics.insert(semantics_id, bound);
                bound += 1;
            }
            _ => {}
        }
    }
    let of_shared = |pointer: &u32| classes.get(pointer).is_some_and(|&class| is_shared(class));
    let mut new = words.get(..HEADER).unwrap_or_default().to_vec();
    for (operation, instruction) in instructions(words) {
        if operation != 17 {
            declared.drain(..).for_each(|one| new.extend(one));
        }
        let from = new.len();
        new.extend_from_slice(instruction);
        // Operands before those of memory: OpLoad, OpStore, OpCooperativeMatrixLoadKHR, OpCooperativeMatrixStoreKHR.
        let plain = match (operation, instruction) {
            (61, [_, _, _, pointer, ..]) if of_shared(pointer) => 4,
            (62, [_, pointer, ..]) if of_shared(pointer) => 3,
            (4457, [_, _, _, pointer, ..]) if of_shared(pointer) => 6,
            (4458, [_, pointer, ..]) if of_shared(pointer) => 5,
            (224 | 225, [.., semantics_id]) => {
                if let (Some(id), Some(last)) = (semantics.get(semantics_id), new.last_mut()) {
                    *last = *id;
                }
                continue;
            }
            (14, [_, _, _]) => {
                if let Some(model) = new.last_mut() {
                    *model = VULKAN;
                }
                continue;
            }
            // A constant that a barrier says: beside it, what it says now.
            (43, &[first, ty, id, value]) => {
                if let Some(&other) = semantics.get(&id) {
                    let passed = if value & ORDERED == 0 { value } else { value | PASSED_ON };
                    new.extend([first, ty, other, passed]);
                }
                continue;
            }
            _ => continue,
        };
        match new.get_mut(from + plain) {
            Some(flags) => *flags |= SHARED,
            None => {
                new.push(SHARED);
                new[from] += 1 << 16;
            }
        }
    }
    new[3] = bound;
    Ok(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header and instructions, each its operation and its operands.
    fn module(bound: u32, all: &[(u32, &[u32])]) -> Vec<u32> {
        let mut words = vec![0x0723_0203, 0x0001_0300, 0, bound, 0];
        for (operation, operands) in all {
            words.push(operation | (operands.len() as u32 + 1) << 16);
            words.extend_from_slice(operands);
        }
        words
    }

    #[test]
    fn accesses_and_barriers_say_that_they_are_shared() {
        // 1: u32, 2: pointer in workgroup memory, 3: in a function, 4 and 5: variables, 6: 264, 7: 2.
        let before = module(
            20,
            &[
                (17, &[6022]),
                (14, &[0, 1]),
                (21, &[1, 32, 0]),
                (32, &[2, 4, 1]),
                (32, &[3, 7, 1]),
                (43, &[1, 6, 264]),
                (43, &[1, 7, 2]),
                (59, &[2, 4, 4]),
                (59, &[3, 5, 7]),
                (61, &[1, 10, 4]),
                (61, &[1, 11, 5]),
                (62, &[4, 10, 2, 4]),
                (224, &[7, 7, 6]),
                (4457, &[9, 12, 4, 7, 7]),
                (4458, &[4, 12, 7, 7]),
            ],
        );
        let (matrix, model) = (extension(EXTENSIONS[0]), extension(EXTENSIONS[1]));
        // 26 letters, and 27, with the zero at their end.
        assert_eq!((matrix.len(), model.len()), (8, 8));
        assert_eq!((matrix[1].to_le_bytes(), matrix[7].to_le_bytes()), (*b"SPV_", *b"ix\0\0"));
        let after = module(
            21,
            &[
                (17, &[6022]),
                (17, &[VULKAN_MEMORY_MODEL]),
                (10, &matrix[1..]),
                (10, &model[1..]),
                (14, &[0, VULKAN]),
                (21, &[1, 32, 0]),
                (32, &[2, 4, 1]),
                (32, &[3, 7, 1]),
                (43, &[1, 6, 264]),
                (43, &[1, 20, 264 | PASSED_ON]),
                (43, &[1, 7, 2]),
                (59, &[2, 4, 4]),
                (59, &[3, 5, 7]),
                (61, &[1, 10, 4, SHARED]),
                (61, &[1, 11, 5]),
                (62, &[4, 10, 2 | SHARED, 4]),
                (224, &[7, 7, 20]),
                (4457, &[9, 12, 4, 7, 7, SHARED]),
                (4458, &[4, 12, 7, 7, SHARED]),
            ],
        );
        assert_eq!(share(&before), Ok(after.clone()));
        // What is declared is not declared twice, and a barrier passes things on already.
        let declared = |words: &[u32]| words.iter().filter(|&&word| word == VULKAN_MEMORY_MODEL).count();
        assert_eq!(share(&after).map(|words| declared(&words)), Ok(1));
        // Atomics, and what is no SPIR-V.
        assert!(share(&module(5, &[(234, &[1, 2, 3, 4, 4, 4])])).is_err());
        assert!(share(&[1, 2]).is_err());
        assert_eq!(share(&[1, 2, 3, 4, 5, 0]).map(|words| words[words.len() - 1]), Ok(0));
    }
}
