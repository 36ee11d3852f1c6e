import { type ChildProcess, spawn } from 'node:child_process';
import { openSync, closeSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';

/**
 * The processes of the system under test. A place (an API or a worker) always has a process or waits for one; processes
 * come from a pool of standbys.
 *
 * Owns: child processes and their logs. Does not own: the choice of victims and times.
 *  P1  A process is `up` from its ready line until it is hit or ends.
 *  P2  A process that was up and ends by itself is listed in `exits`: faults in other processes must not end it.
 *  P3  A stopped process keeps its place, but is not up, until it is continued.
 */
export type Role = 'api' | 'worker';

export interface Place {
  readonly role: Role;
  readonly index: number;
  process: FleetProcess | null;
}

export interface FleetProcess {
  readonly name: string;
  readonly role: Role;
  readonly child: ChildProcess;
  state: 'standby' | 'starting' | 'up' | 'stopped' | 'gone';
  upSince: number;
  /** Null for a worker. */
  url: string | null;
  log: string;
}

export interface Exit {
  process: string;
  role: Role;
  code: number | null;
  log: string;
}

export interface Fleet {
  places: readonly Place[];
  exits: Exit[];
  /** Starts that failed before the process was ready. They are retried. */
  failedStarts: number;
  /** Resolves when every place is up. */
  allUp(): Promise<void>;
  /** URLs of the APIs that are up. */
  apis(): string[];
  kill(place: Place): FleetProcess;
  stop(place: Place): FleetProcess;
  resume(place: Place): void;
  close(): Promise<void>;
}

export interface FleetOptions {
  /** `standby.ts`, or its bundle. */
  script: string;
  places: readonly Role[];
  /** The command line of a place. */
  argsOf: (role: Role) => string[];
  env: Record<string, string>;
  logs: string;
}

/** Standbys per role. */
const STANDBYS = 1;
const POLL_MS = 20;
const CLOSE_MS = 10_000;

export function startFleet({ script, places: roles, argsOf, env, logs }: FleetOptions): Fleet {
  const places: Place[] = roles.map((role, index) => ({ role, index, process: null }));
  const pool: FleetProcess[] = [];
  const exits: Exit[] = [];
  const everyone = new Set<FleetProcess>();
  let number = 0;
  let failedStarts = 0;
  let closing = false;

  function addStandby(role: Role): FleetProcess {
    const name = `p${++number}`;
    const log = path.join(logs, `${name}.log`);
    const file = openSync(log, 'a');
    const child = spawn(process.execPath, [script, role], {
      stdio: ['pipe', 'pipe', file],
      env: { ...process.env, ...env, RIG_PROCESS: name },
    });
    closeSync(file);
    const started: FleetProcess = { name, role, child, state: 'standby', upSince: 0, url: null, log };
    pool.push(started);
    everyone.add(started);
    child.stdin?.on('error', () => {}); // A standby that ended; `exit` reports it.
    createInterface({ input: child.stdout! }).on('line', (line) => hear(started, line));
    child.on('exit', (code) => left(started, code));
    return started;
  }

  function hear(target: FleetProcess, line: string): void {
    const said = parseLine(line);
    if (!said || 'standby' in said) return;
    if (target.state !== 'starting') return;
    target.url = typeof said['url'] === 'string' ? said['url'] : null;
    target.state = 'up';
    target.upSince = Date.now();
  }

  function left(gone: FleetProcess, code: number | null): void {
    everyone.delete(gone);
    const { state } = gone;
    gone.state = 'gone';
    if (pool.includes(gone)) pool.splice(pool.indexOf(gone), 1);
    const place = places.find((each) => each.process === gone);
    if (place) place.process = null;
    if (closing) return;
    if (place && state === 'up') exits.push({ process: gone.name, role: place.role, code, log: gone.log });
    else if (state !== 'gone') failedStarts += 1;
    fill();
  }

  /** Gives every empty place a standby, loaded or still loading, and starts new ones. */
  function fill(): void {
    for (const role of new Set(roles)) {
      const empty = places.filter((place) => place.role === role && !place.process);
      const ready = pool.filter((standby) => standby.role === role);
      while (ready.length < empty.length + STANDBYS) ready.push(addStandby(role));
      for (const [index, place] of empty.entries()) {
        const next = ready[index] as FleetProcess;
        pool.splice(pool.indexOf(next), 1);
        place.process = next;
        next.state = 'starting';
        next.child.stdin?.write(`${JSON.stringify(argsOf(role))}\n`);
      }
    }
  }

  function hit(place: Place, signal: NodeJS.Signals): FleetProcess {
    const { process: target } = place;
    if (!target) throw new Error(`no process in place ${place.index}`);
    target.child.kill(signal);
    return target;
  }

  fill();
  return {
    places,
    exits,
    get failedStarts() {
      return failedStarts;
    },
    async allUp() {
      while (!places.every((place) => place.process?.state === 'up')) await pause(POLL_MS);
    },
    apis: () => places.flatMap(({ process: at }) => (at?.state === 'up' && at.url !== null ? [at.url] : [])),
    kill(place) {
      const target = hit(place, 'SIGKILL');
      target.state = 'gone';
      place.process = null;
      fill();
      return target;
    },
    stop(place) {
      const target = hit(place, 'SIGSTOP');
      target.state = 'stopped';
      return target;
    },
    resume(place) {
      if (!place.process) return; // All processes are being ended.
      const target = hit(place, 'SIGCONT');
      target.state = 'up';
      target.upSince = Date.now();
    },
    async close() {
      closing = true;
      for (const { child, state } of everyone) child.kill(state === 'up' ? 'SIGTERM' : 'SIGKILL');
      for (const until = Date.now() + CLOSE_MS; everyone.size > 0 && Date.now() < until;)
        await pause(POLL_MS);
      for (const { child } of everyone) child.kill('SIGKILL');
    },
  };
}

function parseLine(line: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null; // Not ours.
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
