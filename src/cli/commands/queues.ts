import { systemClock } from '../../clock.ts';
import type { QueueReport } from '../../troupe.ts';
import { type ClientOptions, connect } from '../client/connect.ts';
import { onInterrupt } from '../process/interrupt.ts';
import { number, paint, print, printJson, table } from '../render/output.ts';

interface QueuesOptions extends ClientOptions {
  watch?: boolean;
}

const WATCH_MS = 1_000;

/** Prints the queue's depth and waiting times; with `--watch`, a line every second until Ctrl-C. */
export async function queues({ watch, ...options }: QueuesOptions): Promise<void> {
  const client = await connect(options, { needs: 'data' });
  const stop = new AbortController();
  const dispose = watch ? onInterrupt(() => stop.abort()) : () => undefined;
  try {
    const show = options.json ? printJson : watch ? showLine : showTable;
    show(await client.queues());
    while (watch && !stop.signal.aborted) {
      await systemClock.sleep(WATCH_MS, stop.signal);
      if (!stop.signal.aborted) show(await client.queues());
    }
  } finally {
    dispose();
    await client.close();
  }
}

function showTable(report: QueueReport): void {
  print(
    table(
      cellsOf(report).map(([name, value]) => [paint('dim', name), value]),
      [1],
    ),
  );
  if (!report.wait) print(paint('dim', 'no wake was taken by that process in the last 5 minutes'));
}

function showLine(report: QueueReport): void {
  print(
    cellsOf(report)
      .map(([name, value]) => `${paint('dim', name)} ${value}`)
      .join('  '),
  );
}

function cellsOf({ waiting, active, delayed, failed = 0, wait }: QueueReport): [string, string][] {
  const cells: [string, string][] = [
    ['waiting', number(waiting)],
    ['active', number(active)],
    ['delayed', number(delayed)],
    ['failed', failed > 0 ? paint('red', number(failed)) : '0'],
  ];
  if (!wait) return cells;
  const { p50Ms, p95Ms, count } = wait;
  return [...cells, ['wait p50', `${p50Ms} ms`], ['wait p95', `${p95Ms} ms`], ['wakes', number(count)]];
}
