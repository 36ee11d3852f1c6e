import path from 'node:path';
import { copyFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import type { Hono } from 'hono';
import type { AgentInput } from '../../library/config/agent-input.ts';
import { toTroupeError, TroupeError } from '../../base/errors.ts';
import { createApp } from '../../http/api/index.ts';
import { ResourceStack } from '../../base/resource-stack.ts';
import { openTroupe, type TroupeOptions } from '../../library/runtime/create-troupe.ts';
import type { Troupe } from '../../library/troupe.ts';
import { version } from '../process/version.ts';
import type { EvalsPackage } from './evals-package.ts';
import { type Event, eventOf } from '../../events/index.ts';

/** An open kept run: its troupe takes no turns, and its console allows no writes. */
interface OpenRun {
  troupe: Troupe;
  app: Pick<Hono, 'fetch'>;
}

/** Kept runs, opened when they are viewed. */
export interface OpenRuns extends AsyncDisposable {
  /** `base`: path at which the run's console is mounted; `data`: its data directory. The run stays open until `act` is done. */
  use<T>(base: string, data: string, act: (run: OpenRun) => T | Promise<T>): Promise<T>;
}

interface Entry {
  opening: Promise<OpenRun & AsyncDisposable>;
  users: number;
}

/** Most runs that stay open besides those in use. */
const MOST_OPEN = 6;
/** The files of the database. Other files in the directory belong to the process that wrote it. */
const DATABASE = /^troupe\.db(?:-wal|-mark)?$/;

type ReadRun = EvalsPackage['readKeptRun'];

export function createOpenRuns({ readKeptRun }: Pick<EvalsPackage, 'readKeptRun'>): OpenRuns {
  /** In order of use, the most recent last. */
  const entries = new Map<string, Entry>();

  async function close(base: string): Promise<void> {
    const entry = entries.get(base);
    entries.delete(base);
    const opened = await entry?.opening.catch(() => null);
    await opened?.[Symbol.asyncDispose]();
  }
  async function closeOldest(): Promise<void> {
    while (entries.size > MOST_OPEN) {
      // Searched anew each time, because others may be used while one closes.
      const idle = [...entries].find(([, { users }]) => users === 0);
      if (!idle) return;
      await close(idle[0]);
    }
  }
  return {
    async use(base, data, act) {
      const entry = entries.get(base) ?? { opening: openRun(base, data, readKeptRun), users: 0 };
      entries.delete(base);
      entries.set(base, entry);
      entry.users += 1;
      try {
        return await act(await entry.opening);
      } catch (error) {
        // A run that could not be opened is tried again the next time.
        entry.opening.catch(() => entries.get(base) === entry && entries.delete(base));
        throw error;
      } finally {
        entry.users -= 1;
        await closeOldest();
      }
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...entries.keys()].map(close));
    },
  };
}

/** Opens a copy, so that the original stays unchanged, and may be read-only or open elsewhere. */
async function openRun(base: string, data: string, read: ReadRun): Promise<OpenRun & AsyncDisposable> {
  const opened = new ResourceStack();
  const copy = mkdtempSync(path.join(tmpdir(), 'troupe-eval-show-'));
  opened.defer(() => rmSync(copy, { recursive: true, force: true }));
  try {
    copyDatabase(data, copy);
    const settings = { data: copy, work: false, allowEmpty: true, onWarning: () => {} };
    const agents = await agentsIn(settings, path.basename(data), read);
    const troupe = await openTroupe({ agents }, settings);
    opened.defer(() => troupe.close());
    const ending = new AbortController();
    opened.defer(() => ending.abort());
    const app = createApp(troupe, {
      basePath: base,
      readOnly: true,
      signal: ending.signal,
      version: version(),
    });
    return { troupe, app, [Symbol.asyncDispose]: () => opened.close() };
  } catch (cause) {
    await opened.close();
    const { code, message, data: facts } = toTroupeError(cause);
    // Users know the kept folder, not the copy.
    throw new TroupeError(code, message.replaceAll(copy, data), facts, { cause });
  }
}

async function agentsIn(settings: TroupeOptions, conversation: string, read: ReadRun): Promise<AgentInput[]> {
  await using troupe = await openTroupe({ agents: [] }, settings);
  const { events } = await read(troupe, conversation);
  return agentsOfRun(events);
}

/** Throws `store_corrupt` if there is no database. */
function copyDatabase(from: string, to: string): void {
  const files = readdirSync(from, { withFileTypes: true }).filter(
    (entry) => entry.isFile() && DATABASE.test(entry.name),
  );
  if (files.length === 0)
    throw new TroupeError('store_corrupt', `there is no database in ${from}`, { data: from });
  for (const { name } of files) copyFileSync(path.join(from, name), path.join(to, name));
}

/** Answers nothing: a kept run takes no turns. */
const SILENT = { rules: [{ reply: 'This run is over.' }] };

/**
 * The agents of a run, from its log, because the company of a test need not be in a file. The store has what they were told,
 * from which their prompts are rendered again; beyond that the console needs only their names and models.
 */
function agentsOfRun(events: readonly Event[]): AgentInput[] {
  const agents = new Map<string, AgentInput>();
  for (const event of events) {
    const { kind, id, name } = event.author;
    if (kind !== 'agent') continue;
    const model = eventOf(event, 'baseline')?.body.model;
    if (model === undefined && agents.has(id)) continue;
    agents.set(id, { id, name, provider: 'scripted', script: SILENT, ...(model && { model }) });
  }
  return [...agents.values()];
}
