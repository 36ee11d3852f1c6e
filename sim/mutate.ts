import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';
import { type Edit, type Mutant, MUTANTS } from './mutants.ts';

const SOURCE = new URL('../src/', import.meta.url);

/**
 * Changes modules as they are loaded, so call it before the first import of them. Throws unless each text occurs
 * exactly once.
 */
export function mutate(name: string): Mutant {
  const mutant = MUTANTS.find((each) => each.name === name);
  if (!mutant) throw new Error(`there is no mutant "${name}"`);
  const sources = new Map<string, string>();
  for (const [file, edits] of Map.groupBy(mutant.edits, (edit) => edit.file)) {
    const url = new URL(file, SOURCE);
    sources.set(url.href, applied(readFileSync(fileURLToPath(url), 'utf8'), edits));
  }
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      const source = sources.get(url);
      return source === undefined ? loaded : { ...loaded, source };
    },
  });
  return mutant;
}

function applied(source: string, edits: readonly Edit[]): string {
  let text = source;
  for (const { file, find, replace } of edits) {
    const times = text.split(find).length - 1;
    if (times !== 1) throw new Error(`out of date: ${file} contains this ${times} times: ${find}`);
    text = text.replace(find, () => replace);
  }
  return text;
}
