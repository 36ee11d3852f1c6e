import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

/** Parts of the page are fetched when they are shown, each with its styles: no other part may be counted on for them. */
const WEB = path.join(import.meta.dirname, '../../web/src');

const files = new Map(
  readdirSync(WEB, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(tsx?|css)$/.test(file))
    .map((file) => [path.join(WEB, file), readFileSync(path.join(WEB, file), 'utf8')]),
);

function named(file: string, pattern: RegExp): string[] {
  const found = [...(files.get(file) ?? '').matchAll(pattern)];
  return found.map(([, to = '']) => path.join(path.dirname(file), to)).filter((to) => files.has(to));
}

/** A file with all that it imports before it runs. */
function whole(file: string, seen = new Set<string>()): Set<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  for (const to of named(file, /^(?:import|export)[^;]*?'(\.[^']+)';/gm)) whole(to, seen);
  return seen;
}

interface Chunk {
  root: string;
  own: Set<string>;
  /** What was loaded before it. */
  before: Set<string>;
}

function chunksFrom(root: string, before: Set<string>, seen = new Set<string>()): Chunk[] {
  if (seen.has(root)) return [];
  seen.add(root);
  const own = whole(root);
  const loaded = new Set([...before, ...own]);
  const later = [...own].flatMap((file) => named(file, /import\('(\.[^']+)'\)/g));
  return [{ root, own, before }, ...later.flatMap((to) => chunksFrom(to, loaded, seen))];
}

function classesOf(sheet: string): string[] {
  return [...(files.get(sheet) ?? '').replaceAll(/\/\*[^*]*\*\//g, '').matchAll(/\.([a-z][\w-]+)/g)].map(
    ([, name = '']) => name,
  );
}

test('every part of the page brings the styles of the classes that it names', () => {
  const sheets = [...files.keys()].filter((file) => file.endsWith('.css'));
  const places = new Map<string, Set<string>>();
  for (const sheet of sheets)
    for (const name of classesOf(sheet)) places.set(name, (places.get(name) ?? new Set()).add(sheet));
  const chunks = chunksFrom(path.join(WEB, 'main.tsx'), new Set());
  const missing = chunks.flatMap(({ root, own, before }) =>
    [...own]
      .filter((file) => file.endsWith('.tsx'))
      .flatMap((file) => {
        const words = new Set(
          [...(files.get(file) ?? '').matchAll(/(?<![./\w-])[\w-]+/g)].map(([word]) => word),
        );
        return [...words]
          .filter((word) => word.includes('-') && places.has(word))
          .filter(
            (word) => ![...(places.get(word) ?? [])].some((sheet) => own.has(sheet) || before.has(sheet)),
          )
          .map((word) => `${path.relative(WEB, root)}: ${path.basename(file)} names ${word}`);
      }),
  );
  expect(missing).toEqual([]);
});
