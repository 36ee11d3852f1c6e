import { defineConfig } from 'vite';

/** The page: built into `dist/web`, from where the gateway serves it under whatever path it is mounted at. */
export default defineConfig({
  root: import.meta.dirname,
  // Assets are found from the injected <base href>.
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: '../dist/web',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // The policy of the page allows no data: URLs.
    assetsInlineLimit: 0,
  },
});
