import { featureFiles } from './features.ts';
import type { Commands } from './services.ts';
import type { Weighed, Weight } from './weigh.ts';

/** What `--json` prints. */
export interface Report {
  node: string;
  scenes: SceneReport[];
  /** Null: there was no server. Absent: not asked for. */
  commands?: Commands | null;
}

export interface SceneReport extends Weight {
  scene: string;
  /** Allocated by a turn. Absent: not asked for. */
  heapBytes?: number | undefined;
  /** Distinct types that the executed files import. Absent: not asked for. */
  types?: number | undefined;
  /** Calls of each executed function, by file and name. */
  list: Record<string, number>;
  /** What SQLite was told, in order. */
  sql: string[];
  /** Executed functions outside `src` and the packages beside it. */
  elsewhere: { packages: number; node: number };
}

export function sceneReport({ scene, weight, functions, statements, elsewhere }: Weighed): SceneReport {
  const sql = statements.map((text) => text.replaceAll(/\s+/g, ' ').trim());
  return { scene, ...weight, list: Object.fromEntries(functions), sql, elsewhere };
}

export function fileOf(listed: string): string {
  return listed.slice(0, listed.indexOf(' '));
}

/** Files of a scene with the number of their functions that ran. */
export function filesOf({ list }: SceneReport): Map<string, number> {
  const files = new Map<string, number>();
  for (const name of Object.keys(list)) files.set(fileOf(name), (files.get(fileOf(name)) ?? 0) + 1);
  return files;
}

/** A table of all scenes, then what a plain turn executes of features that are off, and the commands of the other mode. */
export function table({ node, scenes, commands }: Report): string {
  const head = [
    '',
    'files',
    'functions',
    'calls',
    'statements',
    'transactions',
    'synced',
    'heap KiB',
    'types',
  ];
  const rows = scenes.map((each) => [
    each.scene,
    each.files,
    each.functions,
    each.calls,
    each.statements,
    each.transactions,
    each.synced,
    each.heapBytes === undefined ? undefined : Math.round(each.heapBytes / 1_024),
    each.types,
    each.elsewhere.packages,
    each.elsewhere.node,
  ]);
  const isGiven = head.map((_, at) => rows.some((row) => row[at] !== undefined));
  const lines = [head, ...rows].map((row) =>
    row
      .filter((_, at) => isGiven[at])
      .map((cell, at) => (at === 0 ? `${cell}`.padEnd(18) : `${cell ?? ''}`.padStart(13)))
      .join(''),
  );
  const plain = scenes.find(({ scene }) => scene === 'plain');
  const parts = [`a warm turn behind ten messages, executed in src and packages (Node ${node})`, ...lines];
  if (plain) parts.push('', ...featureLines(plain));
  if (commands !== undefined) parts.push('', ...commandLines(commands));
  return parts.join('\n');
}

function featureLines(plain: SceneReport): string[] {
  const found = featureFiles(filesOf(plain).keys());
  const count = new Set([...found.values()].flat()).size;
  return [
    `a plain turn executes ${count} files of features that are off`,
    ...[...found].map(([feature, files]) => `  ${feature.padEnd(12)} ${files.join(' ')}`),
  ];
}

function commandLines(commands: Commands | null): string[] {
  if (commands === null)
    return [
      'commands of MongoDB and Redis: not counted, since MONGODB_URL and REDIS_URL name no servers; node scripts/with-services.ts npm run weigh:turn',
    ];
  const line = (title: string, counts: Record<string, number>) => {
    const each = Object.entries(counts).map(([name, count]) => `${name} ${count}`);
    const sum = Object.values(counts).reduce((total, count) => total + count, 0);
    return `commands of a plain turn, ${title}: ${sum} (${each.join(', ')})`;
  };
  const { mongodb, redis, redisCalls, postgres } = commands;
  return [
    line('MongoDB', mongodb),
    `${line('Redis', redis)}, in ${redisCalls} round trips`,
    postgres === null
      ? 'round trips of PostgreSQL: not counted, since POSTGRES_URL names no server'
      : line('PostgreSQL in place of MongoDB', postgres),
  ];
}

/** What has changed since another report. */
export function difference(before: Report, now: Report): string {
  const lines: string[] = [];
  for (const scene of now.scenes) {
    const former = before.scenes.find((each) => each.scene === scene.scene);
    if (!former) continue;
    lines.push(`${scene.scene}: ${changes(former, scene).join(', ') || 'the same'}`);
    for (const name of Object.keys(scene.list)) if (!(name in former.list)) lines.push(`  + ${name}`);
    for (const name of Object.keys(former.list)) if (!(name in scene.list)) lines.push(`  - ${name}`);
  }
  return lines.join('\n');
}

export const COUNTED = ['files', 'functions', 'calls', 'statements', 'transactions', 'synced'] as const;

function changes(former: SceneReport, scene: SceneReport): string[] {
  return [...COUNTED, 'heapBytes', 'types'].flatMap((field) => {
    const [from, to] = [former[field as keyof Weight], scene[field as keyof Weight]];
    return from === to || from === undefined || to === undefined ? [] : [`${field} ${from} → ${to}`];
  });
}
