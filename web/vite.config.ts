import { readFileSync } from 'node:fs';
import path from 'node:path';
import { defineConfig, type Plugin } from 'vite';

/** The bundler names what parts share after all of them. */
function shortOf(name: string): string {
  return name.replace(/\.[^.]*$/, '').replace(/~.*/, '');
}

/** The pages of `troupe eval show` have no script that would load styles: theirs are one file. */
const evalStyles: Plugin = {
  name: 'eval-styles',
  generateBundle() {
    const sheets = ['tokens.css', 'base.css', 'evals.css'];
    const texts = sheets.map((name) =>
      readFileSync(path.join(import.meta.dirname, 'src/style', name), 'utf8'),
    );
    this.emitFile({ type: 'asset', fileName: 'evals.css', source: texts.join('') });
  },
};

/** The page: built into `dist/web`, from where the gateway serves it under whatever path it is mounted at. */
export default defineConfig({
  root: import.meta.dirname,
  // Assets are found from the injected <base href>.
  base: './',
  plugins: [evalStyles],
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: '../dist/web',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // The server names what a view needs in the document, so that nothing of it is asked for late.
    manifest: 'manifest.json',
    rolldownOptions: {
      output: {
        chunkFileNames: ({ name }) => `assets/${shortOf(name)}-[hash].js`,
        assetFileNames: ({ names: [name = ''] }) => `assets/${shortOf(name)}-[hash][extname]`,
        codeSplitting: {
          groups: [
            { name: 'first', tags: ['$initial'], priority: 1 },
            // Small modules of several parts: a request for each would cost more than their bytes.
            { name: 'shared', minShareCount: 2, entriesAware: true, entriesAwareMergeThreshold: 16_000 },
          ],
        },
      },
    },
    // The policy of the page allows no data: URLs.
    assetsInlineLimit: 0,
  },
});
