import { type Plugin, defineConfig } from "vite";

/** The view that most begin with is asked for with the page, not by what the page then runs. */
const firstView: Plugin = {
  name: "first-view",
  transformIndexHtml: {
    order: "post",
    handler(_, { bundle }) {
      const chunk = Object.values(bundle ?? {}).find((one) => one.type === "chunk" && one.facadeModuleId?.endsWith("/page/field/view.ts"));
      return chunk ? [{ tag: "link", attrs: { rel: "modulepreload", crossorigin: true, href: `./${chunk.fileName}` }, injectTo: "head" }] : [];
    },
  },
};

export default defineConfig({
  base: "./",
  plugins: [firstView],
  worker: { format: "es" },
  build: { target: "es2022", outDir: "dist", chunkSizeWarningLimit: 600 },
});
