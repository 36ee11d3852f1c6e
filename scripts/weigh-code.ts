import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { agentsFileSchema } from '../src/library/config/agents-schema.ts';
import { EVENT_KINDS } from '../src/events/index.ts';
import { type Ratchet, runRatchet } from './ratchet.ts';

/**
 * `npm run weigh:code`: what the code costs its readers, in counts that neither slicing nor lumping can lower together.
 * `test/weight/code.test.ts` holds them against `scripts/code-weight.json`, which may only fall: `--save` writes it.
 */
export interface CodeWeight {
  /** Lines of `src`, and of `src` with the packages; neither tests nor the page. */
  lines: number;
  linesWithPackages: number;
  /** Length of the file in which the median line stands. The only count that may rise. */
  medianFile: number;
  importsPer1000: number;
  exports: number;
  /** Names of functions that stand in three or more files. */
  namesInThreeFiles: number;
  rooms: number;
  /** Files of `src` in no room. */
  looseFiles: number;
  /** Imports between folders, of rooms and inside them, against the order in which most run one way. */
  arrowsUp: number;
  eventKinds: number;
  /**
   * Fields of the JSON schema of the agents file, blocks such as `limits` among them. Fields at one path in several variants of a
   * union (`agents.model`) are one, and so are fields of one name and one schema in several places (a cap, the settings of a
   * template). MCP servers and Nostr have schemas of their own.
   */
  settings: number;
}

const ROOT = path.dirname(import.meta.dirname);

export interface Source {
  /** From the root. */
  file: string;
  lines: number;
  imports: string[];
  exports: number;
  functions: Set<string>;
}

export function weighCode(): CodeWeight {
  const src = sourcesIn('src');
  const packages = readdirSync(path.join(ROOT, 'packages')).flatMap((name) =>
    sourcesIn(`packages/${name}/src`),
  );
  const lines = sum(src, (source) => source.lines);
  const folders = new Set(src.map(({ file }) => file.split('/').slice(0, -1).join('/')));
  const isRoom = (folder: string) => folder.split('/').length === 2;
  return {
    lines,
    linesWithPackages: lines + sum(packages, (source) => source.lines),
    medianFile: medianOf(src),
    importsPer1000: Math.round((sum(src, ({ imports }) => imports.length) * 1_000) / lines),
    exports: sum(src, (source) => source.exports),
    namesInThreeFiles: namesIn(src, 3),
    rooms: new Set([...folders].map((folder) => folder.split('/').slice(0, 2).join('/')).filter(isRoom)).size,
    looseFiles: src.filter(({ file }) => file.split('/').length === 2).length,
    arrowsUp: arrowsUpIn(src),
    eventKinds: EVENT_KINDS.length,
    settings: settingsIn(agentsFileSchema()),
  };
}

function sourcesIn(folder: string): Source[] {
  if (!existsSync(path.join(ROOT, folder))) return [];
  return readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .map((name) => path.join(folder, name).replaceAll(path.sep, '/'))
    .filter((file) => /(?<!\.d)\.tsx?$/.test(file))
    .map((file) => sourceOf(file, readFileSync(path.join(ROOT, file), 'utf8')));
}

/** The sources are formatted, so that declarations begin their lines. */
export function sourceOf(file: string, text: string): Source {
  return {
    file,
    lines: text.split('\n').length - 1,
    imports: [...text.matchAll(/^(?:import|export)\b[^;'`]*? from '([^']+)';$/gm)].map(
      ([, from = '']) => from,
    ),
    exports: [...text.matchAll(/^export (?:\{([^}]*)\}|\*)?/gm)].reduce(
      (count, [, names]) =>
        count + (names === undefined ? 1 : names.split(',').filter((name) => name.trim()).length),
      0,
    ),
    functions: new Set(
      [...text.matchAll(/^\s*(?:export )?(?:async )?function\*? (\w+)/gm)].map(([, name = '']) => name),
    ),
  };
}

interface JsonSchema {
  $ref?: string;
  $defs?: Record<string, JsonSchema>;
  properties?: Record<string, JsonSchema>;
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  allOf?: JsonSchema[];
  items?: JsonSchema;
  additionalProperties?: JsonSchema | boolean;
}

/** Fields of a JSON schema: see `CodeWeight`. */
export function settingsIn(schema: JsonSchema): number {
  const seen = new Set<string>();
  let settings = 0;
  function walk(part: JsonSchema, at: string): void {
    const { $ref, properties, anyOf = [], oneOf = [], allOf = [], items, additionalProperties } = part;
    const shared = $ref && schema.$defs?.[$ref.replace('#/$defs/', '')];
    if (shared && !seen.has($ref)) {
      seen.add($ref);
      walk(shared, at);
    }
    for (const [name, field] of Object.entries(properties ?? {})) {
      const path = `${at}.${name}`;
      const names = field.$ref === undefined ? [path] : [path, `${name} ${field.$ref}`];
      if (!names.some((each) => seen.has(each))) settings += 1;
      for (const each of names) seen.add(each);
      walk(field, path);
    }
    for (const each of [...anyOf, ...oneOf, ...allOf, items, additionalProperties])
      if (typeof each === 'object') walk(each, at);
  }
  walk(schema, '');
  return settings;
}

export function medianOf(sources: readonly Source[]): number {
  const lengths = sources.map(({ lines }) => lines).toSorted((a, b) => a - b);
  const half = sum(sources, ({ lines }) => lines) / 2;
  let seen = 0;
  return lengths.find((length) => (seen += length) >= half) ?? 0;
}

export function namesIn(sources: readonly Source[], files: number): number {
  const places = new Map<string, number>();
  for (const { functions } of sources)
    for (const name of functions) places.set(name, (places.get(name) ?? 0) + 1);
  return [...places.values()].filter((count) => count >= files).length;
}

/** Of the arrows between folders, the fewest that an order of the folders leaves running back, as far as a greedy search finds. */
export function arrowsUpIn(sources: readonly Source[]): number {
  const folderOf = (file: string) => file.split('/').slice(1, -1).join('/') || '.';
  const arrows = new Set<string>();
  for (const { file, imports } of sources)
    for (const each of imports) {
      if (!each.startsWith('.')) continue;
      const [from, to] = [folderOf(file), folderOf(path.posix.join(path.posix.dirname(file), each))];
      if (from !== to && from !== '.' && to !== '.') arrows.add(`${from} ${to}`);
    }
  const pairs = [...arrows].map((arrow) => arrow.split(' ') as [string, string]);
  const left = new Set(pairs.flat());
  const order = new Map<string, number>();
  // Whoever imports the least of what is left goes to the bottom.
  while (left.size > 0) {
    const open = pairs.filter(([from, to]) => left.has(from) && left.has(to));
    const scoreOf = (folder: string) =>
      open.filter(([from]) => from === folder).length * 1_000 - open.filter(([, to]) => to === folder).length;
    const [lowest = ''] = [...left].toSorted((a, b) => scoreOf(a) - scoreOf(b) || (a < b ? -1 : 1));
    order.set(lowest, order.size);
    left.delete(lowest);
  }
  return pairs.filter(([from, to]) => (order.get(from) ?? 0) < (order.get(to) ?? 0)).length;
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}

/** A line for each count that is worse than the record. */
export function worseThan(record: CodeWeight, now: CodeWeight): string[] {
  return (Object.keys(now) as (keyof CodeWeight)[]).flatMap((count) => {
    const isWorse = count === 'medianFile' ? now[count] < record[count] : now[count] > record[count];
    return isWorse ? [`${count}: ${now[count]}, the record says ${record[count]}`] : [];
  });
}

export const CODE: Ratchet<CodeWeight> = { record: 'code-weight.json', weigh: weighCode, worse: worseThan };

if (import.meta.main) runRatchet(CODE);
