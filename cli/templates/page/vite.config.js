export default {
  base: "./",
  build: { target: "es2022" },
  // The package loads its module from beside its own file.
  optimizeDeps: { exclude: ["cantus"] },
  server: { fs: { strict: false } },
};
