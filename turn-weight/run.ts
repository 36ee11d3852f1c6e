import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { startCoverage } from './coverage.ts';
import { silenceThreads } from './silence-threads.ts';
import { watchSqlite } from './sqlite-calls.ts';
import type { Report, SceneReport } from './report.ts';
import type { Commands } from './services.ts';

/**
 * `npm run weigh:turn`: what one warm turn executes, writes and allocates, for each kind of turn and each door. Counted
 * with a clock that stands, so every run has the same figures.
 */
const USAGE = `npm run weigh:turn -- [options]
  --scene NAME      this one alone; may be given several times
  --counted         without the heap and the servers
  --types           also the types that the executed files import
  --json            for machines
  --list NAME       every function that ran, with its calls
  --files NAME      every file, with the number of its functions that ran
  --statements NAME what SQLite was told
  --diff FILE       what has changed since a saved --json
  --save            writes the record that a test holds turns against; its counts may only fall
  --raise REASON    with --save: they may rise, for this reason`;

const { values } = parseArgs({
  options: {
    scene: { type: 'string', multiple: true },
    counted: { type: 'boolean', default: false },
    types: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    list: { type: 'string' },
    files: { type: 'string' },
    statements: { type: 'string' },
    diff: { type: 'string' },
    save: { type: 'boolean', default: false },
    raise: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

// Before what they watch is loaded.
const coverage = await startCoverage();
const sqlite = watchSqlite();
silenceThreads();
const { SCENE_NAMES, weighScenes } = await import('./all.ts');
const { difference, filesOf, sceneReport, table } = await import('./report.ts');

if (values.help) console.log(`${USAGE}\nscenes: ${SCENE_NAMES.join(', ')}`);
else await main();
// Nothing that a package leaves open keeps the process, once all is written.
process.stdout.write('', () => process.exit());

async function main(): Promise<void> {
  const shown = values.list ?? values.files ?? values.statements;
  const names = namesToWeigh(shown);
  const unknown = names.filter((name) => !SCENE_NAMES.includes(name));
  if (unknown.length > 0)
    throw new Error(`there is no scene ${unknown.join(', ')}: ${SCENE_NAMES.join(', ')}`);
  const scenes = (await weighScenes(names, coverage, sqlite)).map(sceneReport);
  await coverage.stop();
  const [scene] = scenes;
  if (shown !== undefined && scene) return console.log(linesOf(scene).join('\n'));
  const report: Report = { node: process.version, scenes };
  if (values.save) return save(report);
  if (values.types) await addTypes(scenes);
  if (!values.counted) {
    addHeap(scenes);
    if (names.includes('plain')) report.commands = await commands();
  }
  if (values.json) console.log(JSON.stringify(report, null, 1));
  else if (values.diff) console.log(difference(savedReport(values.diff), report));
  else console.log(table(report));
}

/** A record is of all scenes. */
function namesToWeigh(shown: string | undefined): readonly string[] {
  if (values.save) return SCENE_NAMES;
  return shown === undefined ? (values.scene ?? SCENE_NAMES) : [shown];
}

async function save(report: Report): Promise<void> {
  const { readRecord, writeRecord } = await import('./record-files.ts');
  const { compare, nextRecord } = await import('./ratchet.ts');
  const record = readRecord();
  const next = nextRecord(record, report, values.raise);
  writeRecord(next);
  const isNew = record.functions.size === 0;
  console.log((isNew ? [] : compare(record, report).slice(0, -1)).join('\n') || 'the record is exact');
}

function linesOf(scene: SceneReport): string[] {
  if (values.statements !== undefined) return scene.sql;
  const counts = values.files === undefined ? Object.entries(scene.list) : [...filesOf(scene)];
  return counts.map(([name, count]) => `${`${count}`.padStart(6)}  ${name}`);
}

function savedReport(file: string): Report {
  return JSON.parse(readFileSync(file, 'utf8')) as Report;
}

async function addTypes(scenes: readonly SceneReport[]): Promise<void> {
  const { typesImportedBy } = await import('./function-names.ts');
  for (const scene of scenes) scene.types = typesImportedBy([...filesOf(scene).keys()]).size;
}

/** In a process of its own: code that is counted is not optimized, and allocates differently. */
function addHeap(scenes: readonly SceneReport[]): void {
  const flags = ['--expose-gc', '--max-semi-space-size=64', '--min-semi-space-size=64'];
  const script = path.join(import.meta.dirname, 'heap.ts');
  const names = scenes.map(({ scene }) => scene);
  const output = execFileSync(process.execPath, [...flags, script, ...names], { encoding: 'utf8' });
  const bytes = JSON.parse(output) as Record<string, number>;
  for (const scene of scenes) scene.heapBytes = bytes[scene.scene];
}

async function commands(): Promise<Commands | null> {
  const { countCommands } = await import('./services.ts');
  return countCommands(process.env);
}
