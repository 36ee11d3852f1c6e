import type { Hono } from 'hono';
import type { FoundAgents } from '../client/find-agents.ts';
import { changesBetween, type DefinitionChanges } from './definition-changes.ts';

/** A running troupe with its app. */
export interface OpenTroupe {
  found: FoundAgents;
  fetch: Hono['fetch'];
  /** Ends streams, and lets turns finish their step. */
  close(): Promise<void>;
}

export type ReloadReport =
  | { type: 'reloaded'; changes: DefinitionChanges }
  | { type: 'failed'; error: unknown };

interface ReloaderParts {
  load: () => Promise<FoundAgents>;
  open: (found: FoundAgents) => Promise<OpenTroupe>;
  report: (report: ReloadReport) => void;
  /** Neither the new nor the old troupe can be opened. */
  onEnd: (error: unknown) => void;
}

export interface Reloader {
  /** Answers with the troupe of the moment; waits while one takes the place of another. */
  fetch: Hono['fetch'];
  /** Puts the definition as it is now in the place of the old one, on the same data. If it is wrong, the old troupe goes on. */
  reload(): Promise<void>;
  close(): Promise<void>;
}

export function createReloader(first: OpenTroupe, { load, open, report, onEnd }: ReloaderParts): Reloader {
  let current = Promise.resolve(first);
  let work = Promise.resolve();
  let isQueued = false;

  async function replace(before: OpenTroupe, next: FoundAgents): Promise<OpenTroupe> {
    // Two troupes cannot have one database.
    await before.close();
    let opened: OpenTroupe;
    try {
      opened = await open(next);
    } catch (error) {
      report({ type: 'failed', error });
      return open(before.found);
    }
    report({ type: 'reloaded', changes: changesBetween(before.found.definition, next.definition) });
    return opened;
  }

  async function reloadNow(): Promise<void> {
    isQueued = false;
    const before = await current;
    let next: FoundAgents;
    try {
      next = await load();
    } catch (error) {
      report({ type: 'failed', error });
      return;
    }
    current = replace(before, next);
    await current.catch(onEnd);
  }

  return {
    fetch: async (...request) => (await current).fetch(...request),
    async reload() {
      // Changes that come meanwhile are one more reload.
      if (!isQueued) work = work.then(reloadNow);
      isQueued = true;
      await work;
    },
    async close() {
      await work;
      // If nothing could be opened, `onEnd` has the reason.
      const open = await current.catch(() => null);
      await open?.close();
    },
  };
}
