import { TroupeError } from '../../src/base/errors.ts';
import type { StoreDriver } from '../../src/store/driver.ts';

export type StoreOp = Exclude<keyof StoreDriver, 'close' | 'inbox'>;
export type Phase = 'before' | 'after';

/** Called before and after every store operation; an error that it throws reaches the caller. */
export type Tap = (op: StoreOp, phase: Phase, args: readonly unknown[]) => Promise<void> | void;

const OPS: readonly StoreOp[] = [
  'append',
  'readEvents',
  'readEvent',
  'head',
  'addressed',
  'conversations',
  'acquire',
  'compareAndSet',
  'step',
  'requestAbort',
  'park',
  'readActor',
  'listActors',
  'due',
  'putOnce',
  'readEntry',
  'readEntries',
  'entryKeys',
  'removeEntries',
  'swap',
  'expire',
  'deleteConversation',
];

const READS: ReadonlySet<StoreOp> = new Set([
  'readEvents',
  'readEvent',
  'head',
  'addressed',
  'conversations',
  'readActor',
  'listActors',
  'due',
  'readEntry',
  'readEntries',
  'entryKeys',
]);

/** Ids of the events that an operation writes. */
export function writtenBy(op: StoreOp, args: readonly unknown[]): string[] {
  if (op === 'append') return (args[0] as Parameters<StoreDriver['append']>[0]).map(({ id }) => id);
  if (op !== 'step') return [];
  return ((args[1] as Parameters<StoreDriver['step']>[1]).events ?? []).map(({ row }) => row.id);
}

/** A process that dies at a read leaves what one leaves that dies after the write before it. */
export function isRead(op: StoreOp): boolean {
  return READS.has(op);
}

export function tapDriver(driver: StoreDriver, tap: Tap): StoreDriver {
  const tapped = OPS.map((op) => {
    const work = driver[op].bind(driver) as (...args: unknown[]) => Promise<unknown>;
    return [
      op,
      async (...args: unknown[]) => {
        await tap(op, 'before', args);
        const result = await work(...args);
        await tap(op, 'after', args);
        return result;
      },
    ] as const;
  });
  const plain = { inbox: driver.inbox, check: () => driver.check(), close: () => driver.close() };
  return { ...(Object.fromEntries(tapped) as unknown as StoreDriver), ...plain, step };

  /** Over after the write, before anybody is told of its events. */
  async function step(...[key, asked]: Parameters<StoreDriver['step']>): ReturnType<StoreDriver['step']> {
    let isOver = false;
    const over = async () => {
      if (!isOver) await tap('step', 'after', [key, asked]);
      isOver = true;
    };
    await tap('step', 'before', [key, asked]);
    const told: typeof asked.told = async (appended) => {
      await over();
      await asked.told?.(appended);
    };
    const outcome = await driver.step(key, { ...asked, told });
    await over();
    return outcome;
  }
}

export function storeAway(why: string): TroupeError {
  return new TroupeError('store_unavailable', `scripted: ${why}`);
}

/** Never settles. The last operation of a killed process ends like this. */
export function forever(): Promise<never> {
  return new Promise(() => undefined);
}

/** A store for a process that dies: after `kill`, no operation is executed or answered. */
export function mortal(driver: StoreDriver): { driver: StoreDriver; kill(): void } {
  let dead = false;
  const tapped = tapDriver(driver, () => (dead ? forever() : undefined));
  return { driver: tapped, kill: () => void (dead = true) };
}
