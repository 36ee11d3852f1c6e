// By its object: Bun and Deno may lack the export.
import nodeModule from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { hasHooks, importAsModule, type ImportModule } from '../../library/config/load-agents-file.ts';

/** Marks the modules of one import, because Node keeps every module under its URL for ever. */
const MARK = 'troupe-reload';
/** Troupe itself must not be loaded twice. */
const OWN_FILES = new URL('../../', import.meta.url).href;

/**
 * Imports modules with all local files that they import as they are now. `onFile` is told each before it is read. Where modules
 * cannot be resolved by a hook, only the module itself is as it is now.
 */
export function createFreshImport(onFile: (file: string) => void): ImportModule {
  let round = 0;
  const hooks: Parameters<typeof nodeModule.registerHooks>[0] = {
    resolve(specifier, context, nextResolve) {
      const resolved = nextResolve(specifier, context);
      const mark = markOf(context.parentURL);
      if (mark === null || !isLocal(resolved.url)) return resolved;
      onFile(fileURLToPath(resolved.url));
      return { ...resolved, url: marked(resolved.url, mark) };
    },
  };
  if (hasHooks()) nodeModule.registerHooks(hooks);
  return async function importFresh(url) {
    round += 1;
    onFile(fileURLToPath(url));
    return importAsModule(marked(url, String(round)));
  };
}

function isLocal(url: string): boolean {
  return url.startsWith('file:') && !url.includes('/node_modules/') && !url.startsWith(OWN_FILES);
}

function marked(url: string, mark: string): string {
  const target = new URL(url);
  target.searchParams.set(MARK, mark);
  return target.href;
}

function markOf(url = pathToFileURL('/').href): string | null {
  return URL.parse(url)?.searchParams.get(MARK) ?? null;
}
