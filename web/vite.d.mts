import type { Plugin } from "vite";

export interface Options {
  /** The program, which checks and links the kernels. Default: `cantus`, found by PATH. */
  program?: string;
  /** Conditions of the kernels to turn on: `@if(NAME)`. */
  features?: string[];
  /** Write the types of each kernel beside it, as `NAME.d.wgsl.ts`. Default: true. TypeScript reads them with `allowArbitraryExtensions`. */
  types?: boolean;
}

/**
 * Makes `import blur from "./blur.wgsl"` the kernel's text: linked with what it imports, and checked while the app is built. A mistake is Vite's error,
 * with the file, the line and the column. A file has one entry point.
 */
export default function cantus(options?: Options): Plugin;
