import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { installNpmFolder, versionAt } from '../../test/services/npm-folder.ts';
import { installPythonLibrary } from '../../test/services/python-library.ts';
import { percentile } from '../support.ts';
import { HOME, NPM, PYTHON } from './packages.ts';
import { shown } from './shown.ts';

/**
 * `npm run bench:peers`: the same scenes with Troupe and with others, in one run: fresh processes, a model in the process
 * that answers at once, each on its own store in a file. Who begins changes from round to round. Prints a table of medians.
 * `--runs N` (default 3), `--peer NAME` and `--scene NAME` (each may be repeated), `--json`.
 */
const TIMEOUT_MS = 900_000;

const { values: given } = parseArgs({
  options: {
    runs: { type: 'string', default: '3' },
    peer: { type: 'string', multiple: true, default: [] },
    scene: { type: 'string', multiple: true, default: [] },
    json: { type: 'boolean', default: false },
  },
});
const runs = Math.max(1, Math.trunc(Number(given.runs)) || 1);

/** How a peer is played; `version` is what is installed. */
interface Peer {
  name: string;
  version: string;
  command: string;
  script: string;
  env: Record<string, string>;
}

interface Scene {
  name: string;
  /** Plays of one scene, in the same folder: only the last is measured. */
  plays: readonly [scene: string, size: number][];
  figures: readonly [figure: string, title: string][];
}

const SCENES: readonly Scene[] = [
  {
    name: 'turn-10',
    plays: [['turn', 10]],
    figures: [
      ['p50Ms', 'turn at 10, ms'],
      ['cpuMs', 'CPU of a turn at 10, ms'],
    ],
  },
  {
    name: 'turn-1000',
    plays: [['turn', 1_000]],
    figures: [
      ['p50Ms', 'turn at 1,000, ms'],
      ['cpuMs', 'CPU of a turn at 1,000, ms'],
    ],
  },
  {
    name: 'turn-10000',
    plays: [['turn', 10_000]],
    figures: [
      ['p50Ms', 'turn at 10,000, ms'],
      ['cpuMs', 'CPU of a turn at 10,000, ms'],
    ],
  },
  {
    name: 'cold',
    plays: [
      ['fill', 10_000],
      ['cold', 10_000],
    ],
    figures: [['firstTurnMs', 'first turn of a process at 10,000, ms']],
  },
  {
    name: 'many',
    plays: [['many', 1_000]],
    figures: [
      ['turnsPerSecond', '1,000 conversations, turns/s'],
      ['cpuMs', '1,000 conversations, CPU of a turn, ms'],
      ['rssStartMb', 'resident memory of a process that is open, MiB'],
      ['rssPeakMb', 'the most of it in 1,000 conversations, MiB'],
    ],
  },
  {
    name: 'rally',
    plays: [['rally', 50]],
    figures: [
      ['calls', 'two agents, 50 turns: calls'],
      ['kiloChars', 'two agents, 50 turns: thousand characters sent'],
    ],
  },
  { name: 'bytes', plays: [['bytes', 200]], figures: [['bytesPerTurn', 'stored bytes a turn, 200 turns']] },
];

const scenes = SCENES.filter(({ name }) => given.scene.length === 0 || given.scene.includes(name));
const isWanted = (name: string) => given.peer.length === 0 || given.peer.includes(name);
const peers = (await findPeers()).filter(({ name }) => isWanted(name));
if (scenes.length === 0) throw new Error(`--scene is one of: ${SCENES.map(({ name }) => name).join(', ')}`);
if (peers.length === 0) throw new Error('no peer of this name can be had');

const found = new Map<string, Record<string, number>[]>();
const failures: string[] = [];
for (const scene of scenes)
  for (let round = 0; round < runs; round++)
    for (let index = 0; index < peers.length; index++) {
      const peer = peers[(index + round) % peers.length];
      if (peer) play(peer, scene, round);
    }
print();

/** Those that can be had here; the others are named with the reason. */
async function findPeers(): Promise<Peer[]> {
  const own = JSON.parse(readFileSync(join(HOME, '../../package.json'), 'utf8')) as { version: string };
  const javascript = (name: string, version: string): Peer => ({
    name,
    version,
    command: process.execPath,
    script: 'play.mjs',
    env: {},
  });
  const peers = [
    javascript('troupe', own.version),
    javascript('troupe-process', own.version),
    javascript('raw-loop', 'node:sqlite'),
  ];
  const isNeeded = Object.keys(NPM).some(isWanted);
  const packages = isNeeded ? Object.values(NPM) : [];
  const not = await installNpmFolder({ home: HOME, packages, label: 'the peers' });
  for (const [name, key] of Object.entries(NPM))
    if (not === null) peers.push(javascript(name, versionAt(HOME, key) ?? ''));
    else console.error(`bench:peers: ${name} is left out: ${not}`);
  for (const [name, wanted] of Object.entries(PYTHON)) {
    if (!isWanted(name)) continue;
    const library = await installPythonLibrary(wanted);
    if ('not' in library) console.error(`bench:peers: ${name} is left out: ${library.not}`);
    else {
      const { command, folder, version } = library;
      peers.push({ name, version, command, script: 'play.py', env: { PYTHONPATH: folder } });
    }
  }
  return peers;
}

function play({ name, command, script, env }: Peer, scene: Scene, round: number): void {
  const dir = mkdtempSync(join(tmpdir(), 'troupe-peers-'));
  try {
    for (const [at, [what, size]] of scene.plays.entries()) {
      console.error(`bench:peers: ${scene.name} ${name} ${round + 1}/${runs}`);
      const output = execFileSync(command, [join(HOME, script), name, what, `${size}`, dir], {
        encoding: 'utf8',
        timeout: TIMEOUT_MS,
        env: { ...process.env, ...env },
        maxBuffer: 2 ** 26,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      if (at < scene.plays.length - 1) continue;
      const key = `${scene.name} ${name}`;
      const line = output.trim().split('\n').at(-1) ?? '{}';
      found.set(key, [...(found.get(key) ?? []), JSON.parse(line) as Record<string, number>]);
    }
  } catch (error) {
    failures.push(`${scene.name} ${name}: ${String(error).split('\n')[0]}`);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function medianOf(scene: string, peer: string, figure: string): number | null {
  const values = (found.get(`${scene} ${peer}`) ?? []).map((each) => each[figure] ?? Number.NaN);
  return values.length === 0 ? null : percentile(values, 0.5);
}

function print(): void {
  if (given.json) {
    const figures = peers.flatMap(({ name, version }) =>
      scenes.flatMap((scene) =>
        scene.figures.map(([figure, title]) => ({
          peer: name,
          version,
          scene: scene.name,
          figure: title,
          value: medianOf(scene.name, name, figure),
        })),
      ),
    );
    console.log(JSON.stringify({ node: process.version, cores: cpus().length, runs, figures, failures }));
  } else {
    console.log(`Node ${process.version}, ${cpus().length} cores, medians of ${runs} fresh processes\n`);
    console.log(`| | ${peers.map(({ name, version }) => `${name} ${version}`).join(' | ')} |`);
    console.log(`|---|${peers.map(() => '--:').join('|')}|`);
    for (const { name, figures } of scenes)
      for (const [figure, title] of figures)
        console.log(
          `| ${title} | ${peers.map((peer) => shown(medianOf(name, peer.name, figure))).join(' | ')} |`,
        );
    printRatios();
    for (const failure of failures) console.log(`\nfailed: ${failure}`);
  }
  if (failures.length > 0) process.exitCode = 1;
}

/** What Troupe takes for one of each other: the same machine at the same time, so these can be compared between runs. */
function printRatios(): void {
  const others = peers.filter(({ name }) => name !== 'troupe');
  if (others.length === peers.length || others.length === 0) return;
  console.log(`\n| troupe, divided by | ${others.map(({ name }) => name).join(' | ')} |`);
  console.log(`|---|${others.map(() => '--:').join('|')}|`);
  for (const { name, figures } of scenes)
    for (const [figure, title] of figures) {
      const own = medianOf(name, 'troupe', figure);
      const ratios = others.map((peer) => {
        const its = medianOf(name, peer.name, figure);
        return own === null || its === null ? null : own / its;
      });
      console.log(`| ${title.replace(/, (?:ms|MiB)$/, '')} | ${ratios.map(shown).join(' | ')} |`);
    }
}
