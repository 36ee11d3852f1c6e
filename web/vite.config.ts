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

interface Modules {
  getModuleInfo(
    id: string,
  ): { importedIds: readonly string[]; dynamicallyImportedIds: readonly string[] } | null;
}

/** Modules of `web/src` with all that they import before they run. */
function wholeOf(files: readonly string[], modules: Modules): Set<string> {
  const found = new Set<string>();
  const waiting = [...files];
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (found.has(file)) continue;
    found.add(file);
    waiting.push(...(modules.getModuleInfo(file)?.importedIds ?? []));
  }
  return found;
}

const source = (file: string) => path.join(import.meta.dirname, 'src', file);
/** What a conversation always shows. */
const CONVERSATION = ['parts/conversation.tsx', 'parts/detail/detail.tsx', 'parts/timeline/timeline.tsx'].map(
  source,
);

/** In the order in which they take modules. */
const CHUNKS = ['first', 'conversation'] as const;

/**
 * A view comes with few requests: over a far network each costs more than its bytes. `first` has the frame, and the code of
 * several views; `conversation` what only a conversation has.
 */
function chunkOf(id: string, modules: Modules): (typeof CHUNKS)[number] | null {
  if (wholeOf([source('main.tsx')], modules).has(id)) return 'first';
  const isInConversation = wholeOf(CONVERSATION, modules).has(id);
  const views = modules.getModuleInfo(source('app.tsx'))?.dynamicallyImportedIds ?? [];
  const others = views.filter((view) => !CONVERSATION.includes(view) && wholeOf([view], modules).has(id));
  if (Number(isInConversation) + others.length > 1 && !id.endsWith('.css')) return 'first';
  return isInConversation ? 'conversation' : null;
}

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
            ...CHUNKS.map((name, index) => ({
              name: (id: string, modules: Modules) => (chunkOf(id, modules) === name ? name : null),
              debugName: name,
              priority: CHUNKS.length - index,
            })),
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
